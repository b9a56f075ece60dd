#include "models/collective/notes.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "models/nic/emulated.hpp"
#include "models/nic/icm.hpp"
#include "models/nic/rdma_params.hpp"
#include "models/pcie/tlp.hpp"
#include "models/wire/dcqcn.hpp"
#include "models/wire/packets.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// Whether an emulated NIC has a use for a parameter of NICs: what moves and paces its data, what
/// NCCL sees of it, and its link.
bool emulated_nics_have(std::string_view name) {
  constexpr std::array<std::string_view, 14> kSeen{
      "rate",          "reported_rate", "pcie_gen",    "pcie_width", "trained_gen",
      "trained_width", "port_acs",      "port_egress", "gdr",        "peer_memory_api",
      "dma_buf",       "collnet",       "count",       "part"};
  if (std::find(kSeen.begin(), kSeen.end(), name) != kSeen.end()) return true;
  return std::any_of(std::begin(kEmulatedNicParams), std::end(kEmulatedNicParams),
                     [&](const ParamSpec& spec) { return spec.key.substr(4) == name; });
}

/// The rows of one memory path and algorithm whose times were extended alike.
struct ExtendedRows {
  std::int64_t least;
  std::int64_t most;
  std::set<std::int64_t, std::greater<>> nodes;
};

}  // namespace

bool only_packets_see(std::string_view key) {
  const std::string_view name = key.substr(std::min(key.find('.'), key.size()));
  const auto is_of = [&](std::span<const ParamSpec> table) {
    return std::any_of(table.begin(), table.end(), [&](const ParamSpec& spec) {
      const bool of_a_nic = spec.key.starts_with("nic.") && spec.key.ends_with(name) &&
                            spec.key.size() == 3 + name.size();
      return spec.key == key || (of_a_nic && !name.empty());
    });
  };
  return is_of(kNicPacketParams) || is_of(kIcmParams) || is_of(kWirePacketParams) ||
         is_of(kDcqcnParams) || is_of(kPcieFlowControlParams);
}

void add_packets_note(const std::vector<ScenarioSetting>& settings, std::string_view where,
                      std::vector<std::string>& notes) {
  std::string keys;
  for (const ScenarioSetting& s : settings) {
    if (only_packets_see(s.key)) keys += (keys.empty() ? "" : ", ") + s.key;
  }
  if (!keys.empty()) notes.push_back(fmt::format("no effect {}: {}", where, keys));
}

void add_losses_note(const NcclEnv& env, std::string_view why, std::vector<std::string>& notes) {
  if (!env.ib_timeout && !env.ib_retry_cnt) return;
  notes.push_back("NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT have no effect" + std::string(why));
}

bool is_of_launches(std::string_view key) {
  return key == "nccl.launch" || key == "nccl.host_launch" || key == "nccl.host_wait" ||
         key == "nccl.gpus_per_thread";
}

void add_unlike_note(const Machine& machine, bool runs_few, std::vector<std::string>& notes) {
  const std::vector<std::uint32_t>& unlike = machine.devices().unlike_nodes();
  if (!runs_few || unlike.empty()) return;
  const std::span named(unlike.data(), std::min<std::size_t>(unlike.size(), 16));
  const std::string more =
      named.size() < unlike.size() ? fmt::format(" and {} more", unlike.size() - named.size()) : "";
  notes.push_back(fmt::format(
      "{} in place of all {}; how far off that is: models/transport/README.md, Samples (--unfolded "
      "runs every rank, where that is not refused)",
      unlike.size() == 1
          ? fmt::format("node {} is not like the others: it is one of the few nodes that run",
                        unlike.front())
          : fmt::format(
                "nodes {}{} are not like the others: each of them (or one of each kind; "
                "where delays are set together with those that it sends to, but in "
                "all-to-alls) is among the few nodes that run, and the longest time counts,",
                fmt::join(named, ", "), more),
      machine.fabric().nodes()));
}

