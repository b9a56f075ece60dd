#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/collective/settings.hpp"
#include "models/machine/machine.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/base/version.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "sim/io/text_kind.hpp"
#include "sim/report/report_file.hpp"
#include "sim/report/report_page.hpp"
#include "sim/report/report_sweep.hpp"
#include "sim/result/log_text.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/report_template.hpp"
#include "tools/show_text.hpp"

namespace weft {
namespace {

struct ReportArguments {
  std::vector<std::string> results;
  std::string output;
  std::string machine;
  std::string gpu;
  std::string title;
};

/// Devices and links as `weft show` has them, null without --machine.
Json machine_json(const ReportArguments& arguments) {
  if (arguments.machine.empty()) {
    if (!arguments.gpu.empty()) throw InputError("--gpu goes with --machine");
    return {};
  }
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  Params params(catalog);
  TopologySpec spec = read_topology(arguments.machine, catalog);
  apply_settings(parse_settings({}, arguments.gpu), spec, params);
  const std::uint32_t nodes = spec.nodes;
  const Fabric fabric(std::move(spec), nodes);
  const DeviceParams devices(fabric, params, parts);
  const Machine machine(devices);
  const Json shown = show_json(machine, {});  // of its parts alone
  return Json::object({{"name", arguments.machine},
                       {"nodes", nodes},
                       {"devices", shown.at("devices")},
                       {"links", shown.at("links")},
                       {"network", shown.at("network")}});
}

std::string title_of(const ReportArguments& arguments) {
  if (!arguments.title.empty()) return arguments.title;
  std::string names;
  for (const std::string& file : arguments.results) names += (names.empty() ? "" : ", ") + file;
  return "weft report: " + names;
}

void write_report(const ReportArguments& arguments) {
  if (arguments.output.empty()) {
    throw InputError("--output is required: the report's file, such as report.html");
  }
  Json files = Json::array();
  std::set<std::string> seen;
  for (const std::string& file : arguments.results) {
    if (!seen.insert(file).second) throw InputError(file + ": given twice");
    const std::string text = read_text_file(file);
    if (is_sweep_table(text)) {
      files.push(sweep_report_file(text, file));
      continue;
    }
    if (!is_json_object(text)) refuse_other_kind(text, file, TextKind::kResult);
    files.push(report_file(Json::parse(text, file), file));
  }
  const Json data = Json::object({{"title", title_of(arguments)},
                                  {"weft", weft_version()},
                                  {"machine", machine_json(arguments)},
                                  {"files", std::move(files)}});
  write_text_file(arguments.output, report_html(report_template().front().text, data));
}

}  // namespace

void add_report_command(CommandLine& line) {
  const auto arguments = std::make_shared<ReportArguments>();
  line.add("report", "Results as one HTML file that needs no network: curves, causes, parameters")
      .argument("result", arguments->results,
                "what weft run, expect, explain, compare, perftest, copies or replay wrote with "
                "--json, or weft sweep with --csv; several are shown side by side; '-' is standard "
                "input")
      .output("-o,--output", arguments->output, "the report's file; '-' is standard output")
      .option("--machine", arguments->machine,
              "a topology, YAML or NCCL XML: its tree and network are drawn as well, with the load "
              "on each link that a result of weft run has")
      .option("--gpu", arguments->gpu, "of --machine: which GPUs these are, such as h100-sxm")
      .option("--title", arguments->title, "the report's title; unless given the files' names")
      .example("weft report healthy.json faulty.json -o report.html")
      .action([arguments] { write_report(*arguments); });
}

}  // namespace weft
