#include "models/expect/expect.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "models/collective/settled.hpp"
#include "models/collective/tool_rows.hpp"
#include "models/nccl/decide/decided_schedule.hpp"
#include "models/params/device_params.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lower_case.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// A case with what the user says beside.
struct Asked {
  const MachineCase& machine;
  const std::vector<ScenarioSetting>& set;
  const ExpectRequest& request;
  const ParamCatalog& catalog;
  bool is_fitted{false};
};

Scenario scenario_of(const MachineCase& machine, std::uint32_t nodes) {
  Scenario out;
  out.nodes = nodes;
  out.env = machine.env;
  return out;
}

PredictOptions options_of(const PredictOptions& options, const std::vector<ScenarioSetting>& set) {
  PredictOptions out = options;
  out.set = set;
  return out;
}

/// One node of a machine with what the user sets.
Settled settled(const MachineCase& machine, const std::vector<ScenarioSetting>& set,
                const PredictOptions& options, Params& params) {
  return settle(scenario_of(machine, 1), machine.spec, options_of(options, set), params);
}

/// What of a machine decides which errors speak of it.
struct Kind {
  std::string transport;
  std::string unlike;
  std::string beside;
  bool is_fitted{false};
};

ExpectedRow expected(ResultRow row, const Kind& kind, const ExpectRequest& request,
                     const std::vector<KnownError>& known) {
  const ErrorQuery query{.transport = kind.transport,
                         .memory_path = kind.transport == "net" ? row.memory_path : "",
                         .nodes = row.nodes,
                         .ranks = row.ranks,
                         .op = row.op,
                         .bytes = row.bytes,
                         .qps = request.qps,
                         .tx_depth = request.tx_depth,
                         .unlike = kind.unlike,
                         .beside = kind.beside,
                         .is_fitted = kind.is_fitted};
  ErrorBand band =
      row.nccl_choice.empty()
          ? error_band(query, known)
          : uncovered_band("NCCL runs " + row.nccl_choice + ", which weft does not execute", known);
  return {std::move(row), std::move(band), request.qps, request.tx_depth};
}

RunResult predicted(const Asked& asked, const std::string& op, std::uint32_t nodes,
                    const std::string& memory_path) {
  Scenario scenario = scenario_of(asked.machine, nodes);
  scenario.name = "expect";
  scenario.op = op;
  scenario.sizes = asked.request.sizes;
  scenario.memory_paths = {memory_path};
  RunResult out = predict(scenario, asked.machine.spec,
                          options_of(asked.request.options, asked.set), asked.catalog);
  if (!out.not_run.empty()) throw Stopped("stopped");
  return out;
}

/// As NCCL decides, unless the user or a log of it says otherwise.
std::string path_of(const Asked& asked, const std::string& op, std::uint32_t nodes) {
  if (!asked.request.memory_path.empty()) return asked.request.memory_path;
  if (asked.machine.is_staged) return "host-staged";
  return memory_path_of(parse_op(op), asked.machine, asked.set, nodes, asked.request.options,
                        asked.catalog);
}

ExpectedState of_collectives(const Asked& asked, const std::string& state, Provenance& provenance) {
  const std::vector<KnownError> known = known_errors();
  const std::uint32_t nodes = asked.request.nodes.value_or(asked.machine.spec.nodes);
  const Kind kind{
      nodes > 1 ? "net"
                : transport_inside(asked.machine, asked.set, asked.request.options, asked.catalog),
      unlike_measured(asked.machine, asked.set, nodes > 1 ? Where::kBetweenNodes : Where::kInNode,
                      asked.request.options, asked.catalog),
      nodes > 1 ? beside_measured(asked.machine, asked.set, asked.request.options, asked.catalog)
                : "",
      asked.is_fitted};
  ExpectedState out{state, {}, {}};
  for (const std::string& op : asked.request.ops) {
    RunResult run = predicted(asked, op, nodes, path_of(asked, op, nodes));
    for (ResultRow& row : run.rows) {
      out.rows.push_back(expected(std::move(row), kind, asked.request, known));
    }
    add_notes(run.notes, "", out.notes);
    provenance = std::move(run.provenance);
  }
  return out;
}

