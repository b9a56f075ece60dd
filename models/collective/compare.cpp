#include "models/collective/compare.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/collective/joint_progress.hpp"
#include "models/collective/scale_note.hpp"
#include "models/collective/settings.hpp"
#include "models/collective/spares.hpp"
#include "models/collective/tool_rows.hpp"
#include "models/wire/link.hpp"
#include "sim/base/operation.hpp"
#include "sim/base/parallel.hpp"
#include "sim/base/quantity.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/result/measured_env.hpp"
#include "sim/topology/node_hosts.hpp"

namespace weft {
namespace {

/// What rows are held against: the machine as the options leave it.
struct MachineFacts {
  TopologySpec file;  ///< as it was read
  TopologySpec spec;
  std::int64_t gpus{0};
  std::int64_t hosts_of_node{1};  ///< trays, where NVLink joins several
  std::int64_t nics{0};
  bool has_nvlink{false};
  Duration cables{};  ///< the latency of two NICs' cables to a switch
  Provenance provenance;
};

std::int64_t count(const TopologySpec& spec, DeviceKind kind) {
  const auto& devices = spec.node.devices;
  return std::count_if(devices.begin(), devices.end(),
                       [kind](const DeviceSpec& d) { return d.kind == kind; });
}

bool has_nvlink(const TopologySpec& spec) {
  return std::any_of(spec.node.links.begin(), spec.node.links.end(), [](const PeerLinkSpec& l) {
    return l.kind == LinkKind::kNvlink || l.kind == LinkKind::kXgmi;
  });
}

MachineFacts facts_of(const TopologySpec& machine, const PredictOptions& options,
                      const ParamCatalog& catalog) {
  MachineFacts facts;
  facts.file = machine;
  facts.spec = machine;
  facts.provenance = provenance_of(Scenario{}, options, facts.spec);
  for (const auto& [name, value] : options.env) facts.provenance.env.push_back(name + "=" + value);
  Params params(catalog);
  apply_nccl_env(options.env, params, {}, options.nccl_version.value_or(NcclVersion{}));
  refuse_spares(options.set);
  apply_settings(options.set, facts.spec, params);
  drop_uncabled_nics(facts.spec);
  facts.gpus = count(facts.spec, DeviceKind::kGpu);
  facts.hosts_of_node = static_cast<std::int64_t>(NodeHosts(facts.spec.node).count());
  facts.nics = count(facts.spec, DeviceKind::kNic);
  facts.has_nvlink = has_nvlink(facts.spec);
  facts.cables = wire_link_latency(params, params.number("wire.cable_length")) * 2;
  facts.provenance.seed = static_cast<std::uint64_t>(params.number("wire.seed"));
  return facts;
}

/// Why weft would not run a row as it was measured; "" if it would. What the simulation itself
/// refuses is not here.
std::string obstacle(const MeasuredRow& row, const MachineFacts& facts) {
  if (!row.unlike.empty()) return row.unlike;
  if (row.op == kOtherOp) return "weft has no model of this test: " + row.id;
  if (is_copy(row)) return "";
  if (row.transport == "shm" && row.hosts > 1) return "hosts share no memory";
  if (row.transport == "nvlink" && row.hosts > 1) {
    return "NVLink between hosts: write the GPUs that it joins as one host";
  }
  const std::int64_t of_host = row.ranks / row.hosts;
  if (facts.has_nvlink && row.hosts > 1 && facts.hosts_of_node > 1 &&
      of_host * facts.hosts_of_node <= facts.gpus) {
    return fmt::format(
        "a node of this machine is {} hosts whose GPUs NVLink joins (no socket link joins their "
        "CPUs), so these {} may be of fewer nodes: --as hosts={}; if each is of another node, "
        "--set gpu.count={}",
        facts.hosts_of_node, row.hosts, (row.ranks + facts.gpus - 1) / facts.gpus, of_host);
  }
  if (row.transport == "shm") return "";
  if (row.transport == "nvlink") {
    return facts.has_nvlink || row.ranks == 1 ? "" : "the machine has no NVLink";
  }
  if (row.hosts == 1) return "weft uses no NIC inside a host";
  return facts.nics > 0 ? "" : "the machine has no NIC";
}

/// The switch's latency with which it takes so long from NIC to NIC.
ScenarioSetting latency_setting(const MeasuredRow& row, const MachineFacts& facts) {
  if (facts.spec.network.kind > NetworkSpec::Kind::kOneSwitch) {
    throw InputError("nic_latency_us: the machine's network has several switches on a route");
  }
  const double us = row.nic_latency_us - facts.cables.as_us();
  if (us < 0) {
    throw InputError(fmt::format("nic_latency_us: the cables alone take {} us",
                                 format_number(facts.cables.as_us())));
  }
  return {"netswitch.latency", format_number(us) + " us", {}};
}

void add_rates(const MeasuredRow& row, std::vector<ScenarioSetting>& set) {
  if (row.nic_gbps == 0) return;
  const std::string rate = format_number(row.nic_gbps) + " Gb/s";
  set.push_back({"nic.rate", rate, {}});
  set.push_back({"wire.rate", rate, {}});
}

std::vector<ScenarioSetting> settings_of(const MeasuredRow& row, const MachineFacts& facts) {
  std::vector<ScenarioSetting> set = settings_of_cell(row.set);
  if (is_copy(row)) return set;
  if (is_perftest(row)) {
    add_rates(row, set);
    if (row.nic_latency_us > 0) set.push_back(latency_setting(row, facts));
    return set;
  }
  if (!row.launch.empty()) set.push_back({"nccl.launch", row.launch, {}});
  const std::int64_t gpus = row.ranks / row.hosts;
  if (gpus > facts.gpus) throw InputError(fmt::format("a node has {} GPUs", facts.gpus));
  if (gpus != facts.gpus) set.push_back({"gpu.count", std::to_string(gpus), {}});
  if (row.transport != "net") return set;
  if (row.nics_per_host > facts.nics) {
    throw InputError(fmt::format("a node has {} NICs", facts.nics));
  }
  if (row.nics_per_host != 0 && row.nics_per_host != facts.nics) {
    set.push_back({"nic.count", std::to_string(row.nics_per_host), {}});
  }
  add_rates(row, set);
  if (row.nic_latency_us > 0) set.push_back(latency_setting(row, facts));
  return set;
}

/// The variables with which it was measured.
std::map<std::string, std::string> env_of(const MeasuredRow& row) {
  std::map<std::string, std::string> env;
  for (const ScenarioSetting& entry : settings_of_cell(row.env)) env[entry.key] = entry.value;
  if (row.algo != "auto") env["NCCL_ALGO"] = row.algo;
  if (row.proto != "auto") env["NCCL_PROTO"] = row.proto;
  if (row.transport == "shm") env["NCCL_P2P_DISABLE"] = "1";
  if (row.channels > 0) {
    env["NCCL_MIN_NCHANNELS"] = std::to_string(row.channels);
    env["NCCL_MAX_NCHANNELS"] = std::to_string(row.channels);
  }
  return env;
}

/// Rows that differ in size: one scenario.
using Group = std::vector<ComparedRow*>;

/// Of the rows that nothing speaks against yet.
std::vector<Group> groups_of(std::vector<ComparedRow>& rows) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> index;
  for (ComparedRow& row : rows) {
    if (!row.not_predicted.empty()) continue;
    const auto [at, is_new] = index.try_emplace(configuration_of(row.measured), groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(&row);
  }
  return groups;
}

/// What a group is predicted with.
struct Setup {
  const std::string& table;  ///< its file
  bool machine_given;        ///< by the caller, for all rows
  const MachineFacts& facts;
  PredictOptions options;
  const ParamCatalog& catalog;
};

Scenario scenario_of(const Group& group, const Setup& setup) {
  const MeasuredRow& row = group.front()->measured;
  std::set<Bytes> sizes;
  for (const ComparedRow* const r : group) sizes.insert(Bytes{r->measured.bytes});
  Scenario scenario;
  scenario.nodes = static_cast<std::uint32_t>(row.hosts);
  scenario.op = row.op;
  scenario.sizes.assign(sizes.begin(), sizes.end());
  scenario.memory_paths = {row.memory_path.empty() ? "gdr" : row.memory_path};
  scenario.env = env_of(row);
  scenario.nccl_version = row.nccl;
  scenario.nccl_version_place = {setup.table, row.line, 0};
  scenario.set = settings_of(row, setup.facts);
  for (ScenarioSetting& setting : scenario.set) setting.place = {setup.table, 0, 0};
  return scenario;
}

/// Takes out of a row's scenario what the options say otherwise: what that is.
std::set<std::string> leave_to_options(Scenario& scenario, const PredictOptions& options) {
  std::set<std::string> keys;
  std::erase_if(scenario.set, [&](const ScenarioSetting& of_row) {
    const auto at = std::find_if(options.set.rbegin(), options.set.rend(),
                                 [&](const ScenarioSetting& s) { return s.key == of_row.key; });
    if (at == options.set.rend()) return false;
    if (at->value != of_row.value) keys.insert(of_row.key);
    return true;
  });
  std::erase_if(scenario.env, [&](const auto& of_row) {
    const auto at = options.env.find(of_row.first);
    if (at == options.env.end()) return false;
    if (at->second != of_row.second) keys.insert(of_row.first);
    return true;
  });
  const auto& release = options.nccl_version;
  if (release && !scenario.nccl_version.empty() && scenario_nccl_version(scenario) != *release) {
    keys.insert("nccl");
  }
  return keys;
}

/// How a prediction differs from what was measured; "" if it does not.
std::string difference(const MeasuredRow& measured, const ResultRow& predicted) {
  if (!predicted.nccl_choice.empty()) {
    return "NCCL runs " + predicted.nccl_choice + ", which weft does not execute";
  }
  if (predicted.ranks != measured.ranks || predicted.nodes != measured.hosts) {
    return fmt::format("with these options it is {} GPUs on {} nodes", predicted.ranks,
                       predicted.nodes);
  }
  if (!measured.memory_path.empty() && predicted.memory_path != measured.memory_path) {
    return "on this machine it is " + predicted.memory_path;
  }
  if (is_point_to_point(parse_op(measured.op))) return "";
  const bool same_algo = measured.algo == "auto" || measured.algo == predicted.algo;
  const bool same_proto = measured.proto == "auto" || measured.proto == predicted.proto;
  if (same_algo && same_proto) return "";
  return "weft runs " + predicted.algo + " " + predicted.proto + " instead";
}

/// Takes a row's prediction, unless it was stopped before that.
void take(const RunResult& result, ComparedRow& row) {
  const auto at = std::find_if(result.rows.begin(), result.rows.end(),
                               [&](const ResultRow& r) { return r.bytes == row.measured.bytes; });
  if (at == result.rows.end()) return;
  row.not_predicted = difference(row.measured, *at);
  if (row.not_predicted.empty()) row.predicted = *at;
}

/// What the predictions of all groups say beside their rows, gathered as they end.
class Gathered {
 public:
  void add(const RunResult& result, const std::set<std::string>& left_to_options) {
    const std::lock_guard lock(mutex_);
    left_to_options_.insert(left_to_options.begin(), left_to_options.end());
    ++results_;
    for (const std::string& note : std::set(result.notes.begin(), result.notes.end())) {
      // What was measured is no question of scale.
      if (is_scale_note(note)) continue;
      ++notes_[note];
    }
    for (const ProvenanceParam& p : result.provenance.params) {
      params_.emplace(p.key, p.device, p.value, p.origin, p.source);
    }
  }

