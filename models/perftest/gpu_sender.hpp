#pragma once

#include <cstdint>
#include <vector>

#include "models/perftest/sender.hpp"

namespace weft {

/// A kernel whose threads send, one for each queue pair.
///
/// By themselves (IBGDA): a thread writes elements into the send queue, in the GPU's memory or the
/// host's, then the doorbell record, each followed by a fence, and stores the doorbell to the NIC
/// over PCIe. The NIC reads the elements and writes completions to the GPU's memory, which the
/// thread polls. Or by a proxy: the thread stores a request to host memory, where a CPU thread that
/// serves all of them finds it and posts; of completions it tells by a store to the GPU's memory.
class GpuSender final : public PerftestProgram,
                        private RdmaClient,
                        private DmaClient,
                        private EventTarget {
 public:
  GpuSender(PacketCluster& cluster, const PerftestPlan& plan);

  void start() override;
  bool has_settled() const override;
  bool has_posted_all() const override { return posted_ == messages(); }
  std::uint64_t messages() const override { return plan_.iterations * plan_.qps; }
  Duration posting() const override;
  Duration waiting() const override;
  Time ended() const override;
  Bytes delivered() const override;

 private:
  enum class Event : std::uint8_t {
    kWritten,    ///< a thread has written elements or a request, and fenced them
    kRequested,  ///< the proxy sees a request
    kPosted,     ///< it has posted it
    kEnded,      ///< it sees a completion
    kTold,       ///< it has taken it
    kKnown       ///< a thread knows of a completion
  };
  enum class Dma : std::uint8_t { kElements, kDoorbell, kRequest, kTold };
  struct Thread {
    RdmaQpId id;
    RdmaBuffer local;
    RdmaBuffer remote;
    std::uint64_t posted{0};  ///< by the thread
    std::uint64_t rung{0};    ///< of these, at the NIC
    std::uint64_t known{0};
    Fifo<std::uint32_t> on_the_way;  ///< requests of each doorbell
    std::uint32_t writing{0};        ///< of the one that is being written
    bool is_busy{false};
  };
  /// The proxy's work.
  struct Job {
    std::uint32_t thread;
    bool is_completion;
  };

  void on_completion(std::uint64_t tag) override;
  void on_visible(std::uint64_t tag) override;
  void on_event(std::uint64_t what) override;
  void on_dma_done(std::uint64_t tag) override;
  void later(Duration delay, Event event, std::uint32_t thread);
  void store(DmaEngine& engine, const RdmaBuffer& to, std::int64_t bytes, Dma kind,
             std::uint32_t thread);
  std::uint32_t room(const Thread& thread) const;
  void next(std::uint32_t thread);
  void post(std::uint32_t thread);
  void know(std::uint32_t thread);
  void work();

  PacketCluster& cluster_;
  PerftestPlan plan_;
  bool has_proxy_;
  bool queues_in_gpu_;
  Duration element_time_;
  Duration fence_time_;
  Duration load_time_;
  Duration target_load_time_;
  Duration post_time_;
  Duration doorbell_time_;
  Bytes element_;
  Duration poll_time_;
  Duration cqe_time_;
  Duration root_time_;
  DmaEngine& stores_;
  DmaEngine* proxy_stores_{nullptr};
  RdmaBuffer doorbells_;  ///< as the GPU writes them
  RdmaBuffer elements_;   ///< likewise, or requests to the proxy
  RdmaBuffer flags_;      ///< as the proxy writes them
  std::vector<Thread> threads_;
  std::vector<RdmaRequest> requests_;
  Fifo<Job> jobs_;
  std::uint64_t posted_{0};
  std::uint64_t known_{0};
  Duration writing_;
  Time visible_;
};

}  // namespace weft
