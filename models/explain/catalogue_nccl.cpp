// Causes in NCCL's environment and release, and in how it is launched.
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/explain/catalogue.hpp"

namespace weft {
namespace {

using Variants = std::vector<Variant>;

/// One variable at each of some values, but for the one that it has, which may be missing, too.
Variants variable(const Site& site, const std::string& name,
                  std::initializer_list<std::string> values) {
  const auto& env = site.healthy().env;
  const auto now = env.find(name);
  Variants out;
  for (const std::string& value : values) {
    if (now != env.end() && now->second == value) continue;
    Change change;
    change.env[name] = value;
    out.push_back({"the environment", name + "=" + value, change});
  }
  if (now != env.end()) {
    Change change;
    change.unset.push_back(name);
    out.push_back({"the environment", name + " is not set", change});
  }
  return out;
}

/// One after the other.
Variants joined(Variants first, const Variants& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

bool has_network(const Site& site) { return !site.nics().empty(); }

Variants gdr_level(const Site& site) {
  if (!has_network(site)) return {};
  return joined(variable(site, "NCCL_NET_GDR_LEVEL", {"LOC"}),
                variable(site, "NCCL_NET_GDR_READ", {"0"}));
}

Variants p2p(const Site& site) {
  if (site.gpus().size() < 2) return {};
  return joined(variable(site, "NCCL_P2P_DISABLE", {"1"}), variable(site, "NCCL_P2P_LEVEL", {}));
}

Variants shm(const Site& site) {
  if (site.gpus().size() < 2) return {};
  return variable(site, "NCCL_SHM_DISABLE", {"1"});
}

Variants pxn(const Site& site) {
  if (!has_network(site) || site.gpus().size() < 2) return {};
  return variable(site, "NCCL_PXN_DISABLE", {"1"});
}

Variants nvls(const Site& site) {
  if (site.gpus().size() < 2) return {};
  return variable(site, "NCCL_NVLS_ENABLE", {"0"});
}

Variants cross_nic(const Site& site) {
  if (site.nics().size() < 2) return {};
  return variable(site, "NCCL_CROSS_NIC", {"0", "1"});
}

/// "=nic0,nic1"
Variant takes(const std::vector<std::string>& names, const std::string& where) {
  Change change;
  change.env["NCCL_IB_HCA"] = fmt::format("={}", fmt::join(names, ","));
  return {where, "NCCL_IB_HCA names " + std::to_string(names.size()), change};
}

Variants hca(const Site& site) {
  Variants out = variable(site, "NCCL_IB_HCA", {});
  const Site::Devices& nics = site.nics();
  if (nics.size() < 2) return out;
  std::vector<std::string> near;
  for (std::size_t i = 0; i < nics.size(); ++i) {
    if (site.root(*nics[i]) == site.root(*nics.front())) near.push_back(nics[i]->name);
  }
  out.push_back(takes({nics.front()->name}, "one NIC only"));
  for (const auto& [every, where] : {std::pair{2U, "every second NIC"}, {4U, "every fourth NIC"}}) {
    if (nics.size() <= every) continue;
    std::vector<std::string> some;
    for (std::size_t i = 0; i < nics.size(); i += every) some.push_back(nics[i]->name);
    out.push_back(takes(some, where));
  }
  if (near.size() > 1 && near.size() < nics.size()) {
    out.push_back(takes(near, "the NICs of one socket"));
  }
  return out;
}

Variants algo(const Site& site) { return variable(site, "NCCL_ALGO", {"Ring", "Tree"}); }

Variants proto(const Site& site) { return variable(site, "NCCL_PROTO", {"Simple", "LL128", "LL"}); }

Variants channels(const Site& site) {
  return joined(variable(site, "NCCL_MAX_NCHANNELS", {"8", "2", "1"}),
                variable(site, "NCCL_MIN_NCHANNELS", {}));
}

Variants threads(const Site& site) { return variable(site, "NCCL_NTHREADS", {"128"}); }

Variants buffers(const Site& site) {
  return variable(site, "NCCL_BUFFSIZE", {"1048576", "262144"});
}

Variants release(const Site& site) {
  constexpr std::array<NcclVersion, 4> kReleases{{{2, 18, 5}, {2, 21, 5}, {2, 27, 7}, {2, 30, 7}}};
  Variants out;
  for (const NcclVersion& other : kReleases) {
    const NcclVersion now = site.version();
    if (other.major == now.major && other.minor == now.minor) continue;
    Change change;
    change.version = other;
    out.push_back({"NCCL", "decides as " + other.text(), change});
  }
  return out;
}

Variants launcher(const Site& site) {
  const std::size_t gpus = site.gpus().size();
  if (gpus < 2 || site.number("nccl.gpus_per_thread") > 1) return {};
  Change change;
  change.set.push_back({"", "nccl.gpus_per_thread", std::to_string(gpus)});
  return {{"each host", fmt::format("one thread for {} GPUs", gpus), change}};
}

/// A time that hosts take, so many times.
Variants times(const Site& site, const std::string& key, const std::string& what,
               std::initializer_list<double> factors) {
  Variants out;
  for (const double factor : factors) {
    Change change;
    change.set.push_back({"", key, site.text(key, factor * site.number(key))});
    out.push_back({"each host", fmt::format("{} {:.0f} times as long", what, factor), change});
  }
  return out;
}

/// What is faster than a launch takes as long as it does, so a curve is near that of an amount near
/// its own only.
Variants host_launch(const Site& site) {
  return times(site, "nccl.host_launch", "a launch takes", {2, 3, 5, 7, 10, 15, 22, 33});
}

Variants proxy(const Site& site) {
  if (!has_network(site)) return {};
  Variants out = times(site, "nccl.proxy_poll", "a proxy's poll takes", {10, 100});
  return out;
}

constexpr const char* kUnset = "NCCL_DEBUG=INFO lists what is set; unset it (also in nccl.conf)";

constexpr std::array kCauses{
    CauseEntry{"gdr-level", "GPUDirect RDMA is turned off by a variable",
               "NICs, and more than one node", kUnset, "environment", false, gdr_level},
    CauseEntry{"p2p-off", "GPUs exchange data by host memory (P2P off)", "two GPUs a node",
               "NCCL_DEBUG=INFO says via SHM in place of P2P; NCCL_P2P_DISABLE, NCCL_P2P_LEVEL",
               "environment", true, p2p, "P2P"},
    CauseEntry{"shm-off", "no shared memory in a node", "two GPUs a node", kUnset, "environment",
               false, shm},
    CauseEntry{"pxn-off", "no sending by the GPU next to the NIC (PXN off)",
               "NICs, and two GPUs a node", kUnset, "environment", false, pxn},
    CauseEntry{"nvls-off", "NVSwitches do not add up (NVLS off)", "two GPUs a node",
               "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING; NCCL_NVLS_ENABLE; Fabric Manager",
               "environment", true, nvls},
    CauseEntry{"hca-list", "NCCL_IB_HCA leaves NICs out", "two NICs",
               "NCCL_DEBUG=INFO (NET/IB : Using); NCCL_IB_HCA", "environment", false, hca},
    CauseEntry{"cross-nic", "rings keep to rails, or cross them", "two NICs", kUnset, "environment",
               false, cross_nic},
    CauseEntry{"algo", "another algorithm is forced or chosen (tuner)", "-",
               "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING; NCCL_ALGO, NCCL_TUNER_PLUGIN",
               "environment", true, algo},
    CauseEntry{"proto", "another protocol is forced or chosen (tuner)", "-",
               "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING; NCCL_PROTO, NCCL_TUNER_PLUGIN",
               "environment", true, proto},
    CauseEntry{"channels", "few channels", "-", "NCCL_DEBUG=INFO (channels); NCCL_MAX_NCHANNELS",
               "environment", true, channels},
    CauseEntry{"threads", "small thread blocks", "-", kUnset, "environment", false, threads},
    CauseEntry{"buffers", "small buffers", "-", kUnset, "environment", false, buffers},
    CauseEntry{"release", "another release of NCCL decides otherwise", "-",
               "weft nccl MACHINE --nccl-version, both; run with the other release", "", false,
               release},
    CauseEntry{"launcher", "one thread launches for all GPUs of a host (-g)", "two GPUs a node",
               "one process a GPU (mpirun, -g 1)", "", false, launcher},
    CauseEntry{"host-launch", "hosts launch kernels slowly", "-",
               "CUDA graphs (-G); clocks and load of the CPUs", "", false, host_launch},
    CauseEntry{"proxy", "NCCL's proxy threads run slowly", "NICs, and more than one node",
               "affinity and load of the CPUs (top -H, NCCL_IGNORE_CPU_AFFINITY)", "", false,
               proxy},
};

}  // namespace

std::span<const CauseEntry> nccl_causes() { return kCauses; }

}  // namespace weft