  /// Those that all of them have, and what the table does not decide.
  std::vector<std::string> notes() const {
    std::vector<std::string> out;
    for (const auto& [note, times] : notes_) {
      if (times == results_) out.push_back(note);
    }
    if (!left_to_options_.empty()) {
      out.push_back(fmt::format("set by the user in place of what rows say: {}",
                                fmt::join(left_to_options_, ", ")));
    }
    return out;
  }

  /// Every value that any of them was made with, by key.
  std::vector<ProvenanceParam> params() const {
    std::vector<ProvenanceParam> out;
    for (const auto& [key, device, value, origin, source] : params_) {
      out.push_back({key, device, value, origin, source});
    }
    return out;
  }

 private:
  using Param = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  std::mutex mutex_;
  std::size_t results_{0};
  std::map<std::string, std::size_t> notes_;  ///< how many have it
  std::set<Param> params_;
  std::set<std::string> left_to_options_;
};

RunResult predict_tool(const Group& group, const Scenario& scenario, const Setup& setup) {
  std::vector<const MeasuredRow*> rows;
  for (const ComparedRow* const row : group) rows.push_back(&row->measured);
  return predict_tool_rows(rows, setup.facts.file, scenario.set, setup.options, setup.catalog);
}

/// Why there is no prediction; "" if there is one. Rows that a stop came before are left as they
/// are.
std::string try_to_predict(const Group& group, const Setup& setup, Gathered& gathered) {
  try {
    Scenario scenario = scenario_of(group, setup);
    std::set<std::string> left = leave_to_options(scenario, setup.options);
    if (setup.machine_given && !group.front()->measured.machine.empty()) left.insert("machine");
    const MeasuredRow& first = group.front()->measured;
    const bool of_tool = is_perftest(first) || is_copy(first);
    const RunResult result =
        of_tool ? predict_tool(group, scenario, setup)
                : predict(scenario, setup.facts.file, setup.options, setup.catalog);
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (of_tool && i < result.rows.size()) group[i]->predicted = result.rows[i];
      if (!of_tool) take(result, *group[i]);
    }
    gathered.add(result, left);
    return "";
  } catch (const InputError& e) {
    return e.what();
  }
}

/// Throws Stopped.
void predict_group(const Group& group, const Setup& setup, Gathered& gathered) {
  const std::string why = try_to_predict(group, setup, gathered);
  if (why.empty()) return;
  // It may be the largest sizes that are more than a simulation takes.
  std::map<std::int64_t, Group> sizes;
  for (ComparedRow* const row : group) sizes[row->measured.bytes].push_back(row);
  Setup of_size = setup;
  of_size.options.on_progress = {};  // a size alone is no share of the group
  bool is_refused = sizes.size() == 1;
  for (const auto& [bytes, rows] : sizes) {
    is_refused = is_refused || !try_to_predict(rows, of_size, gathered).empty();
    if (!is_refused) continue;
    for (ComparedRow* const row : rows) row->not_predicted = why;
  }
}

/// Predicts them all, until it is stopped.
void predict_groups(const std::vector<Group>& groups, std::vector<Setup>& setups,
                    const PredictOptions& options, Gathered& gathered) {
  std::vector<std::size_t> rows;
  for (const Group& group : groups) rows.push_back(group.size());
  JointProgress progress(rows, options.on_progress);
  parallel_for(groups.size(), options.threads, [&](std::size_t i) {
    setups[i].options.on_progress = [&progress, i](const RunProgress& p) { progress.is_at(i, p); };
    try {
      if (options.stop != nullptr) options.stop->check();
      predict_group(groups[i], setups[i], gathered);
    } catch (const Stopped&) {
      return;
    }
    progress.is_at(i, groups[i].size(), 1);
  });
}

std::string machine_file(const MeasuredTable& table, const MeasuredRow& row) {
  const std::filesystem::path folder = std::filesystem::path(table.file).parent_path();
  return (folder / row.machine).lexically_normal().string();
}

/// The machines of rows, each read once, in the order of the rows.
class Machines {
 public:
  /// `given`: of all rows; null: each row names its own, by a path from the table's folder.
  Machines(const MeasuredTable& table, const TopologySpec* given, const PredictOptions& options,
           const ParamCatalog& catalog)
      : table_{table}, given_{given}, options_{options}, catalog_{catalog} {}

