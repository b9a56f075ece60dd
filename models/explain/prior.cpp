#include "models/explain/prior.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace weft {
namespace {

template <std::size_t N>
using Entries = std::array<std::string_view, N>;

constexpr Entries<1> kAcs{"acs"};
constexpr Entries<1> kIommu{"iommu"};
constexpr Entries<1> kPeers{"p2p-off"};
constexpr Entries<1> kGuest{"flat-guest"};
constexpr Entries<3> kStaged{"gdr-missing", "staged", "gdr-level"};
constexpr Entries<2> kPlace{"far-nic", "nic-at-root"};
constexpr Entries<3> kLinks{"nic-link", "gpu-link", "switch-link"};
constexpr Entries<1> kReads{"outstanding-reads"};
constexpr Entries<1> kOrdering{"ordering"};
constexpr Entries<1> kBar1{"bar1"};
constexpr Entries<1> kNics{"hca-list"};
constexpr Entries<1> kMtu{"mtu"};
constexpr Entries<2> kFabric{"uplinks", "hashing"};
constexpr Entries<1> kDram{"dram"};
constexpr Entries<1> kProxy{"proxy"};
constexpr Entries<1> kRelease{"release"};
constexpr Entries<11> kEnvironment{"gdr-level", "p2p-off",   "shm-off", "pxn-off",
                                   "nvls-off",  "cross-nic", "algo",    "proto",
                                   "channels",  "threads",   "buffers"};

// By tests/data/regressions.csv, column class; tests/explain/prior_test.cpp counts them again.
constexpr std::array kKinds{PublishedKind{"peermem-or-gdr-off", 8, kStaged},
                            PublishedKind{"cross-socket-or-root-complex", 6, kPlace},
                            PublishedKind{"nccl-model-or-version", 7, kRelease},
                            PublishedKind{"acs", 6, kAcs},
                            PublishedKind{"fabric", 6, kFabric},
                            PublishedKind{"nic-selection", 5, kNics},
                            PublishedKind{"mtu-gid-config", 5, kMtu},
                            PublishedKind{"vm-topology", 2, kGuest},
                            PublishedKind{"proxy-or-posting", 2, kProxy},
                            PublishedKind{"p2p-disabled-iommu", 2, kPeers},
                            PublishedKind{"pcie-link", 2, kLinks},
                            PublishedKind{"cpu-affinity", 2, kProxy},
                            PublishedKind{"nccl-env", 2, kEnvironment},
                            PublishedKind{"iommu", 1, kIommu},
                            PublishedKind{"relaxed-ordering", 1, kOrdering},
                            PublishedKind{"pcie-outstanding-reads", 1, kReads},
                            PublishedKind{"bar1", 1, kBar1},
                            PublishedKind{"host-memory-bandwidth", 1, kDram}};

}  // namespace

std::span<const PublishedKind> published_kinds() { return kKinds; }

double prior_weight(std::string_view entry, std::string_view left_out) {
  double out = 1;
  for (const PublishedKind& kind : kKinds) {
    if (std::find(kind.entries.begin(), kind.entries.end(), entry) == kind.entries.end()) continue;
    const int cases = kind.cases - (kind.kind == left_out ? 1 : 0);
    out += static_cast<double>(cases) / static_cast<double>(kind.entries.size());
  }
  return out;
}

}  // namespace weft
