#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/base/params.hpp"
#include "sim/base/units.hpp"

namespace weft {

/// Parameters of what a NIC keeps of its contexts, which lie in host memory (ICM).
inline constexpr std::array kIcmParams{
    ParamSpec{"nic.icm_cache", Unit::kBytes, 2.0 * 1024 * 1024, 4096, 1e9, Origin::kAssumed,
              "from memory of Kalia et al., NSDI 2019 (eRPC), not checked against it: NICs have "
              "about 2 MB "
              "of SRAM for connections and all else",
              "contexts and translations that the NIC keeps itself"},
    ParamSpec{"nic.qp_context", Unit::kBytes, 375, 64, 4096, Origin::kAssumed,
              "from memory of Kalia et al., NSDI 2019 (eRPC), not checked against it: 375 B for "
              "each connection",
              "context of a queue pair"},
    ParamSpec{"nic.icm_fetches", Unit::kCount, 16, 1, 4096, Origin::kAssumed, "unpublished",
              "reads of missing contexts and translations under way at a time"},
    ParamSpec{"nic.host_page", Unit::kBytes, 4096, 4096, 1024.0 * 1024 * 1024, Origin::kAssumed,
              "perftest and NCCL allocate without huge pages",
              "page by which host memory is registered; a GPU's has 64 KiB"},
    ParamSpec{"nic.dma_buf_page", Unit::kBytes, 4096, 4096, 1024.0 * 1024 * 1024,
              Origin::kPublished,
              "Linux drivers/infiniband/hw/mlx5: PAGE_SIZE; from 6.17 the best that the memory "
              "allows (e73242aa14d2)",
              "page by which a GPU's memory is registered that DMA-BUF maps"},
};
static_assert(every_param_is_sourced(kIcmParams));

/// A cache that throws out what it happens to hit upon: any access of an entry that is there is
/// alike, so N entries used in turn do not all miss as soon as they are too many for it.
///
/// In turn, with room for C, a share m misses with 1 - m = exp(-m N / C) (each miss throws out one
/// of C; an entry must outlive the N m misses until its next turn).
/// What fits is there from its first use on: connecting and registering have left it there. As soon
/// as something was thrown out that is over, however much room a large entry has left.
class IcmCache {
 public:
  explicit IcmCache(Bytes capacity = Bytes{0}, std::uint64_t seed = 0)
      : capacity_{capacity.count()}, draw_{seed} {}

  /// Whether the entry is there; as long as nothing was thrown out, it is if there is room for it.
  bool holds(std::uint64_t key, std::int64_t bytes);
  /// It was read from host memory.
  void insert(std::uint64_t key, std::int64_t bytes);

 private:
  struct Entry {
    std::uint64_t key;
    std::int64_t bytes;
  };

  std::int64_t capacity_;
  std::int64_t used_{0};
  bool is_full_{false};  ///< something was thrown out
  std::vector<Entry> entries_;
  std::unordered_map<std::uint64_t, std::size_t> place_;
  std::uint64_t draw_;  ///< Knuth's MMIX generator
};

}  // namespace weft