  bool is_given() const { return given_ != nullptr; }

  const MachineFacts& of(const MeasuredRow& row) {
    const std::string file = given_ != nullptr ? "" : file_of(row);
    const auto known = facts_.find(file);
    if (known != facts_.end()) return known->second;
    const TopologySpec spec = given_ != nullptr ? *given_ : read_topology(file, catalog_);
    const MachineFacts& facts =
        facts_.emplace(file, facts_of(spec, options_, catalog_)).first->second;
    if (facts_.size() == 1) {
      provenance_ = facts.provenance;
    } else {
      provenance_.topology += ", " + facts.provenance.topology;
      provenance_.topology_digest += ", " + facts.provenance.topology_digest;
      provenance_.topology_source += "; " + facts.provenance.topology_source;
    }
    return facts;
  }

  /// What all of them have in common, their names and digests one after the other.
  const Provenance& provenance() const { return provenance_; }

 private:
  std::string file_of(const MeasuredRow& row) const {
    if (row.machine.empty()) {
      throw InputError(Place{table_.file, row.line, 0},
                       "names no machine; write column 'machine' or --machine FILE");
    }
    return machine_file(table_, row);
  }

  const MeasuredTable& table_;
  const TopologySpec* given_;
  const PredictOptions& options_;
  const ParamCatalog& catalog_;
  std::map<std::string, MachineFacts> facts_;
  Provenance provenance_;
};

/// What joins the GPUs of a run, in a measured table's word; "" if it has none.
std::string transport_of(const ResultRow& row, const Provenance& provenance,
                         const TopologySpec& machine) {
  if (row.nodes > 1) return "net";
  std::map<std::string, std::string> env;
  for (const std::string& entry : provenance.env) {
    const ScenarioSetting said = parse_setting(entry);
    env[said.key] = said.value;
  }
  if (parse_nccl_env(env).p2p_level == NcclPathType::kLoc) return "shm";
  return has_nvlink(machine) ? "nvlink" : "";
}

/// The row of a measured table that would be run as this one was.
MeasuredRow measured_form(const ResultRow& row, const Provenance& provenance,
                          const TopologySpec& machine) {
  MeasuredRow out;
  out.transport = transport_of(row, provenance, machine);
  if (out.transport == "net") out.memory_path = row.memory_path;
  out.hosts = row.nodes;
  out.ranks = row.ranks;
  out.algo = row.algo;
  out.proto = row.proto;
  out.channels = row.channels;
  out.op = row.op;
  out.bytes = row.bytes;
  for (const ProvenanceParam& p : provenance.params) {
    if (p.key == "nccl.launch") out.launch = p.value;
  }
  return out;
}

/// How rows of measured tables may name a release: "2.21.0", "2.21"; the default not at all.
std::vector<std::string> names_of_release(const std::string& release) {
  std::vector<std::string> out{release};
  if (release.ends_with(".0")) out.push_back(release.substr(0, release.size() - 2));
  if (release == NcclVersion{}.text()) out.emplace_back();
  return out;
}

Comparison compare_on(Machines& machines, MeasuredTable table, const PredictOptions& options,
                      const ParamCatalog& catalog) {
  drop_unmodelled_releases(table);
  Comparison out;
  out.measured = table.file;
  out.measured_digest = fmt::format("{:016x}", table.digest);
  for (const MeasuredRow& row : table.rows) {
    out.rows.push_back({row});
    out.rows.back().not_predicted = obstacle(row, machines.of(row));
  }
  mark_stalls(out.rows);
  const std::vector<Group> groups = groups_of(out.rows);
  PredictOptions of_group = options;
  of_group.threads = threads_each(groups.size(), options.threads);
  std::vector<Setup> setups;
  for (const Group& group : groups) {
    const MachineFacts& facts = machines.of(group.front()->measured);
    setups.push_back({table.file, machines.is_given(), facts, of_group, catalog});
  }
  Gathered gathered;
  predict_groups(groups, setups, options, gathered);
  for (ComparedRow& row : out.rows) {
    row.is_stopped = !row.predicted && row.not_predicted.empty();
    if (row.is_stopped) row.not_predicted = "stopped before it was run";
  }
  out.notes = table.notes;
  const std::vector<std::string> gathered_notes = gathered.notes();
  out.notes.insert(out.notes.end(), gathered_notes.begin(), gathered_notes.end());
  out.provenance = machines.provenance();
  out.provenance.params = gathered.params();
  return out;
}

}  // namespace

