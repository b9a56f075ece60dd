#pragma once

#include <cstdint>
#include <vector>

#include "models/perftest/sender.hpp"
#include "models/transport/copier.hpp"

namespace weft {

/// Sends from GPU to GPU through pinned host memory at both ends: a copy engine brings a chunk to
/// the host, an RDMA write takes it to the other host, a copy engine there takes it on. A buffer at
/// either end is used again when the other end has said, by a small RDMA write, that it has copied
/// the chunk out.
class StagedSender final : public PerftestProgram,
                           private RdmaClient,
                           private Copier::Client,
                           private EventTarget {
 public:
  StagedSender(PacketCluster& cluster, const PerftestPlan& plan);

  void start() override { pump(); }
  bool has_settled() const override { return 4 * known() >= messages(); }
  bool has_posted_all() const override { return next_ == messages() * chunks_; }
  std::uint64_t messages() const override { return plan_.iterations * plan_.qps; }
  Duration posting() const override { return posting_; }
  Duration receiving() const override { return receiving_; }
  Duration waiting() const override {
    return waited_ + (waits_ ? cluster_.events().now() - waits_since_ : Duration{});
  }
  Bytes delivered() const override {
    return plan_.size * static_cast<std::int64_t>(landed_ / chunks_);
  }
  Time ended() const override { return steps().back().at; }

 private:
  enum class Event : std::uint8_t { kPost, kArrived, kCopied, kGiveBack, kFreed };
  struct Qp {
    RdmaQpId there;
    RdmaQpId back;
  };
  /// What the thread at one end takes.
  struct Thread {
    Thread(const Machine& machine, DeviceId nic);
    Duration post;  ///< a write and its doorbell
    Duration poll;
  };

  void pump();
  Bytes bytes_of(std::uint64_t chunk) const;
  std::uint64_t offset_of(std::uint64_t chunk) const;
  void later(Duration delay, Event event, std::uint64_t chunk);
  void on_event(std::uint64_t what) override;
  void on_copied(bool from_host, std::uint64_t chunk) override;
  void on_visible(std::uint64_t tag) override;
  void post(std::uint64_t chunk);
  void landed(std::uint64_t chunk);
  void give_back(std::uint64_t chunk);

  PacketCluster& cluster_;
  PerftestPlan plan_;
  DeviceId from_cpu_;
  DeviceId to_cpu_;
  Bytes chunk_;
  std::uint64_t chunks_;  ///< of a message
  std::uint64_t buffers_;
  Thread sender_;
  Thread receiver_;
  Copier out_;
  Copier in_;
  std::vector<Qp> qps_;
  std::uint64_t next_{0};  ///< chunk of all messages that is copied out next
  std::uint64_t freed_{0};
  std::uint64_t landed_{0};
  bool waits_{false};
  Time waits_since_;
  Duration waited_;
  Duration posting_;
  Duration receiving_;
};

}  // namespace weft