ExpectedState of_perftest(const Asked& asked, const std::string& state, Provenance& provenance) {
  const std::vector<KnownError> known = known_errors();
  const Kind kind{"net",
                  unlike_measured(asked.machine, asked.set, Where::kPerftest, asked.request.options,
                                  asked.catalog),
                  "", asked.is_fitted};
  ExpectedState out{state, {}, {}};
  for (const std::string& op : asked.request.ops) {
    std::vector<MeasuredRow> rows;
    for (const Bytes size : asked.request.sizes) {
      MeasuredRow row;
      row.transport = "net";
      row.memory_path = asked.request.memory_path.empty() ? "gdr" : asked.request.memory_path;
      row.hosts = row.ranks = 2;
      row.op = op;
      row.bytes = size.count();
      row.qps = asked.request.qps;
      row.tx_depth = asked.request.tx_depth;
      rows.push_back(std::move(row));
    }
    std::vector<const MeasuredRow*> pointers;
    for (const MeasuredRow& row : rows) pointers.push_back(&row);
    const PredictOptions options = options_of(asked.request.options, asked.set);
    RunResult run = predict_tool_rows(pointers, asked.machine.spec, {}, options, asked.catalog);
    for (ResultRow& row : run.rows) {
      out.rows.push_back(expected(std::move(row), kind, asked.request, known));
    }
    provenance = provenance_of(Scenario{}, options, asked.machine.spec);
    provenance.params = std::move(run.provenance.params);
  }
  return out;
}

bool differ(const ExpectedState& a, const ExpectedState& b) {
  const auto same = [](const ExpectedRow& x, const ExpectedRow& y) {
    return x.row.time_us == y.row.time_us && x.row.memory_path == y.row.memory_path &&
           x.basis() == y.basis();
  };
  return !std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(), same);
}

/// Products that were measured; a B300's NVLinks are a B200's.
constexpr std::array<std::string_view, 8> kGpus{"a100-sxm", "h100-sxm", "h200-sxm", "h200-vm",
                                                "b200-sxm", "b300-sxm", "gh200",    "gb200"};

/// Whether one NVLink, or two by an NVSwitch, join each GPU with each other.
bool joins_each_with_each(const NodeSpec& node) {
  std::map<std::string_view, std::set<std::string_view>> beside;
  for (const PeerLinkSpec& link : node.links) {
    if (link.kind != LinkKind::kNvlink) continue;
    beside[link.a].insert(link.b);
    beside[link.b].insert(link.a);
  }
  std::vector<std::string_view> gpus;
  std::set<std::string_view> switches;
  for (const DeviceSpec& device : node.devices) {
    if (device.kind == DeviceKind::kGpu) gpus.push_back(device.name);
    if (device.kind == DeviceKind::kNvSwitch) switches.insert(device.name);
  }
  const auto joined = [&](std::string_view a, std::string_view b) {
    const std::set<std::string_view>& next = beside[a];
    return next.contains(b) || std::any_of(next.begin(), next.end(), [&](std::string_view at) {
             return switches.contains(at) && beside[at].contains(b);
           });
  };
  for (const std::string_view a : gpus) {
    for (const std::string_view b : gpus) {
      if (a != b && !joined(a, b)) return false;
    }
  }
  return true;
}

std::string unlike_gpus(const NodeSpec& node, Where where) {
  std::size_t count = 0;
  for (const DeviceSpec& device : node.devices) {
    if (device.kind != DeviceKind::kGpu) continue;
    ++count;
    if (std::find(kGpus.begin(), kGpus.end(), device.part) == kGpus.end()) {
      return "no published run of GPUs like " +
             (device.part.empty() ? device.name + ", of no named part" : device.part);
    }
  }
  if (where == Where::kBetweenNodes && count < 2) return "no published run of one GPU a node";
  if (!joins_each_with_each(node)) {
    return "no published run of GPUs that NVLink does not join each with each";
  }
  return "";
}

std::string unlike_nics(const NodeSpec& node, const Params& params) {
  const ParamSpec& rate = params.catalog().require("nic.rate");
  for (const DeviceSpec& device : node.devices) {
    if (device.kind != DeviceKind::kNic) continue;
    if (device.name.find("bond") != std::string::npos) {
      return device.name + " is a bond of ports, which is not modelled";
    }
    if (!device.part.empty()) {
      if (device.part.starts_with("connectx-") || device.part.starts_with("bluefield-")) continue;
      return "no published run over NICs like " + device.part;
    }
    const ParamValue of_it = params.get("nic.rate", {device.name, {}, &device.settings});
    if (of_it.source == rate.source) {
      return "nothing says the rate of " + device.name + ": nic.rate, " +
             ParamCatalog::format(rate, of_it.number) + ", is the declared default";
    }
  }
  return "";
}

