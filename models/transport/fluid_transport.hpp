#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/transport/contraction.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/fifo.hpp"
#include "sim/engine/serial_server.hpp"
#include "sim/flow/fluid.hpp"
#include "sim/plan/fold.hpp"
#include "sim/run/load_sampler.hpp"
#include "sim/run/transport.hpp"

namespace weft {

/// The fluid transport: transfers are flows that share the machine's servers max-min fairly.
///
/// A transfer waits for its walk's head latency, then for the transfer before it on the same walk,
/// then flows; it is sent when its last byte has left and delivered the walk's tail latency later.
/// A copy engine's is sent when its flush has come back, which waits for those of the GPU's other
/// copies and for what these still read.
///
/// A verb is the walk that its data take: the NIC reads, a message, the other NIC writes. A read's
/// is the same from the other side, and its request travels before. What is posted passes the
/// servers of doorbells and of work queue elements one after another, as on packets, and a NIC
/// reads messages one after another as far as its send buffer has room (Reads). A completion is
/// there `nic.completion_latency` after the data (a read's, a receive's) or after the
/// acknowledgement, which takes the message's tail latency back. A send, and what was posted behind
/// it, waits until there is a receive. Not modelled: packets, credits, congestion control, which of
/// a switch's ports comes next (but see set_share()); of verbs inline payload, reads of several
/// elements at once and timers of receivers that are not ready. Refused: queue pairs that a GPU's
/// thread posts to.
class FluidTransport final : public Transport, public ServerLoads, private EventTarget {
 public:
  /// All references must outlive the transport. Causes are added to `causes` as they occur.
  /// `classes`: of a folded plan, which of the machine's servers stands for which.
  FluidTransport(const Machine& machine, EventQueue& events, CauseTable& causes,
                 ServerClasses classes = {});

  /// Walks and queue pairs that are opened from here on get this much of what they compete for,
  /// where those of share 1 get 1. It is 1 at first.
  void set_share(double share) { share_ = share; }
  /// How many messages a NIC has sent at once, on average while it sent any; of emulated ones 0.
  double messages_at_once() const;

  WalkId prepare(const Walk& walk, const Mover& mover) override;
  void submit(WalkId walk, Bytes bytes, std::uint64_t tag) override;
  QpHandle open(const QueuePair& queue_pair) override;
  void post(QpHandle queue_pair, std::span<const VerbRequest> requests) override;
  void post_receives(QpHandle queue_pair, std::uint32_t count) override;
  void set_sink(TransportSink& sink) override { sink_ = &sink; }

  std::vector<std::string> servers() const override;
  std::vector<double> busy_s() const override { return fluid_.seconds_used(events_->now()); }
  /// One of the machine's servers among what busy_s() gives: of a folded plan the one that stands
  /// for it; 0 if nothing uses it.
  double busy_s_of(ServerId server, std::span<const double> all) const {
    const std::optional<FlowServerIndex>& known = flow_server_[first_of(server).index()];
    return known ? all[known->index()] : 0;
  }

 private:
  struct Transfer {
    Bytes bytes;
    std::uint64_t tag;
    bool completes{false};  ///< somebody is told
    bool is_send{false};
    /// Of a message, before its head: for a receive, for doorbells to pass, for its element, for
    /// what its NIC reads before.
    std::array<Segment, 4> waits{};
  };
  struct Held {
    VerbRequest request;
    Time posted;
    Time rung;  ///< its doorbell was let through
  };
  struct Beginning {
    WalkId walk;
    Transfer transfer;
    Time ready;  ///< but for the element
  };
  /// One of the machine's servers of one thing after another.
  struct Serial {
    SerialServer* server{nullptr};
    Duration takes{};
    CauseId cause{};
  };
  /// A NIC reads messages one after the other, as far as its send buffer has room; where that is
  /// full, its queue pairs take turns.
  struct Reads {
    Time* all_read{nullptr};  ///< of what was posted to the NIC: when it would have read all
    double ns_per_byte{0};    ///< of its reads of this memory, alone
    Duration most{};          ///< for a full buffer
    CauseId cause{};          ///< what limits its messages alone, as if all before went likewise
    Time last{};              ///< when the queue pair's last one began

    /// How long a message waits that is begun now. One without bytes, or a read of the other end's
    /// memory, is not read here, but comes after those of its queue pair.
    Duration wait(Time now, Bytes bytes) {
      if (bytes > Bytes{0}) {
        const Time begins = std::max(now, *all_read);
        *all_read = begins + Duration::from_ns(ns_per_byte * bytes.as_double());
        last = now + std::min(begins - now, most);
      }
      return std::max(last, now) - now;
    }
  };
  /// What a NIC sends at once.
  struct Sends {
    double nics;  ///< that it stands for
    double now{0};
    Time since{};
    double message_s{0};  ///< of all messages
    double in_use_s{0};   ///< while there were any

