#include <iostream>
#include <memory>
#include <string>

#include "sim/base/error.hpp"
#include "sim/io/file.hpp"
#include "sim/report/decisions.hpp"
#include "sim/report/diff.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/diff_input.hpp"

namespace weft {
namespace {

struct DiffArguments {
  std::string a;
  std::string b;
  std::string as;
  std::string json;
};

void diff(const DiffArguments& arguments) {
  const StatedColumns stated = parse_stated(arguments.as);
  const DiffInput a = read_diff_input(arguments.a, stated);
  const DiffInput b = read_diff_input(arguments.b, stated);
  if (!stated.empty() && !a.is_measured && !b.is_measured) {
    throw InputError("--as is of what nccl-tests printed; neither " + arguments.a + " nor " +
                     arguments.b + " has its rows");
  }
  for (const DiffInput* side : {&a, &b}) {
    for (const std::string& note : side->notes) std::cerr << "note: " << note << '\n';
  }
  const ResultDiff diff = diff_results(a.result, b.result);
  const DecisionsDiff decisions = diff_decisions(a.decisions, b.decisions);
  if (diff.rows.empty() && decisions.pairs.empty()) {
    const bool times = !a.result.rows.empty() && !b.result.rows.empty();
    throw InputError(arguments.a + " and " + arguments.b +
                     (times ? ": no operation of the same size in both"
                            : ": no times in both, and no decisions of NCCL"));
  }
  if (arguments.json != "-") std::cout << diff_text(diff, decisions) << std::flush;
  if (!arguments.json.empty()) {
    write_text_file(arguments.json, diff_json(diff, decisions).dump());
  }
}

}  // namespace

void add_diff_command(CommandLine& line) {
  const auto arguments = std::make_shared<DiffArguments>();
  line.add("diff",
           "Two runs side by side: how much time and bandwidth changed, which cause, and what NCCL "
           "decides otherwise")
      .argument(
          "A", arguments->a,
          "what weft run, step, traffic or nccl wrote with --json, nccl-tests printed or NCCL "
          "logged; '-' is standard input")
      .argument("B", arguments->b, "what to hold against it")
      .option("--as", arguments->as,
              "what nccl-tests' rows leave out, such as op=allgather of old releases; for both "
              "sides that are its output")
      .output("--json", arguments->json, "write the comparison as JSON; '-' is standard output")
      .example("weft diff healthy.json faulty.json")
      .action([arguments] { diff(*arguments); });
}

}  // namespace weft
