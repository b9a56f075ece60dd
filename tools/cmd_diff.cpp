#include <iostream>
#include <memory>
#include <string>

#include "sim/base/error.hpp"
#include "sim/io/file.hpp"
#include "sim/io/text_kind.hpp"
#include "sim/report/diff.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"

namespace weft {
namespace {

struct DiffArguments {
  std::string a;
  std::string b;
  std::string json;
};

RunResult read_result(const std::string& file) {
  const std::string text = read_text_file(file);
  refuse_other_kind(text, file, TextKind::kResult);
  const Json json = Json::parse(text, file);
  try {
    RunResult result = run_result_from_json(json);
    if (!result.rows.empty() && !result.rows.front().job.empty()) {
      throw InputError("has jobs; they are held against themselves alone in it");
    }
    return result;
  } catch (const InputError& e) {
    throw InputError(file + ": " + e.what());
  }
}

void diff(const DiffArguments& arguments) {
  const ResultDiff diff = diff_results(read_result(arguments.a), read_result(arguments.b));
  if (diff.rows.empty()) {
    throw InputError(arguments.a + " and " + arguments.b +
                     ": no operation of the same size in both");
  }
  if (arguments.json != "-") std::cout << diff_text(diff) << std::flush;
  if (!arguments.json.empty()) write_text_file(arguments.json, diff_json(diff).dump());
}

}  // namespace

void add_diff_command(CommandLine& line) {
  const auto arguments = std::make_shared<DiffArguments>();
  line.add("diff", "Two results side by side: how much time and bandwidth changed, and which cause")
      .argument("A", arguments->a, "result of weft run --json; '-' is standard input")
      .argument("B", arguments->b, "the result to hold against it")
      .option("--json", arguments->json, "write the comparison as JSON; '-' is standard output")
      .example("weft diff healthy.json faulty.json")
      .action([arguments] { diff(*arguments); });
}

}  // namespace weft