    void change(Time at, double messages) {
      constexpr double kRounding = 1e-6;
      const double s = (at - since).as_s();
      message_s += now * s;
      if (now > kRounding) in_use_s += s;
      now += messages;
      since = at;
    }
  };
  /// A latency behind a message's tail, and the messages of which is told then.
  struct Telling {
    std::vector<Segment> segments{};  ///< since it was sent
    Duration after_tail{};
    Fifo<std::uint64_t> tags{};
  };
  /// How a copy ends.
  struct Flush {
    CauseId cause;
    Duration alone;
    DeviceId gpu;
    bool is_read;
    double window;   // bytes
    CauseId behind;  // of a read, writes before it
    std::optional<Transfer> running{};
    std::vector<Segment> segments{};  // of the running one, from the submission on
  };
  struct OpenWalk {
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
    std::optional<std::size_t> verbs{};  // of a queue pair: its number among Verbs
    std::optional<std::size_t> flush{};  // of a copy: its number among Flushes
    Sends* sends{nullptr};               // of a message: its NIC's
    double messages{1};                  // that it stands for at one NIC
  };
  /// The copy engines of a GPU, over PCIe.
  struct Copies {
    SerialServer flushes;
    std::vector<std::size_t> walks;
  };
  /// What tells the ends of a queue pair's messages, one way.
  struct Verbs {
    Telling completed;
    Telling received;
  };
  struct Qp {
    std::optional<WalkId> write{};
    std::optional<WalkId> read{};
    bool tells{false};  // completions
    std::optional<Serial> doorbells{};
    Serial elements{};
    Reads reads{};
    Duration element_gap{};  // between two of its own
    Time next_element{};
    Fifo<Beginning> beginning{};              // for their elements
    std::optional<std::uint32_t> receives{};  // none: always one at hand
    Fifo<Held> held{};                        // behind a send that has none

    CauseId doorbell_cause() const { return doorbells ? doorbells->cause : CauseId{}; }
  };

  void on_event(std::uint64_t what) override;
  void prefetch(std::uint64_t what, unsigned round) override;
  std::size_t open_walk(const Contraction& contraction, double copies);
  WalkId add_verbs(const QueuePair& queue_pair, const Contraction& data, bool is_read);
  void set_read_head(OpenWalk& opened, const Contraction& data, const Contraction& there,
                     const Contraction& back);
  Telling telling(const std::vector<Segment>& tail, std::vector<LatencyPart> parts, DeviceId nic);
  Serial serial(ServerId server);
  Reads reads(const QueuePair& queue_pair, const Contraction& data);
  ServerId first_of(ServerId server) const {
    return classes_.empty() ? server : ServerId{classes_.first[server.index()]};
  }
  double alike(ServerId server) const {
    return classes_.empty() ? 1 : classes_.size[server.index()];
  }
  void begin_held(std::size_t queue_pair);
  void take_element(std::size_t queue_pair);
  void begin(WalkId walk, const Transfer& transfer, Duration wait);
  void tell_later(std::size_t verbs, const Transfer& transfer);
  void head_done(std::size_t opened);
  void start(std::size_t opened, Transfer transfer, bool queued);
  void finish(const Finished& flow);
  void flush(std::size_t opened, const Transfer& transfer);
  struct Ahead {
    Duration writes;
    Duration reads;
  };
  Ahead ahead_of(std::size_t opened);
  Flush& flush_of(std::size_t opened) { return flushes_[*walks_[opened].flush]; }
  void flushed(std::size_t opened);
  void sent(std::size_t opened, const Transfer& transfer, bool queued,
            std::span<const Segment> segments);
  void deliver(std::size_t opened);
  void advance();
  void sync_clock();
  void plan_solve();
  void plan_next_change();
  void tell_completed(std::size_t verbs);
  void tell_received(std::size_t verbs);
  CauseId server_cause(FlowServerIndex server);
  FlowServerIndex flow_server(ServerId server);
  std::vector<Segment> segments(const std::vector<LatencyPart>& parts);

  const Machine* machine_;
  EventQueue* events_;
  CauseTable* causes_;
  ServerClasses classes_;
  CauseId not_ready_;
  TransportSink* sink_{nullptr};
  FluidSystem fluid_;
  double share_{1};
  std::vector<OpenWalk> walks_;
  std::vector<Verbs> verbs_;
  std::vector<Qp> queue_pairs_;
  std::map<ServerId, SerialServer> serial_;
  std::map<ServerId, Time> all_read_;  // by the NIC's server of elements
  std::map<DeviceId, Copies> copies_;  // by GPU
  std::map<ServerId, Sends> sends_;    // by the NIC's server of elements
  std::vector<Flush> flushes_;
  std::vector<std::optional<FlowServerIndex>> flow_server_;  // by server
  std::vector<ServerId> server_;                             // by flow server
  std::vector<std::optional<CauseId>> server_cause_;         // by flow server
  std::optional<EventId> next_change_;
  bool solve_planned_{false};
  std::vector<Finished> finished_;
  std::vector<Segment> scratch_;
};

}  // namespace weft
