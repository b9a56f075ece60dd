#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "models/nic/rdma_nic.hpp"

namespace weft {

class SendStream;

/// The send queue of one queue pair, at the NIC of who posts: from a doorbell to a completion.
///
/// A work queue element goes through it from top to bottom:
///   doorbell  the elements came with it (BlueFlame), or are read from host memory
///   begin     no sooner than `qp_wqe_time` after the element before
///   serve     by the NIC's one server, behind those of other queue pairs
///   work      as soon as the queue pair's context is in the NIC
///   start     a write or send joins the stream; so does the request of a read, as long as fewer
///             than `max_reads` are under way
///   end       it is acknowledged, or its data have come: its completion is written
class SendQueue final : private EventTarget, private IcmWaiter, private NicDma {
 public:
  /// All that it refers to outlives it.
  SendQueue(RdmaNetwork& network, RdmaNic& nic, RdmaQpId id, SendStream& stream)
      : network_{network}, nic_{nic}, id_{id}, stream_{stream} {}
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  RdmaQpId id() const { return id_; }
  /// Elements are read from there and completions written there, not where the host has them.
  void place(const RdmaBuffer& wqes, const RdmaBuffer& cqes) { places_ = {wqes, cqes}; }

  /// The software rings the doorbell: it reaches the NIC after the doorbell's latency.
  void post(std::span<const RdmaRequest> requests);
  /// The doorbell has just reached the NIC.
  void rang(std::span<const RdmaRequest> requests) { ring(enqueue(requests)); }

  /// The other end has all of a write or send.
  void acknowledged(std::uint32_t slot);
  /// The data of a read have come.
  void have_read(std::uint32_t slot);
  /// The wire's half has failed: all that was begun and has not ended ends now, the first of it
  /// with this status and the others flushed; what is posted from now on is flushed as it starts.
  void fail(RdmaStatus status);
  bool has_failed() const { return has_failed_; }
  /// How long reads have waited for one of the `max_reads` under way to end.
  Duration waited_for_reads() const {
    return waited_ + (waiting_reads_.empty() ? Duration{} : network_.now() - waits_since_);
  }

 private:
  enum class Event : std::uint8_t { kDoorbell, kBegin, kServed };
  struct Places {
    RdmaBuffer wqes;
    RdmaBuffer cqes;
  };

  void on_event(std::uint64_t what) override;
  void on_dma_done(std::uint64_t first) override { take(static_cast<std::uint32_t>(first)); }
  void on_icm() override { work(); }
  void schedule(Time at, Event event, std::uint32_t slot);

  std::uint32_t enqueue(std::span<const RdmaRequest> requests);
  void ring(std::uint32_t first);
  void take(std::uint32_t first);
  void begin(std::uint32_t slot);
  void serve(std::uint32_t slot);
  void served(std::uint32_t slot);
  void work();
  void start(std::uint32_t slot);
  void request_read(std::uint32_t slot);
  void complete(std::uint32_t slot, Completions::Kind kind);
  void give_up(std::uint32_t slot, RdmaStatus status);

  RdmaNetwork& network_;
  RdmaNic& nic_;
  RdmaQpId id_;
  SendStream& stream_;
  std::optional<Places> places_{};  ///< none: those of the NIC's host
  Time next_begin_{};               ///< when it may begin with another element
  Fifo<std::uint32_t> served_;      ///< elements that need the context
  std::uint32_t reads_{0};          ///< under way
  Fifo<std::uint32_t> waiting_reads_;
  Time waits_since_{};  ///< where some wait
  Duration waited_{};
  bool has_failed_{false};
};

}  // namespace weft