/// Data that GPUDirect RDMA moves goes through a root complex there, or a guest hides its switches.
std::string unlike_tree(const NodeSpec& node) {
  const bool any = std::any_of(node.devices.begin(), node.devices.end(),
                               [](const DeviceSpec& d) { return d.kind == DeviceKind::kSwitch; });
  return any ? "" : "no published run of several nodes that show no PCIe switches";
}

/// What the user forces, in small letters; "" where NCCL chooses.
std::string forced(const std::string& variable, std::string_view choice) {
  return lower_case(!variable.empty()  ? std::string_view(variable)
                    : choice == "auto" ? ""
                                       : choice);
}

std::string unlike_choice(const Settled& asked, const Params& params, Where where) {
  const std::string algo = forced(asked.env.algo, params.choice("nccl.algo"));
  const std::string proto = forced(asked.env.proto, params.choice("nccl.proto"));
  if (!proto.empty() && proto != "simple") {
    return "no published run that NCCL_PROTO=" + proto + " forces";
  }
  const bool is_measured =
      algo.empty() || algo == "ring" ||
      (where == Where::kInNode ? algo == "nvls" : algo == "tree" || algo == "nvlstree");
  return is_measured ? "" : "no published run that NCCL_ALGO=" + algo + " forces";
}

/// What NCCL decides over GPUDirect RDMA; nullopt where weft cannot follow it, or is not to.
std::optional<NcclRun> gdr_run(const MachineCase& machine, const std::vector<ScenarioSetting>& set,
                               std::uint32_t nodes, const PredictOptions& options,
                               const ParamCatalog& catalog) {
  const PartLibrary parts(catalog);
  Params params(catalog);
  Settled asked =
      settle(scenario_of(machine, nodes), machine.spec, options_of(options, set), params);
  const std::uint32_t count = asked.spec.nodes;
  const Fabric fabric(std::move(asked.spec), count);
  const DeviceParams devices(fabric, params, parts, NodesAre::kAlike);
  if (params.choice("nccl.decisions") == "simple") return std::nullopt;
  auto made = decide_run(devices, MemoryPath::kGdr, asked.env, asked.version);
  auto* const run = std::get_if<NcclRun>(&made);
  return run == nullptr ? std::nullopt : std::optional(std::move(*run));
}

}  // namespace

std::string unlike_measured(const MachineCase& machine, const std::vector<ScenarioSetting>& set,
                            Where where, const PredictOptions& options,
                            const ParamCatalog& catalog) {
  Params params(catalog);
  const Settled asked = settled(machine, set, options, params);
  if (where == Where::kPerftest) return unlike_nics(asked.spec.node, params);
  std::string out = unlike_gpus(asked.spec.node, where);
  if (where == Where::kBetweenNodes) {
    if (out.empty()) out = unlike_nics(asked.spec.node, params);
    if (out.empty()) out = unlike_tree(asked.spec.node);
  }
  if (out.empty()) out = unlike_choice(asked, params, where);
  if (!out.empty() || where != Where::kBetweenNodes) return out;
  const std::optional<NcclRun> run = gdr_run(machine, set, 2, options, catalog);
  if (!run || run->by_rings.path != MemoryPath::kNccl) return "";
  return "no published run with GPUDirect RDMA at some ends of NCCL's rings only (" +
         run->by_rings.declined.front().check.why + ")";
}

std::string beside_measured(const MachineCase& machine, const std::vector<ScenarioSetting>& set,
                            const PredictOptions& options, const ParamCatalog& catalog) {
  constexpr std::string_view kBetweenNodes = "h100-sxm";  // H800 have its part
  Params params(catalog);
  const Settled asked = settled(machine, set, options, params);
  for (const DeviceSpec& device : asked.spec.node.devices) {
    if (device.kind == DeviceKind::kGpu && device.part != kBetweenNodes) {
      return "no published run of several nodes of GPUs like " + device.part;
    }
  }
  return "";
}

double rounded_down(double value) {
  constexpr int kDigits = 3;
  if (!(value > 0)) return 0;
  const int exponent = static_cast<int>(std::floor(std::log10(value))) - (kDigits - 1);
  auto digits = static_cast<std::int64_t>(std::floor(value * std::pow(10.0, -exponent)));
  // By text, so that it is the number that people read; by one less where that lies above.
  const auto number = [&] { return *parse_number(fmt::format("{}e{}", digits, exponent)); };
  while (number() > value) --digits;
  return number();
}

