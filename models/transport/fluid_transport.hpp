#pragma once

#include <optional>
#include <vector>

#include "models/transport/contraction.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/fifo.hpp"
#include "sim/flow/fluid.hpp"
#include "sim/run/transport.hpp"

namespace weft {

/// The fluid transport: transfers are flows that share the machine's resources max-min fairly.
///
/// A transfer waits for its walk's head latency, then for the transfer before it on the same walk,
/// then flows; it is sent when its last byte has left and delivered the walk's tail latency later.
/// Not modelled: packets, credits, congestion control, unfairness of arbitration.
class FluidTransport final : public Transport, private EventTarget {
 public:
  /// All references must outlive the transport. Causes are added to `causes` as they occur.
  FluidTransport(const Machine& machine, EventQueue& events, CauseTable& causes);

  WalkId prepare(const Walk& walk, std::uint32_t copies) override;
  void submit(WalkId walk, Bytes bytes, std::uint64_t tag) override;
  void set_sink(TransportSink& sink) override { sink_ = &sink; }

 private:
  struct Transfer {
    Bytes bytes;
    std::uint64_t tag;
  };
  struct Lane {
    RouteIndex route;
    std::vector<Segment> head;
    std::vector<Segment> tail;
    Duration head_time;
    Duration tail_time;
    std::optional<CauseId> cap;
    Fifo<Transfer> heading;  // in their head latency
    Fifo<Transfer> waiting;  // behind the one that flows
    Fifo<Transfer> tailing;  // sent, not delivered
    std::optional<Transfer> flowing;
    bool flowing_was_queued{false};
  };

  void on_event(std::uint64_t what) override;
  void head_done(std::size_t lane);
  void start(std::size_t lane, Transfer transfer, bool queued);
  void finish(const Finished& flow);
  void deliver(std::size_t lane);
  void advance();
  void sync_clock();
  void plan_solve();
  void plan_next_change();
  CauseId resource_cause(ResourceIndex resource);
  ResourceIndex flow_resource(ServerId server);
  std::vector<Segment> segments(const std::vector<LatencyPart>& parts);

  const Machine* machine_;
  EventQueue* events_;
  CauseTable* causes_;
  TransportSink* sink_{nullptr};
  FluidSystem fluid_;
  std::vector<Lane> lanes_;
  std::vector<std::optional<ResourceIndex>> flow_resource_;  // by server
  std::vector<ServerId> server_;                             // by flow resource
  std::vector<std::optional<CauseId>> resource_cause_;       // by flow resource
  std::optional<EventId> next_change_;
  bool solve_planned_{false};
  std::vector<Finished> finished_;
  std::vector<Segment> scratch_;
};

}  // namespace weft
