#include "models/nccl/decide/fused_tree.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace weft {
namespace {

/// Calls `visit` on every element below, parents first.
template <class Element, class Visit>
void for_each_element(Element& element, const Visit& visit) {
  visit(element);
  for (auto& child : element.children) for_each_element(child, visit);
}

std::vector<NcclElement*> elements(NcclElement& root, std::string_view tag) {
  std::vector<NcclElement*> found;
  for_each_element(root, [&](NcclElement& element) {
    if (element.tag == tag) found.push_back(&element);
  });
  return found;
}

/// Whole, within 0 and `most`; fails at the element.
std::int64_t number_of(const NcclElement& element, std::string_view attribute, std::int64_t most) {
  const std::optional<std::int64_t> value = element.integer(attribute);
  if (!value || *value < 0 || *value > most) {
    element.fail("<" + element.tag + "> needs " + std::string(attribute) + " from 0 to " +
                 std::to_string(most));
  }
  return *value;
}

void rank_gpus(NcclElement& system) {
  const std::vector<NcclElement*> gpus = elements(system, "gpu");
  if (gpus.empty()) {
    system.fail(
        "no <gpu> in this file: it is a skeleton, NCCL adds what it finds; write the "
        "complete one with NCCL_TOPO_DUMP_FILE");
  }
  if (std::cmp_greater(gpus.size(), kMostNcclGpus)) {
    gpus.back()->fail("more than " + std::to_string(kMostNcclGpus) + " <gpu>");
  }
  bool ranked = true;
  for (const NcclElement* gpu : gpus) {
    if (gpu->find("gcn") != nullptr)
      gpu->fail("AMD GPUs (gcn) are not modelled: NCCL runs on NVIDIA's");
    ranked = ranked && gpu->integer("rank").has_value();
  }
  std::map<std::int64_t, NcclElement*> in_order;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  for (NcclElement* gpu : gpus) {
    const std::int64_t key = number_of(*gpu, ranked ? "rank" : "dev", kMost);
    if (!in_order.emplace(key, gpu).second) {
      gpu->fail(std::string("two <gpu> with ") + (ranked ? "rank " : "dev ") + std::to_string(key));
    }
  }
  int rank = 0;
  for (const auto& [key, gpu] : in_order) gpu->set("rank", std::to_string(rank++));
}

/// Marks the NICs in use of a host and numbers them: without `dev` in the whole host by place, and
/// without gaps after NCCL_IB_HCA. A NIC without `dev` beside others that have one is not in use.
void number_nets(const std::vector<NcclElement*>& nets, const NcclEnv& env) {
  const bool numbered = std::any_of(nets.begin(), nets.end(), [](const NcclElement* net) {
    return net->integer("dev").has_value();
  });
  std::map<std::int64_t, NcclElement*> in_order;
  for (NcclElement* net : nets) {
    const std::optional<std::int64_t> dev = net->integer("dev");
    const bool dropped = net->integer("keep") == 0 || (numbered && !dev);
    const auto port = static_cast<int>(net->integer("port").value_or(0));
    if (dropped || !nccl_ib_hca_takes(env.ib_hca, net->text("name"), port)) {
      net->tag = "unused";
      continue;
    }
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const std::int64_t key =
        numbered ? number_of(*net, "dev", kMost) : static_cast<std::int64_t>(in_order.size());
    if (!in_order.emplace(key, net).second) {
      net->fail("two <net> with dev " + std::to_string(key));
    }
  }
  const bool renumber = !numbered || !env.ib_hca.empty();
  int dev = 0;
  for (const auto& [key, net] : in_order) {
    if (renumber) net->set("dev", std::to_string(dev));
    ++dev;
  }
}

/// The first rank whose view holds an element; nullopt: none, it is cut off. `host`: the lowest
/// rank of the element's host, whose view holds all NICs.
std::optional<std::int64_t> first_view(const NcclElement& element, std::int64_t host) {
  if (element.tag == "net") return host;
  if (element.tag == "gpu") return element.integer("rank");
  std::optional<std::int64_t> first;
  for (const NcclElement& child : element.children) {
    const std::optional<std::int64_t> view = first_view(child, host);
    if (view) first = std::min(view.value_or(0), first.value_or(*view));
  }
  return first;
}

bool is_cut_off_when_unused(const NcclElement& element) {
  return element.tag == "pci" || element.tag == "cpu" || element.tag == "nic" ||
         element.tag == "net" || element.tag == "unused";
}

using HostRanks = std::map<std::string, std::int64_t>;  ///< lowest ranks by host_hash

/// `host`: as first_view() has it; of the whole system each CPU's own.
void trim_and_order(NcclElement& element, const HostRanks& hosts, std::int64_t host, bool order) {
  if (element.tag == "gpu") return;
  std::vector<std::pair<std::int64_t, NcclElement>> kept;
  for (NcclElement& child : element.children) {
    if (child.tag == "cpu") host = hosts.at(child.text("host_hash"));
    const std::optional<std::int64_t> view = first_view(child, host);
    if (!view && is_cut_off_when_unused(child)) continue;
    trim_and_order(child, hosts, host, order);
    kept.emplace_back(view.value_or(host), std::move(child));
  }
  if (order) {
    std::stable_sort(kept.begin(), kept.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  element.children.clear();
  for (auto& [view, child] : kept) element.children.push_back(std::move(child));
}

}  // namespace

NcclElement fuse_nccl_tree(const NcclTree& tree, const NcclEnv& env, const NcclRelease& release) {
  NcclElement system = tree.system;
  rank_gpus(system);
  // The hosts of one NVLink domain number their NICs each for itself.
  std::map<std::string, std::vector<NcclElement*>> nets;
  HostRanks hosts;
  for (NcclElement& cpu : system.children) {
    const std::string& host = cpu.text("host_hash");
    for (NcclElement* const net : elements(cpu, "net")) nets[host].push_back(net);
    std::int64_t& lowest =
        hosts.try_emplace(host, std::numeric_limits<std::int64_t>::max()).first->second;
    for (const NcclElement* const gpu : elements(cpu, "gpu")) {
      lowest = std::min(lowest, gpu->integer("rank").value_or(lowest));
    }
  }
  for (const auto& [host, of_host] : nets) number_nets(of_host, env);
  trim_and_order(system, hosts, 0, release.fuses_views);
  return system;
}

}  // namespace weft