void add_extended_notes(RunResult& result, std::optional<std::uint64_t> seed) {
  std::map<std::pair<std::string, std::string>, ExtendedRows> all;  // by what, and what of
  for (const ResultRow& row : result.rows) {
    if (row.extended.empty()) continue;
    std::string by;
    std::string how;
    const bool on_average =
        std::ranges::find(row.extended, "hash", &ResultRow::Extended::by) != row.extended.end();
    for (const ResultRow::Extended& e : row.extended) {
      if (e.by == "nearer level" || e.by == "hash") continue;
      if (e.by == "switch") {
        how = "on fewer switches that pass as much, ";
        if (on_average) {
          how += "their fullest as on average over all that a hash may draw (whatever the seed), ";
        }
        if (seed && !on_average) how += fmt::format("as wire.seed={} draws the ways, ", *seed);
      } else if (e.by == "round") {
        how += "with what NCCL's rounds of sends find full between switches, ";
      } else if (e.by == "ring") {
        how += "as rings over even numbers of nodes, ";
      } else if (by.find(e.by) == std::string::npos) {
        by += (by.empty() ? "extended by the " : "and the ") + e.by + " ";
      }
    }
    how += by;
    ExtendedRows& rows = all.try_emplace({row.memory_path + ", " + row.algo, how},
                                         ExtendedRows{row.bytes, row.bytes, {}})
                             .first->second;
    rows.least = std::min(rows.least, row.bytes);
    rows.most = std::max(rows.most, row.bytes);
    for (const ResultRow::Extended& e : row.extended) {
      if (e.by != "byte") rows.nodes.insert(e.from.begin(), e.from.end());
    }
  }
  for (const auto& [what, rows] : all) {
    const std::string least = format_size(Bytes{rows.least});
    result.notes.push_back(fmt::format(
        "{}, {}: {}from {} nodes, not simulated whole; how far off that is: "
        "models/transport/README.md, Samples (--unfolded runs every rank, where that is not "
        "refused)",
        what.first,
        rows.least == rows.most ? least : least + " to " + format_size(Bytes{rows.most}),
        what.second,
        rows.nodes.empty() ? "fewer bytes on all"
                           : fmt::format("{}", fmt::join(rows.nodes, ", "))));
  }
}

void add_unread_notes(const NcclEnv& env, const std::vector<ScenarioSetting>& settings,
                      const Params& params, std::vector<std::string>& notes) {
  for (const ScenarioSetting& s : settings) {
    if (!s.key.ends_with(".reported_rate")) continue;
    notes.push_back(s.key + "=" + s.value + " has no effect on weft's simple rules");
  }
  const auto add = [&](const std::string& variable, const std::string& value, const char* key) {
    if (value.empty() || params.choice(key) != "auto") return;
    notes.push_back(variable + "=" + value + " has no effect on weft's simple rules");
  };
  add("NCCL_ALGO", env.algo, "nccl.algo");
  add("NCCL_PROTO", env.proto, "nccl.proto");
}

void add_forced_note(const Params& params, bool only_sends, std::vector<std::string>& notes) {
  std::string forced;
  for (const std::string_view key : {"nccl.algo", "nccl.proto", "nccl.channels"}) {
    if (only_sends && key != "nccl.channels") continue;
    const ParamSpec& spec = params.catalog().require(key);
    const double number = params.get(key).number;
    if (number == spec.fallback) continue;
    forced +=
        (forced.empty() ? "" : ", ") + std::string(key) + "=" + ParamCatalog::format(spec, number);
  }
  if (!forced.empty()) notes.push_back("set by the user in place of NCCL's own choice: " + forced);
}

void add_nvls_channels_note(const Params& params, const std::vector<ResultRow>& rows,
                            std::vector<std::string>& notes) {
  const double asked = params.number("nccl.channels");
  if (asked == 0) return;
  for (const ResultRow& row : rows) {
    if (!row.algo.starts_with("NVLS") || row.channels == asked) continue;
    notes.push_back(
        fmt::format("nccl.channels={} has no effect on {}, which keeps {} channels "
                    "(NCCL_NVLS_NCHANNELS sets them)",
                    asked, row.algo, row.channels));
    return;
  }
}

void add_seed_note(const std::vector<ScenarioSetting>& settings, bool has_drawn,
                   std::vector<std::string>& notes) {
  const bool is_given = std::any_of(settings.begin(), settings.end(),
                                    [](const auto& s) { return s.key == "wire.seed"; });
  if (is_given && !has_drawn) {
    notes.emplace_back("the seed has no effect: nothing in this run is random");
  }
}