double ExpectedRow::high() const {
  const double high = row.busbw_gb_per_s / band.time.low;
  if (row.most_gb_per_s == 0) return high;
  return std::max(row.busbw_gb_per_s, std::min(high, row.most_gb_per_s));
}

std::string ExpectedRow::basis() const {
  if (high() == row.busbw_gb_per_s / band.time.low) return band.basis;
  return band.basis + "; the upper end is what a link carries: " + row.most_by;
}

std::optional<double> ExpectedRow::floor() const {
  if (!band.is_covered) return std::nullopt;
  return rounded_down(low());
}

void add_notes(const std::vector<std::string>& notes, const std::string& prefix,
               std::vector<std::string>& out) {
  const auto has = [&](const std::string& note) {
    return std::find(out.begin(), out.end(), note) != out.end();
  };
  for (const std::string& note : notes) {
    if (!has(note) && !has(prefix + note)) out.push_back(prefix + note);
  }
}

std::set<std::string> gpu_parts_of(const NodeSpec& node) {
  std::set<std::string> out;
  for (const DeviceSpec& device : node.devices) {
    if (device.kind == DeviceKind::kGpu && !device.part.empty()) out.insert(device.part);
  }
  return out;
}

std::string memory_path_of(Op op, const MachineCase& machine,
                           const std::vector<ScenarioSetting>& set, std::uint32_t nodes,
                           const PredictOptions& options, const ParamCatalog& catalog) {
  if (nodes == 1) return "gdr";
  const std::optional<NcclRun> run = gdr_run(machine, set, nodes, options, catalog);
  return std::string(memory_path_name(run ? run->taken(op).path : MemoryPath::kGdr));
}

std::string transport_inside(const MachineCase& machine, const std::vector<ScenarioSetting>& set,
                             const PredictOptions& options, const ParamCatalog& catalog) {
  Params params(catalog);
  const Settled asked = settled(machine, set, options, params);
  std::map<std::string, std::string> env = machine.env;
  for (const auto& [name, value] : options.env) env[name] = value;
  const auto p2p = env.find("NCCL_P2P_DISABLE");
  if (p2p != env.end() && p2p->second != "0") return "shm";
  const auto& links = asked.spec.node.links;
  const bool any = std::any_of(links.begin(), links.end(), [](const PeerLinkSpec& link) {
    return link.kind == LinkKind::kNvlink;
  });
  return any ? "nvlink" : "pcie";
}

Expected expect(const Subject& subject, const ExpectRequest& request, const ParamCatalog& catalog) {
  const auto of = [&](const MachineCase& machine, const std::vector<ScenarioSetting>& set,
                      const std::string& state, Provenance& provenance) {
    const Asked asked{machine, set, request, catalog, subject.is_fitted};
    return are_perftest(request.ops) ? of_perftest(asked, state, provenance)
                                     : of_collectives(asked, state, provenance);
  };
  Expected out;
  out.healthy = of(subject.healthy, subject.healthy_set, "healthy", out.provenance);
  Params params(catalog);
  out.gpus = gpu_parts_of(
      settled(subject.healthy, subject.healthy_set, request.options, params).spec.node);
  out.mended = subject.mended;
  out.notes = subject.notes;
  if (subject.mended.empty()) return out;
  Provenance of_found;
  try {
    ExpectedState found = of(subject.found, subject.found_set, "found", of_found);
    if (differ(out.healthy, found)) out.found = std::move(found);
  } catch (const InputError& e) {
    out.why_not_found = e.what();
    out.notes.push_back("as found it cannot be predicted: " + out.why_not_found);
  }
  return out;
}

bool is_latency(std::string_view op) { return op.ends_with("_lat"); }

double latency_us(std::int64_t bytes, double gb_per_s) {
  return static_cast<double>(bytes) / gb_per_s / 1e3;
}

bool are_perftest(const std::vector<std::string>& ops) {
  const auto is_one = [](const std::string& op) {
    return std::find(kPerftestOps.begin(), kPerftestOps.end(), op) != kPerftestOps.end();
  };
  const auto count = static_cast<std::size_t>(std::count_if(ops.begin(), ops.end(), is_one));
  if (count > 0 && count < ops.size()) {
    throw InputError("--op: operations of nccl-tests and of perftest: ask for one at a time");
  }
  return count > 0;
}

}  // namespace weft
