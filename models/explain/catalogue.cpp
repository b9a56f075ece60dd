#include "models/explain/catalogue.hpp"

#include <array>

namespace weft {
namespace {

constexpr std::array kNotLookedAt{
    NotLookedAt{"PFC or ECN that is misset, drops, congestion by other jobs",
                "need packets (weft run --fidelity packet), and numbers of switches"},
    NotLookedAt{"a host, GPU or NIC that is slow on one node only",
                "all nodes are alike here; such a fault is looked at as if all had it"},
    NotLookedAt{"affinity of threads, other load on the CPUs, huge pages, clocks of CPUs",
                "hosts have no scheduler in the model; slow proxies stand in (proxy)"},
    NotLookedAt{"a wrong GID index, TCP sockets in place of verbs", "sockets are not modelled"},
    NotLookedAt{"NCCL_IB_SPLIT_DATA_ON_QPS, NCCL_IB_ADAPTIVE_ROUTING, ECE, traffic classes",
                "not modelled"},
    NotLookedAt{"bonds of ports (LAG), of which a queue pair takes one", "a NIC is a port"},
    NotLookedAt{"tuner and network plugins, SHARP (CollNet)", "not executed"},
    NotLookedAt{"GPUDirect RDMA on some connections only, against NCCL's rule",
                "which these are a log would have to say"},
    NotLookedAt{"cables in wrong ports", "networks are cabled by rule"},
    NotLookedAt{"drivers, firmware and kernels that differ in speed alone", "not modelled"},
};

}  // namespace

const std::vector<CauseEntry>& catalogue() {
  static const std::vector<CauseEntry> kAll = [] {
    std::vector<CauseEntry> out;
    for (const auto entries : {pcie_causes(), nccl_causes()}) {
      out.insert(out.end(), entries.begin(), entries.end());
    }
    return out;
  }();
  return kAll;
}

std::span<const NotLookedAt> not_looked_at() { return kNotLookedAt; }

}  // namespace weft