void add_root_complex_note(const Machine& machine, const Schedule& schedule, Op op,
                           std::vector<std::string>& notes) {
  if (op != Op::kAllToAll) return;
  const Fabric& fabric = machine.fabric();
  const std::size_t gpus = fabric.count(DeviceKind::kGpu);
  for (std::uint32_t to = 1; to < gpus; ++to) {
    for (std::uint32_t from = 0; from < to; ++from) {
      const PathLabel label = fabric.path_label(fabric.device(0, DeviceKind::kGpu, from),
                                                fabric.device(0, DeviceKind::kGpu, to));
      if (label.path_class < PathClass::kPhb || schedule.inside(from, to) == Inside::kShared) {
        continue;
      }
      notes.push_back(
          fmt::format("gpu {} and {} exchange data through a root complex ({}): that many pairs at "
                      "once slow it is not modelled. Published of 4 x RTX 4090 on one CPU: 18 GB/s "
                      "through host memory, 2 so (nccl#1603); NCCL_P2P_DISABLE=1 avoids it",
                      from, to, label.text()));
      return;
    }
  }
}

void add_emulated_note(const std::vector<ScenarioSetting>& settings, const Machine& machine,
                       std::vector<std::string>& notes) {
  const Fabric& fabric = machine.fabric();
  std::string keys;
  for (const ScenarioSetting& s : settings) {
    const std::size_t dot = std::min(s.key.find('.'), s.key.size() - 1);
    const std::string scope = s.key.substr(0, dot);
    bool any = false;
    bool all_emulated = true;
    for (std::size_t i = 0; i < fabric.count(DeviceKind::kNic); ++i) {
      const DeviceId nic = fabric.device(0, DeviceKind::kNic, i);
      if (scope != "nic" && scope != fabric.device(nic).name) continue;
      any = true;
      all_emulated = all_emulated && machine.model(nic).adapter->is_emulated;
    }
    if (!any || !all_emulated || emulated_nics_have(s.key.substr(dot + 1))) continue;
    keys += (keys.empty() ? "" : ", ") + s.key;
  }
  if (!keys.empty()) notes.push_back("no effect on emulated NICs (nic.emulation): " + keys);
}

void add_launch_notes(const std::vector<ScenarioSetting>& settings, std::string_view launch,
                      std::vector<std::string>& notes) {
  for (const ScenarioSetting& s : settings) {
    const bool has_effect = s.key == "nccl.host_wait" ? launch == "single"
                            : s.key == "nccl.host_launch" || s.key == "nccl.gpus_per_thread"
                                ? launch == "back-to-back"
                                : true;
    if (has_effect) continue;
    notes.push_back(fmt::format("no effect with nccl.launch={}: {}", launch, s.key));
  }
}

void add_pxn_note(const std::vector<std::string>& env, std::vector<std::string>& notes) {
  for (const std::string& variable : env) {
    if (!variable.starts_with("NCCL_PXN_DISABLE=") &&
        !variable.starts_with("NCCL_P2P_PXN_LEVEL=")) {
      continue;
    }
    notes.push_back(variable +
                    " has no effect: by weft's simple rules each GPU sends by its own NIC");
  }
}

void add_chain_note(Op op, const Fabric& fabric, std::string_view launch,
                    std::vector<std::string>& notes) {
  const std::size_t ranks = fabric.nodes() * fabric.count(DeviceKind::kGpu);
  constexpr std::size_t kShortWay = 8;
  if (ranks <= kShortWay || launch == "single") return;
  notes.push_back(fmt::format(
      "a {} goes from rank to rank: the time is that of one of many launches, which overlap; the "
      "mean of nccl-tests' 20 also has a twentieth of the first one's way through {} ranks "
      "(--set nccl.launch=single: one alone)",
      op_name(op), ranks));
}

void add_choice_notes(RunResult& result, Fidelity fidelity) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> sizes;
  for (const ResultRow& row : result.rows) {
    if (row.nccl_choice.empty()) continue;
    const auto [at, is_new] = sizes.try_emplace(row.nccl_choice, row.bytes, row.bytes);
    at->second = {std::min(at->second.first, row.bytes), std::max(at->second.second, row.bytes)};
  }
  for (const auto& [name, range] : sizes) {
    result.notes.push_back(
        fmt::format("NCCL would run {} between {} and {}; weft does not execute it{} and runs the "
                    "best of the others there",
                    name, format_size(Bytes{range.first}), format_size(Bytes{range.second}),
                    fidelity == Fidelity::kPacket && name.starts_with("NVLS")
                        ? " on packets (--fidelity fluid does)"
                        : ""));
  }
}

}  // namespace weft