std::vector<ScenarioSetting> settings_of_cell(const std::string& text) {
  std::vector<ScenarioSetting> entries;
  for (const std::string& entry : entries_of_cell(text)) {
    entries.push_back(parse_setting(entry));
    entries.back().value = unquoted(entries.back().value);
  }
  return entries;
}

void drop_unmodelled_releases(MeasuredTable& table) {
  if (!table.is_log) return;
  std::set<std::string> noted;
  for (MeasuredRow& row : table.rows) {
    if (row.nccl.empty()) continue;
    try {
      parse_nccl_version(row.nccl);
    } catch (const InputError&) {
      if (noted.insert(row.nccl).second) {
        table.notes.push_back(
            fmt::format("{}: NCCL {} is not modelled: decisions are those of --nccl-version, or {}",
                        table.run_place(row).text(), one_line(row.nccl), NcclVersion{}.text()));
      }
      row.nccl.clear();
    }
  }
}

std::set<std::string> machine_files(const MeasuredTable& table) {
  std::set<std::string> out;
  for (const MeasuredRow& row : table.rows) {
    if (!row.machine.empty()) out.insert(machine_file(table, row));
  }
  return out;
}

Comparison compare(const MeasuredTable& table, const TopologySpec& machine,
                   const PredictOptions& options, const ParamCatalog& catalog) {
  Machines machines(table, &machine, options, catalog);
  return compare_on(machines, table, options, catalog);
}

