#include "models/collective/effort.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "models/collective/scale_note.hpp"
#include "models/collective/settled.hpp"
#include "models/transport/packet_hops.hpp"
#include "sim/base/quantity.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {
namespace {

// Round numbers by runs of the dev build on one core of a shared virtual machine (2026-11-30), none
// of whose ranks are alike. What all flows share, each new one shares out anew: so on several
// switches, and in an all-to-all. Beside each what was measured.
constexpr double kOfRing = 3e-6;          // s a transfer: 1.5 to 2.3; of two jobs 5
constexpr double kOfChain = 1.3e-6;       // 0.9 to 1.9, on any switches: few are under way at once
constexpr double kOfTree = 5e-6;          // 4.6 to 5.8; of nodes of 72 GPUs 8 and more
constexpr double kOfAllToAll = 15e-6;     // 4 on 8 nodes, 22 on 2 in the place of 128
constexpr double kOnSeveralSwitches = 3;  // times as much: drawn rings 9, drawn trees 16, PAT 10
constexpr double kOfConnection = 1e-6;    // made and folded
constexpr double kOfSend = 3e-5;          // a connection of an all-to-all: planned, folded, opened
constexpr double kBytesOfConnection = 3e3;  // of all-to-alls: 2.9e3 to 3.1e3

/// How long what is too large takes, or more than who asked for more would wait for.
constexpr double kTooLong = std::numeric_limits<double>::infinity();

/// How long answering takes, in seconds of one core, 0 if that is not told as it is short; none:
/// it is refused for another reason than its size.
std::optional<double> answered_in(const Scenario& scenario, const TopologySpec& topology,
                                  PredictOptions options, const Predictor& predictor,
                                  const ParamCatalog& catalog) {
  constexpr double kMost = 300;
  double seconds = 0;
  options.check_only = true;
  options.on_estimate = [&](const std::string&, double told) { seconds += told; };
  options.on_progress = {};
  try {
    predictor(scenario, topology, options, catalog);
  } catch (const TooLarge&) {
    return kTooLong;
  } catch (const InputError&) {
    return {};
  }
  return seconds > kMost ? kTooLong : seconds;
}

bool is_answered(const Scenario& scenario, const TopologySpec& topology,
                 const PredictOptions& options, const Predictor& predictor,
                 const ParamCatalog& catalog) {
  const auto seconds = answered_in(scenario, topology, options, predictor, catalog);
  return seconds && *seconds < kTooLong;
}

/// Questions that would be answered, the quickest first.
class Answered {
 public:
  /// Unless it is not, by what answered_in() says.
  void add(const std::string& question, std::optional<double> seconds) {
    if (!seconds || *seconds == kTooLong) return;
    all_.emplace_back(*seconds,
                      *seconds > 0 ? question + " (" + of_one_core(*seconds) + ")" : question);
  }
  std::string text() {
    std::ranges::stable_sort(all_, {}, &std::pair<double, std::string>::first);
    std::string out;
    for (const auto& [seconds, question] : all_) out += (out.empty() ? "" : "or ") + question + " ";
    return out.empty() ? out : out + "would be answered";
  }

 private:
  std::vector<std::pair<double, std::string>> all_;
};

/// Of jobs that are too large: each on its first nodes alone, as many as are answered; where none
/// are, each with less to move. "" if that is not answered either. From few nodes on, as what is
/// refused takes longest to find out.
std::string smaller_jobs(const Scenario& scenario, const TopologySpec& topology,
                         const PredictOptions& options, const Predictor& predictor,
                         const ParamCatalog& catalog) {
  const auto answers = [&](const auto& changed) {
    Scenario smaller = scenario;
    for (ScenarioJob& job : smaller.jobs) changed(job);
    return is_answered(smaller, topology, options, predictor, catalog);
  };
  std::size_t most = 0;  // nodes of a job
  for (const ScenarioJob& job : scenario.jobs) most = std::max(most, job.nodes.size());
  std::size_t answered = 0;
  for (std::size_t parts = std::bit_floor(most) / 2; parts > 1; parts /= 2) {
    const bool is_answer = answers([&](ScenarioJob& job) {
      job.nodes.resize(std::max<std::size_t>(job.nodes.size() / parts, 1));
    });
    if (!is_answer && answered > 0) break;
    if (is_answer) answered = parts;
  }
  if (answered > 0) {
    return fmt::format("each job on the first 1/{} of its nodes would be answered", answered);
  }
  for (const int parts : {16, 256, 4096}) {
    const bool is_answer = answers([&](ScenarioJob& job) {
      job.size = Bytes{std::max<std::int64_t>(job.size.count() / parts, 1)};
    });
    if (is_answer) return fmt::format("1/{} of each job's size would be answered", parts);
  }
  return "";
}

std::string text_of(const PacketEffort& effort) {
  return fmt::format("about {:.2g} packets over links, {} connections, {}", effort.hops,
                     effort.connections, of_one_core(effort.seconds()));
}

}  // namespace

