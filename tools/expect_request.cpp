#include "tools/expect_request.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "models/expect/gate.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/base/operation.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/text_kind.hpp"
#include "tools/listed_gpus.hpp"
#include "tools/perftest_request.hpp"
#include "tools/predict_asked.hpp"

namespace weft {
namespace {

constexpr std::int64_t kMostMeasuredBytes = 16LL << 20;
constexpr std::array<std::string_view, 3> kTools{"nccl-tests", "perftest", "nvbandwidth"};

bool is_of_perftest(const ExpectAsked& asked) { return asked.tool == "perftest"; }

void check_tool(const std::string& tool) {
  if (std::find(kTools.begin(), kTools.end(), tool) == kTools.end()) {
    throw InputError("--tool '" + tool +
                     "': unknown; known: " + known_names({kTools.begin(), kTools.end()}));
  }
  if (tool != "nvbandwidth") return;
  throw InputError(
      "--tool nvbandwidth: no interval can be given: the copies that weft was held against are of "
      "one machine, and its parameters were made from them; weft copies predicts without one");
}

std::vector<std::string> ops_of(const ExpectAsked& asked) {
  check_tool(asked.tool);
  const bool of_perftest = is_of_perftest(asked);
  const std::vector<std::string> usual{of_perftest ? "write_bw" : "allreduce"};
  const bool of_either = asked.measured.has_value();  // the file says what it is of
  std::vector<std::string> out;
  for (const std::string& op : asked.ops.empty() ? usual : asked.ops) {
    const bool is_rdma =
        std::find(kPerftestOps.begin(), kPerftestOps.end(), op) != kPerftestOps.end();
    if (of_perftest && !of_either && !is_rdma) {
      throw InputError("--op '" + op + "': perftest's are " +
                       known_names({kPerftestOps.begin(), kPerftestOps.end()}));
    }
    const bool as_it_is = is_rdma && (of_perftest || of_either);
    out.push_back(as_it_is ? op : std::string(op_name(parse_op(op))));
    if (std::count(out.begin(), out.end(), out.back()) > 1) {
      throw InputError("--op '" + op + "': given twice");
    }
  }
  return out;
}

std::string memory_of(const ExpectAsked& asked) {
  const bool of_perftest = is_of_perftest(asked);
  const std::string& memory = asked.memory;
  if (memory.empty() || memory == "gdr" || memory == (of_perftest ? "host" : "host-staged")) {
    return memory;
  }
  throw InputError("--memory " + memory + ": of " + asked.tool + " it is gdr or " +
                   (of_perftest ? "host" : "host-staged"));
}

/// Powers of two from 8 B to 8 GiB, of perftest from 8 KiB to 8 MiB.
std::vector<Bytes> usual_sizes(bool of_perftest) {
  std::vector<Bytes> out;
  const Bytes last = of_perftest ? Bytes::mib(8) : Bytes::gib(8);
  for (Bytes size = of_perftest ? Bytes::kib(8) : Bytes{8}; size <= last; size = size * 2) {
    out.push_back(size);
  }
  return out;
}

ExpectRequest request_of(const ExpectAsked& asked) {
  ExpectRequest out;
  const bool of_perftest = is_of_perftest(asked);
  out.ops = ops_of(asked);
  out.memory_path = memory_of(asked);
  out.qps = asked.qps;
  out.tx_depth = asked.tx_depth;
  out.sizes = asked.sizes.empty() ? usual_sizes(of_perftest) : asked.sizes;
  if (of_perftest) {
    for (const Bytes bytes : out.sizes) check_message_size(bytes);
    if (asked.nodes > 0 && asked.nodes != 2) {
      throw InputError("--nodes: perftest runs between 2");
    }
  } else if (asked.qps != 1 || asked.tx_depth != 128) {
    throw InputError("--qps and --tx-depth go with --tool perftest");
  }
  if (out.qps < 1 || out.tx_depth < 1) throw InputError("--qps, --tx-depth: 1 at least");
  check_at_most("--qps", asked.qps, kMostQps);
  check_at_most("--tx-depth", asked.tx_depth, kMostDepth);
  check_at_most("--nodes", asked.nodes, kMostExpectNodes);
  if (asked.nodes > 0) out.nodes = asked.nodes;
  out.options = asked.predict;
  out.options.set.clear();
  return out;
}

/// HOST=FILE, and no file's own name.
bool names_host(const std::string& file) {
  return file.find('=') != std::string::npos && !std::filesystem::exists(file);
}

bool is_evidence(const std::vector<std::string>& files, const std::string& text) {
  const TextKind kind = kind_of(text);
  return files.size() > 1 || names_host(files.front()) || is_folder(files.front()) ||
         is_tar(text) || kind == TextKind::kEvidence ||
         (kind != TextKind::kTopology && lists_devices(text));
}

/// Whether a row or a floor is of the operations, sizes and nodes that were asked for.
std::function<bool(const GateKey&)> choice_of(const ExpectAsked& asked) {
  const std::vector<std::string> ops = asked.ops.empty() ? asked.ops : ops_of(asked);
  return [ops, sizes = asked.sizes, nodes = asked.nodes](const GateKey& key) {
    const auto has = [](const auto& all, const auto& one) {
      return all.empty() || std::find(all.begin(), all.end(), one) != all.end();
    };
    return has(ops, key.op) && has(sizes, Bytes{key.bytes}) && (nodes == 0 || key.nodes == nodes);
  };
}

/// Its rows that were asked for.
MeasuredTable chosen(MeasuredTable table, const ExpectAsked& asked) {
  const auto is_asked = choice_of(asked);
  std::erase_if(table.rows, [&](const MeasuredRow& row) { return !is_asked(key_of(row)); });
  if (table.rows.empty()) {
    throw InputError(table.file + ": no row is of the operations, sizes and nodes asked for");
  }
  return table;
}

/// Those of what was measured, between GPUs that are joined so.
MeasuredTable measured_of(const ExpectAsked& asked, const std::string& inside,
                          const PathBetween& between) {
  return chosen(parse_measured_on(asked.measured->read(kMostMeasuredBytes), asked.measured->file,
                                  parse_stated(asked.as), inside, between),
                asked);
}

void refuse_with_gate(const ExpectAsked& asked) {
  if (!asked.measured) {
    throw InputError("a gate's floors are for --measured FILE; to make others give a topology");
  }
  if (asked.makes_gate) throw InputError("--gate: the floors are given already");
  const PredictOptions& p = asked.predict;
  if (!p.set.empty() || !p.env.empty() || p.nccl_version || !asked.memory.empty()) {
    throw InputError("a gate is held against what was measured as it is: nothing can be set");
  }
}

Judgement judged(const Subject& subject, const ExpectRequest& request, const ExpectAsked& asked,
                 const ParamCatalog& catalog) {
  const MachineCase& machine = subject.healthy;
  const std::string inside =
      transport_inside(machine, subject.healthy_set, request.options, catalog);
  const auto between = [&](Op op) {
    if (!request.memory_path.empty()) return request.memory_path;
    if (machine.spec.network.kind == NetworkSpec::Kind::kNone) return std::string("gdr");
    // Logs of several nodes are of as many as they name; the path is the same for all.
    const std::uint32_t nodes = std::max(2U, request.nodes.value_or(machine.spec.nodes));
    return memory_path_of(op, machine, subject.healthy_set, nodes, request.options, catalog);
  };
  const MeasuredTable measured = measured_of(asked, inside, between);
  Judgement out = judge(measured, subject, request.options, catalog);
  if (std::string other = other_gpus(measured, machine.spec); !other.empty()) {
    out.notes.insert(out.notes.begin(), std::move(other));
  }
  return out;
}

Subject subject_of(const ExpectAsked& asked, const std::string& text, const ParamCatalog& catalog) {
  const std::vector<ScenarioSetting>& set = asked.predict.set;
  if (asked.topology || !is_evidence(asked.machine, text)) {
    const std::string& file = asked.topology ? asked.topology->file : asked.machine.front();
    return subject_of(parse_topology(text, file, catalog), set, catalog);
  }
  std::optional<std::uint32_t> nodes;
  if (asked.nodes > 0) nodes = asked.nodes;
  return subject_of(read_evidence(asked.machine), nodes, asked.gpu, set, catalog);
}

/// The machine's one file; "" if they are several, or their hosts are named.
std::string text_of(const ExpectAsked& asked) {
  if (asked.topology) return asked.topology->read();
  if (asked.machine.empty()) throw InputError("machine is required");
  const std::string& first = asked.machine.front();
  const bool is_one = asked.machine.size() == 1 && !names_host(first) && !is_folder(first);
  return is_one ? read_text_file(first) : "";
}

ExpectAnswer answer_for(const ExpectAsked& asked) {
  const std::string text = text_of(asked);
  if (!asked.topology && is_gate(text)) {
    refuse_with_gate(asked);
    const Gate gate = parse_gate(text, asked.machine.front());
    const MeasuredTable table = measured_of(asked, "nvlink", [](Op) { return std::string("gdr"); });
    refuse_gate_of_others(table, gate);
    Judgement out = judge(table, gate, asked.predict.stop);
    add_notes(notes_of_unmeasured(table, gate, choice_of(asked)), "", out.notes);
    return out;
  }
  ExpectRequest request = request_of(asked);
  const ParamCatalog catalog = make_catalog();
  Subject subject = subject_of(asked, text, catalog);
  subject.is_fitted = asked.is_fitted;
  if (!subject.nccl_version.empty() && !request.options.nccl_version) {
    request.options.nccl_version = parse_nccl_version(subject.nccl_version);
  }
  if (asked.measured) {
    if (asked.makes_gate) throw InputError("--gate goes without --measured");
    return judged(subject, request, asked, catalog);
  }
  if (!asked.as.empty()) throw InputError("--as goes with --measured");
  return expect(subject, request, catalog);
}

}  // namespace

ExpectAnswer answer_of(const ExpectAsked& asked) {
  try {
    return answer_for(asked);
  } catch (const Stopped&) {
    throw Stopped("stopped before all sizes were predicted");
  }
}

}  // namespace weft