Comparison compare(const MeasuredTable& table, const PredictOptions& options,
                   const ParamCatalog& catalog) {
  Machines machines(table, nullptr, options, catalog);
  return compare_on(machines, table, options, catalog);
}

std::set<std::string> releases_of(const Comparison& comparison, const PredictOptions& options) {
  std::set<std::string> out;
  for (const ComparedRow& row : comparison.rows) {
    if (!row.predicted || is_perftest(row.measured) || is_copy(row.measured)) continue;
    NcclVersion release;
    if (options.nccl_version) {
      release = *options.nccl_version;
    } else if (!row.measured.nccl.empty()) {
      release = parse_nccl_version(row.measured.nccl);
    }
    out.insert(release.text());
  }
  return out;
}

Scenario scenario_of(const MeasuredRow& row, const std::string& table, const TopologySpec& machine,
                     const PredictOptions& options, const ParamCatalog& catalog) {
  const MachineFacts facts = facts_of(machine, options, catalog);
  ComparedRow compared{row};
  Scenario scenario = scenario_of(Group{&compared}, {table, true, facts, options, catalog});
  leave_to_options(scenario, options);
  return scenario;
}

void add_intervals(RunResult& result, const TopologySpec& machine,
                   const ErrorIntervals& intervals) {
  const std::vector<std::string> releases = names_of_release(result.provenance.nccl_version);
  for (ResultRow& row : result.rows) {
    const MeasuredRow forced = measured_form(row, result.provenance, machine);
    MeasuredRow chosen = forced;
    chosen.algo = chosen.proto = "auto";
    const ErrorInterval* of_class = nullptr;
    for (MeasuredRow as_measured : {forced, chosen}) {
      for (const std::string& release : releases) {
        as_measured.nccl = release;
        if (of_class == nullptr) of_class = intervals.find(as_measured);
      }
    }
    if (of_class != nullptr) row.interval = *of_class;
  }
  if (intervals.classes.empty()) return;
  std::vector<const std::optional<ErrorInterval>*> found;
  for (const ResultRow& row : result.rows) found.push_back(&row.interval);
  for (std::string& note : notes_on(found)) result.notes.push_back(std::move(note));
}

}  // namespace weft
