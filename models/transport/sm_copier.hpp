#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/transport/nvlink_loads.hpp"
#include "models/transport/packet_host.hpp"
#include "sim/plan/walk.hpp"

namespace weft {

/// As much as NCCL's buffers hold.
inline constexpr std::uint64_t kSmBuffer = 4 << 20;

/// Where the next slice begins in a buffer of `span` bytes: at a page, and at its begin again.
constexpr std::uint64_t next_buffer(std::uint64_t end, std::uint64_t span) {
  const std::uint64_t page = (end + kPciePage - 1) / kPciePage * kPciePage;
  return page >= span ? 0 : page;
}

/// The copy loop of a GPU's thread block (or a group of its warps): pass after pass over slices.
///
/// Each warp takes the next piece of the slice, `gpu.bytes_per_thread` a thread (of loads of memory
/// beyond the GPU sm_in_flight()), loads it from every source, and when all of it is here stores it
/// to every sink. Stores are posted: the warp turns to its next piece at once, but stores no second
/// one before the first has left the GPU. So loads in flight are bounded by the threads, those
/// beyond the GPU also by their SM, stores by the links' back-pressure.
///
/// Loads of the GPU's own memory take `gpu.sm_load_latency`. The SM works on each piece for a time
/// (`sm_ns_per_byte`), one after another, also those of other groups of its block; then it is
/// stored. Without a source the block has the data in its registers, and stores them to one place
/// over and over.
///
/// Of a trip of many with LL128 the loads of the GPU's own memory are in what the SM works on
/// (sm_ns_per_byte), and the block goes on when all pieces are worked on. With LL, where each word
/// has its flag, warps wait for each other nowhere: a pass is a piece for each warp, and the block
/// goes on as soon as a warp is free.
/// Not modelled: what SMs share (L2), LL's waiting for each flag.
class SmCopier final : private DmaClient, private EventTarget {
 public:
  class Client {
   public:
    /// The last piece has left (or, without sinks, is here; of trips of many see above): the block
    /// is free.
    virtual void on_pass_sent() = 0;
    /// Everything that the oldest pass stored is visible.
    virtual void on_pass_visible() = 0;

   protected:
    ~Client() = default;
  };

  /// `legs`: of one initiator, each from or to its own memory; a range of `address` is where its
  /// buffers lie. Throws InputError if there is no route for a leg.
  SmCopier(PacketHost& host, const Walk& legs, std::uint32_t number, std::uint64_t address,
           Client& client);

  /// Precondition: the pass before was sent.
  void begin(Bytes bytes);

 private:
  /// A memory that is not its own, with an engine for it: no leg waits for another's link.
  struct Remote {
    DmaEngine* engine;
    PcieRoutesId routes;
    std::uint64_t address;
  };
  struct Warp {
    std::uint32_t loads{0};   ///< of its piece, still to come
    std::uint32_t stores{0};  ///< of the piece before, still to leave
    bool is_loaded{false};    ///< its piece waits for them
    bool has_piece{false};    ///< not stored yet
    std::uint32_t pass{0};    ///< of its piece
    std::uint64_t offset{0};
    std::int64_t bytes{0};
  };
  struct Pass {
    std::uint64_t invisible{0};  ///< stores
    std::uint32_t pieces{0};     ///< that warps have taken, and not stored yet
    bool is_sent{false};
  };

  /// When a pass ends: the block goes on.
  enum class Ends : std::uint8_t { kWhenSent, kWhenStored, kWhenAWarpIsFree };

  Time use_own(double share, std::int64_t bytes);
  void next_piece(std::uint32_t warp);
  void loaded(std::uint32_t warp);
  void load_own(std::uint32_t warp);
  void have_piece(std::uint32_t warp);
  void work(std::uint32_t warp);
  void store(std::uint32_t warp);
  void check_sent();
  void tell_visible();
  void on_event(std::uint64_t what) override;
  void on_dma_sent(std::uint64_t tag) override;
  void on_dma_done(std::uint64_t tag) override;
  void on_dma_timeout(std::uint64_t tag) override;

  EventQueue& events_;
  PcieMemory& own_memory_;
  Duration own_latency_{};
  SerialServer& sm_;
  double work_;  ///< ns a byte
  std::int64_t piece_{0};
  Ends ends_{Ends::kWhenSent};
  std::uint32_t with_piece_{0};  ///< warps
  Client& client_;
  double own_reads_{0};  ///< bytes of its own memory for each
  double own_writes_{0};
  std::vector<Remote> sources_;
  std::vector<std::unique_ptr<NvlinkLoads>> peers_;  ///< sources too
  std::vector<Remote> sinks_;
  std::vector<Warp> warps_;
  std::int64_t left_{0};  ///< of the pass, not taken by a warp
  std::uint64_t offset_{0};
  std::uint32_t busy_warps_{0};  ///< with a piece that is loading, or stores that have not left
  Fifo<Pass> passes_;            ///< not visible; the last is the running one
  std::uint32_t first_pass_{0};  ///< the number of the first
  bool is_running_{false};
};

}  // namespace weft