std::uint32_t nodes_of_copies(const StepSpec& step, std::uint32_t gpus) {
  const auto of_a_copy = static_cast<std::uint32_t>(step.ranks() / step.degree(Parallel::kData));
  return of_a_copy / std::gcd(of_a_copy, gpus);
}

double fluid_seconds(const PlanSize& size, Op op, Algorithm algorithm, bool one_switch,
                     double alike) {
  const bool is_p2p = algorithm == Algorithm::kPointToPoint;
  const bool is_ring = algorithm == Algorithm::kRing;
  const double here = is_ring ? kOfRing : kOfTree;
  const double of_transfer = is_p2p ? kOfAllToAll
                             : is_ring && is_chain(op)
                                 ? kOfChain
                                 : here * (one_switch ? 1 : kOnSeveralSwitches);
  const double of_connection = is_p2p ? kOfSend : kOfConnection;
  return size.transfers * of_transfer / alike + size.connections * of_connection;
}

Bytes fluid_memory(double connections) {
  return Bytes{std::llround(connections * kBytesOfConnection)};
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
  if (options.on_estimate) options.on_estimate("packets: " + text_of(effort), effort.seconds());
}

std::string of_one_core(double seconds, Bytes memory) {
  const std::string time = seconds < 1     ? "less than a second"
                           : seconds < 120 ? fmt::format("{:.0f} s", seconds)
                                           : fmt::format("{:.0f} minutes", seconds / 60);
  std::string core = time + " of one core";
  if (memory < kMuchMemory) return core;
  return fmt::format("{} and {:.1f} GB of memory", core, memory.as_double() / 1e9);
}

std::string smaller_question(const Scenario& scenario, const TopologySpec& topology,
                             const PredictOptions& options, const Predictor& predictor,
                             const ParamCatalog& catalog) {
  if (!scenario.jobs.empty()) {
    return smaller_jobs(scenario, topology, options, predictor, catalog);
  }
  Answered answered;
  Scenario fewer = scenario;
  while (fewer.sizes.size() > 1) {
    fewer.sizes.resize(fewer.sizes.size() / 2);
    const auto seconds = answered_in(fewer, topology, options, predictor, catalog);
    if (!seconds || *seconds == kTooLong) continue;
    answered.add("sizes up to " + format_size(fewer.sizes.back()), seconds);
    break;
  }
  std::vector<ScenarioSetting> settings = scenario.set;
  settings.insert(settings.end(), options.set.begin(), options.set.end());
  PredictOptions smaller = options;
  smaller.set.push_back({"nodes", "", {}});
  const std::uint32_t all = nodes_of(scenario, settings, topology.nodes);
  Params params(catalog);
  const TopologySpec settled = settle(scenario, topology, options, params).spec;
  std::uint32_t unit = 1;  // 0: a step has no number of nodes but its own
  if (scenario.step) {
    const Fabric fabric(settled, settled.nodes);
    const auto gpus = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu));
    unit = scenario.step->data_is_rest ? nodes_of_copies(*scenario.step, gpus) : 0;
  }
  std::vector<std::uint32_t> counts;
  // Nodes that racks, leaves and pods hold are multiples of powers of two, mostly.
  for (std::uint32_t even = all & (all - 1); !scenario.op.empty() && even > all / 2;
       even &= even - 1) {
    counts.push_back(even);
  }
  for (std::uint32_t half = all / 2; unit > 0 && half >= unit; half /= 2) {
    counts.push_back(half / unit * unit);
  }
  // Of a step what is refused takes longest to find out.
  const bool is_from_least = scenario.step.has_value();
  if (is_from_least) std::ranges::reverse(counts);
  std::optional<std::pair<std::uint32_t, double>> most;  // nodes, seconds
  for (const std::uint32_t nodes : counts) {
    smaller.set.back().value = std::to_string(nodes);
    const auto seconds = answered_in(scenario, topology, smaller, predictor, catalog);
    if (!seconds) continue;  // such as a node that is named and not there
    const bool is_answer = *seconds < kTooLong;
    if (is_answer) most.emplace(nodes, *seconds);
    if (is_answer != is_from_least) break;
  }
  if (most) answered.add(fmt::format("--set nodes={}", most->first), most->second);
  if (scenario.step) {
    const auto add_if_answered = [&](const std::string& key, const std::string& value) {
      PredictOptions other = options;
      other.set.push_back({key, value, {}});
      answered.add("--set " + key + "=" + value,
                   answered_in(scenario, topology, other, predictor, catalog));
    };
    if (params.choice("wire.routing") == "ecmp") add_if_answered("wire.routing", "spread");
    add_if_answered("nccl.algo", "Ring");
  }
  return answered.text();
}

}  // namespace weft
