#include "models/collective/effort.hpp"

#include <numeric>

#include <fmt/format.h>

#include "models/collective/scale_note.hpp"
#include "models/collective/settled.hpp"
#include "models/transport/packet_hops.hpp"
#include "sim/base/quantity.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {
namespace {

// Round numbers by runs of the dev build on one core of a shared virtual machine (2026-11-22): 256
// GPUs, 256 MiB, 8 channels, a ring takes 5 to 7 s (7 by these), a tree 4 to 5 s (2 by these).
constexpr double kTransfersPerSecond = 1e6;
constexpr double kConnectionsPerSecond = 1e5;
// Likewise (2026-11-27, a loaded machine): on leaves and spines with drawn routes 64 MiB on 256
// GPUs takes 36 s as a ring, 19 s as a tree, where the above say 4 and 2, NVLSTree on 1,024 59 s
// for 4; two jobs of 512 GPUs each, tree and all-to-all, 270 s for 7.
constexpr double kWhole = 15;
constexpr double kWholeOnOneSwitch = 5;  // two jobs of 32 nodes, rings of 128 MiB: 42 s for 8

bool is_answered(const Scenario& scenario, const TopologySpec& topology, PredictOptions options,
                 const Predictor& predictor, const ParamCatalog& catalog) {
  options.check_only = true;
  options.on_estimate = {};
  options.on_progress = {};
  try {
    predictor(scenario, topology, options, catalog);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// A step's numbers of nodes are multiples of it; 0: it has none but its own.
std::uint32_t unit_of_nodes(const StepSpec& step, const TopologySpec& settled) {
  if (!step.data_is_rest) return 0;
  std::uint32_t copy = 1;  // GPUs of a copy of the model
  for (const Parallel p : step.order) {
    if (p != Parallel::kData) copy *= step.degree(p);
  }
  const auto gpus =
      static_cast<std::uint32_t>(Fabric(settled, settled.nodes).count(DeviceKind::kGpu));
  return copy / std::gcd(copy, gpus);
}

std::string text_of(const PacketEffort& effort) {
  return fmt::format("about {:.2g} packets over links, {} connections, {}", effort.hops,
                     effort.connections, of_one_core(effort.seconds()));
}

}  // namespace

double task_seconds(const PlanSize& size, double launches) {
  return launches * size.transfers / kTransfersPerSecond + size.connections / kConnectionsPerSecond;
}

double whole_seconds(const PlanSize& size, double launches, bool one_switch) {
  return task_seconds(size, launches) * (one_switch ? kWholeOnOneSwitch : kWhole);
}

void PacketEffort::add(const PacketEffort& plan, double times) {
  hops += times * plan.hops;
  transfers += times * plan.transfers;
}

double PacketEffort::seconds() const {
  // Measured, see models/transport/README.md: a packet over a link, and a transfer beside its
  // packets.
  constexpr double kHopsPerSecond = 4e6;
  constexpr double kPacketTransfersPerSecond = 3e5;
  return hops / kHopsPerSecond + transfers / kPacketTransfersPerSecond;
}

PacketEffort packet_effort(const Machine& machine, const Plan& plan) {
  return {.hops = packet_hops(machine, plan),
          .transfers = static_cast<double>(transfer_count(plan))};
}

void refuse_much(const PacketEffort& effort, const PredictOptions& options) {
  constexpr long long kMostPacketConnections = 50'000;  // half a GB
  const bool is_much =
      effort.seconds() > kMostRunSeconds || effort.connections > kMostPacketConnections;
  if (!is_much || options.force) return;
  throw TooLarge("--fidelity packet: " + text_of(effort) +
                 "; take smaller sizes, fewer nodes or --fidelity fluid, or --force it");
}

void tell(const PacketEffort& effort, const PredictOptions& options) {
  if (options.on_estimate) options.on_estimate("packets: " + text_of(effort));
}

std::string of_one_core(double seconds) {
  if (seconds < 1) return "less than a second of one core";
  if (seconds < 120) return fmt::format("{:.0f} s of one core", seconds);
  return fmt::format("{:.0f} minutes of one core", seconds / 60);
}

std::string smaller_question(const Scenario& scenario, const TopologySpec& topology,
                             const PredictOptions& options, const Predictor& predictor,
                             const ParamCatalog& catalog) {
  std::string out;
  const auto add = [&out](const std::string& question) {
    out += (out.empty() ? "" : "or ") + question + " ";
  };
  Scenario fewer = scenario;
  while (fewer.sizes.size() > 1) {
    fewer.sizes.resize(fewer.sizes.size() / 2);
    if (!is_answered(fewer, topology, options, predictor, catalog)) continue;
    add("sizes up to " + format_size(fewer.sizes.back()));
    break;
  }
  std::vector<ScenarioSetting> settings = scenario.set;
  settings.insert(settings.end(), options.set.begin(), options.set.end());
  PredictOptions smaller = options;
  smaller.set.push_back({"nodes", "", {}});
  const std::uint32_t all = nodes_of(scenario, settings, topology.nodes);
  Params params(catalog);
  const TopologySpec settled = settle(scenario, topology, options, params).spec;
  const std::uint32_t unit = scenario.step ? unit_of_nodes(*scenario.step, settled) : 1;
  for (std::uint32_t half = all / 2; half > 0 && unit > 0; half /= 2) {
    const std::uint32_t nodes = half / unit * unit;
    if (nodes == 0) break;
    smaller.set.back().value = std::to_string(nodes);
    if (!is_answered(scenario, topology, smaller, predictor, catalog)) continue;
    add(fmt::format("--set nodes={}", nodes));
    break;
  }
  if (scenario.step) {
    const auto add_if_answered = [&](const std::string& key, const std::string& value) {
      PredictOptions other = options;
      other.set.push_back({key, value, {}});
      if (is_answered(scenario, topology, other, predictor, catalog)) {
        add("--set " + key + "=" + value);
      }
    };
    if (params.choice("wire.routing") == "ecmp") add_if_answered("wire.routing", "spread");
    add_if_answered("nccl.algo", "Ring");
  }
  return out.empty() ? out : out + "would be answered";
}

}  // namespace weft
