#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/collective/settings.hpp"
#include "models/expect/expect.hpp"
#include "models/expect/gate.hpp"
#include "models/expect/judge.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/base/operation.hpp"
#include "sim/base/quantity.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "sim/io/text_kind.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/expect_report.hpp"
#include "tools/output_files.hpp"
#include "tools/perftest_request.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/stopping.hpp"

namespace weft {
namespace {

struct ExpectArguments {
  std::vector<std::string> machine;
  std::string tool{"nccl-tests"};
  std::string op;
  std::string size;
  std::string memory;
  unsigned nodes{0};
  unsigned qps{1};
  unsigned tx_depth{128};
  PredictArguments predict;
  std::string measured;
  std::string as;
  std::string gate;
  std::string json;
  std::string time_limit;
};

constexpr const char* kCollectiveSizes =
    "8,16,32,64,128,256,512,1K,2K,4K,8K,16K,32K,64K,128K,256K,512K,1M,2M,4M,8M,16M,32M,64M,128M,"
    "256M,512M,1G,2G,4G,8G";
constexpr const char* kMessageSizes = "8K,16K,32K,64K,128K,256K,512K,1M,2M,4M,8M";

[[noreturn]] void refuse_copies() {
  throw InputError(
      "--tool nvbandwidth: no interval can be given: the copies that weft was held against are of "
      "one machine, and its parameters were made from them; weft copies predicts without one");
}

std::vector<std::string> ops_of(const ExpectArguments& arguments) {
  if (arguments.tool == "nvbandwidth") refuse_copies();
  const bool of_perftest = arguments.tool == "perftest";
  std::vector<std::string> out;
  const bool of_either = !arguments.measured.empty();  // the file says what it is of
  for (const std::string& op : comma_separated(
           arguments.op.empty() ? (of_perftest ? "write_bw" : "allreduce") : arguments.op)) {
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

std::string memory_of(const ExpectArguments& arguments) {
  const bool of_perftest = arguments.tool == "perftest";
  const std::string& memory = arguments.memory;
  if (memory.empty() || memory == "gdr" || memory == (of_perftest ? "host" : "host-staged")) {
    return memory;
  }
  throw InputError("--memory " + memory + ": of " + arguments.tool + " it is gdr or " +
                   (of_perftest ? "host" : "host-staged"));
}

ExpectRequest request_of(const ExpectArguments& arguments, const PredictOptions& options) {
  ExpectRequest out;
  const bool of_perftest = arguments.tool == "perftest";
  out.ops = ops_of(arguments);
  out.memory_path = memory_of(arguments);
  out.qps = arguments.qps;
  out.tx_depth = arguments.tx_depth;
  const std::string& size = arguments.size;
  out.sizes = size_list(size.empty() ? (of_perftest ? kMessageSizes : kCollectiveSizes) : size);
  if (of_perftest) {
    for (const Bytes bytes : out.sizes) check_message_size(bytes);
    if (arguments.nodes > 0 && arguments.nodes != 2) {
      throw InputError("--nodes: perftest runs between 2");
    }
  } else if (arguments.qps != 1 || arguments.tx_depth != 128) {
    throw InputError("--qps and --tx-depth go with --tool perftest");
  }
  if (out.qps < 1 || out.tx_depth < 1) throw InputError("--qps, --tx-depth: 1 at least");
  if (arguments.nodes > 0) out.nodes = arguments.nodes;
  out.options = options;
  out.options.set.clear();
  return out;
}

/// HOST=FILE, and no file's own name.
bool names_host(const std::string& file) {
  return file.find('=') != std::string::npos && !std::filesystem::exists(file);
}

bool is_evidence(const std::vector<std::string>& files, const std::string& text) {
  return files.size() > 1 || names_host(files.front()) || is_tar(text) ||
         kind_of(text) == TextKind::kEvidence;
}

/// Rows of the operations and sizes that were asked for.
MeasuredTable chosen(MeasuredTable table, const ExpectArguments& arguments) {
  if (!arguments.op.empty()) {
    const std::vector<std::string> ops = ops_of(arguments);
    std::erase_if(table.rows, [&](const MeasuredRow& row) {
      return std::find(ops.begin(), ops.end(), row.op) == ops.end();
    });
  }
  if (!arguments.size.empty()) {
    const std::vector<Bytes> sizes = size_list(arguments.size);
    std::erase_if(table.rows, [&](const MeasuredRow& row) {
      return std::find(sizes.begin(), sizes.end(), Bytes{row.bytes}) == sizes.end();
    });
  }
  if (arguments.nodes > 0) {
    std::erase_if(table.rows, [&](const MeasuredRow& row) { return row.hosts != arguments.nodes; });
  }
  if (table.rows.empty()) {
    throw InputError(table.file + ": no row is of the operations, sizes and nodes asked for");
  }
  return table;
}

void tell(const Judgement& judgement, const ExpectArguments& arguments) {
  if (arguments.json != "-") std::cout << judgement_text(judgement) << std::flush;
  if (!arguments.json.empty()) write_text_file(arguments.json, judgement_json(judgement).dump());
  const std::size_t below = judgement.count(Judged::kBelow);
  if (below == 0) return;
  const auto first =
      std::find_if(judgement.rows.begin(), judgement.rows.end(),
                   [](const JudgedRow& row) { return row.judged == Judged::kBelow; });
  throw ExpectationMissed(fmt::format(
      "{} of {} rows are below the floor; the first: {} of {}, {:.6g} GB/s, floor {}", below,
      judgement.rows.size(), first->measured.op, format_size(Bytes{first->measured.bytes}),
      first->measured.busbw_gb_per_s, format_number(first->floor)));
}

void refuse_with_gate(const ExpectArguments& arguments) {
  if (arguments.measured.empty()) {
    throw InputError("a gate's floors are for --measured FILE; to make others give a topology");
  }
  if (!arguments.gate.empty()) throw InputError("--gate: the floors are given already");
  const PredictArguments& p = arguments.predict;
  if (!p.set.empty() || !p.env.empty() || !p.gpu.empty() || !p.nccl_version.empty() ||
      !p.launch.empty() || !p.seed.empty() || !arguments.memory.empty()) {
    throw InputError("a gate is held against what was measured as it is: nothing can be set");
  }
}

void check(const Gate& gate, const ExpectArguments& arguments, const Stop* stop) {
  tell(judge(
           chosen(read_measured_on(arguments.measured, parse_stated(arguments.as), "nvlink", "gdr"),
                  arguments),
           gate, stop),
       arguments);
}

void judge_measured(const Subject& subject, const ExpectRequest& request,
                    const ExpectArguments& arguments, const ParamCatalog& catalog) {
  const MachineCase& machine = subject.healthy;
  const std::string inside =
      transport_inside(machine, subject.healthy_set, request.options, catalog);
  std::string path = request.memory_path;
  const StatedColumns stated = parse_stated(arguments.as);
  if (path.empty()) {
    // Logs of several nodes are of as many as they name; the path is the same for all.
    const bool has_network = machine.spec.network.kind != NetworkSpec::Kind::kNone;
    path = has_network ? memory_path_of(machine, subject.healthy_set,
                                        std::max(2U, request.nodes.value_or(machine.spec.nodes)),
                                        request.options, catalog)
                       : "gdr";
  }
  const MeasuredTable table =
      chosen(read_measured_on(arguments.measured, stated, inside, path), arguments);
  tell(judge(table, subject, request.options, catalog), arguments);
}

/// Refuses a gate without a floor, and tells how many rows have none.
void check_floors(const Expected& expected) {
  const std::vector<ExpectedRow>& rows = expected.healthy.rows;
  const auto has_none = [](const ExpectedRow& row) { return !row.floor(); };
  const auto without = std::count_if(rows.begin(), rows.end(), has_none);
  if (without == 0) return;
  const ExpectedRow& first = *std::find_if(rows.begin(), rows.end(), has_none);
  const std::string why = fmt::format("{} of {}, {}", first.row.op,
                                      format_size(Bytes{first.row.bytes}), first.band.basis);
  if (static_cast<std::size_t>(without) == rows.size()) {
    throw InputError("--gate: no row has a floor; the first: " + why);
  }
  std::cerr << fmt::format("note: {} of {} rows have no floor in the gate; the first: {}\n",
                           without, rows.size(), why);
}

Subject subject_of(const ExpectArguments& arguments, const std::string& text,
                   const PredictOptions& options, const ParamCatalog& catalog) {
  if (!is_evidence(arguments.machine, text)) {
    const std::string& file = arguments.machine.front();
    return subject_of(parse_topology(text, file, catalog), options.set, catalog);
  }
  std::optional<std::uint32_t> nodes;
  if (arguments.nodes > 0) nodes = arguments.nodes;
  return subject_of(read_evidence(arguments.machine), nodes, arguments.predict.gpu, options.set,
                    catalog);
}

void expect_of(const ExpectArguments& arguments) {
  check_outputs_differ(arguments.json, "--gate", arguments.gate);
  const Stopping stopping(arguments.time_limit);
  const std::string& first = arguments.machine.front();
  const bool one = arguments.machine.size() == 1 && !names_host(first);
  const std::string text = one ? read_text_file(first) : "";
  if (is_gate(text)) {
    refuse_with_gate(arguments);
    check(parse_gate(text, first), arguments, stopping.stop());
    return;
  }
  PredictOptions options = predict_options(arguments.predict, {});
  options.stop = stopping.stop();
  ExpectRequest request = request_of(arguments, options);
  const ParamCatalog catalog = make_catalog();
  const Subject subject = subject_of(arguments, text, options, catalog);
  if (!subject.nccl_version.empty() && !request.options.nccl_version) {
    request.options.nccl_version = parse_nccl_version(subject.nccl_version);
  }
  if (!arguments.measured.empty()) {
    if (!arguments.gate.empty()) throw InputError("--gate goes without --measured");
    judge_measured(subject, request, arguments, catalog);
    return;
  }
  if (!arguments.as.empty()) throw InputError("--as goes with --measured");
  const Expected expected = expect(subject, request, catalog);
  if (!arguments.gate.empty()) check_floors(expected);
  if (arguments.json != "-" && arguments.gate != "-") {
    std::cout << expect_text(expected) << std::flush;
  }
  if (!arguments.json.empty()) write_text_file(arguments.json, expect_json(expected).dump());
  if (!arguments.gate.empty()) write_text_file(arguments.gate, gate_json(expected).dump());
}

void run(const ExpectArguments& arguments) {
  try {
    expect_of(arguments);
  } catch (const Stopped&) {
    throw Stopped("stopped before all sizes were predicted; nothing is written");
  }
}

}  // namespace

void add_expect_command(CommandLine& line) {
  const auto arguments = std::make_shared<ExpectArguments>();
  Command command =
      line.add("expect", "What a healthy machine should give, with intervals and floors");
  command.argument("machine", arguments->machine,
                   "topology YAML or NCCL XML; or evidence, as weft import takes it; or a gate");
  command
      .option("--tool", arguments->tool, "whose shape, operations and sizes",
              {"nccl-tests", "perftest", "nvbandwidth"})
      .option("--op", arguments->op,
              "operations, separated by commas; unless given allreduce, of perftest write_bw; with "
              "--measured all")
      .option("--size", arguments->size,
              "sizes, separated by commas; unless given the powers of two from 8 B to 8 GiB, of "
              "perftest from 8 KiB to 8 MiB; with --measured all")
      .option("--nodes", arguments->nodes, "nodes; unless given the topology's number", 1U << 16)
      .option("--memory", arguments->memory,
              "gdr or host-staged, unless given NCCL's choice; of perftest gdr or host")
      .option("--qps", arguments->qps, "of perftest: queue pairs", kMostQps)
      .option("--tx-depth", arguments->tx_depth, "of perftest: requests under way", kMostDepth)
      .option("--measured", arguments->measured,
              "hold this against the floors, exit 4 if any row is below: a measured table, or what "
              "nccl-tests or perftest print or write as JSON")
      .option("--as", arguments->as, "columns that --measured leaves out, such as ranks=16,hosts=2")
      .option("--gate", arguments->gate, "write the floors as JSON; '-' is standard output")
      .option("--json", arguments->json, "write the result as JSON; '-' is standard output")
      .option("--time-limit", arguments->time_limit, "end after this time, such as 30s (exit 130)");
  add_predict_options(command, arguments->predict,
                      "a parameter, KEY=VALUE with its unit; repeatable");
  command.example("weft expect topologies/hgx-h100-8nic.yaml --nodes 2 --gate gate.json")
      .action([arguments] { run(*arguments); });
}

}  // namespace weft
