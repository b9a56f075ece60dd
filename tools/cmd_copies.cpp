#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "models/collective/settings.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/copies_json.hpp"
#include "tools/copies_report.hpp"
#include "tools/predict_arguments.hpp"

namespace weft {
namespace {

struct CopiesArguments {
  std::string topology;
  CopiesRequest request;
  std::string size;
  std::string gpu;
  std::vector<std::string> set;
  std::string params;
  std::string json;
  std::string csv;
};

std::vector<Bytes> sizes_of(const CopiesArguments& arguments) {
  std::vector<Bytes> out;
  if (arguments.size.empty()) return out;
  for (const std::string& size : comma_separated(arguments.size)) out.push_back(parse_size(size));
  return out;
}

void run(const CopiesArguments& arguments) {
  const std::vector<Bytes> sizes = sizes_of(arguments);
  std::vector<ScenarioSetting> settings = parameter_set(arguments.params).set;
  for (ScenarioSetting& s : parse_settings(arguments.set, arguments.gpu)) {
    settings.push_back(std::move(s));
  }
  const ParamCatalog catalog = make_catalog();
  const Assembled on(with_large_buffers(read_topology(arguments.topology, catalog), catalog),
                     settings, 1);
  for (const std::string& note : on.fabric.spec().notes) std::cerr << "note: " << note << '\n';
  const std::string unused = no_effect_on_copies(parse_settings(arguments.set), on.machine);
  if (!unused.empty()) std::cerr << "note: " << unused << '\n';
  CopiesRun copies(on, arguments.request, sizes);
  if (!copies.note().empty()) std::cerr << "note: " << copies.note() << '\n';
  const bool quiet = arguments.json == "-" || arguments.csv == "-";
  std::string text = copies.head();  // with the first size, which may be refused
  for (const Bytes size : copies.sizes()) {
    text += copies.run(size);
    if (!quiet) std::cout << text << std::flush;
    text.clear();
  }
  if (!arguments.json.empty()) write_text_file(arguments.json, to_json(copies.report()).dump());
  if (!arguments.csv.empty()) write_text_file(arguments.csv, copies_csv(copies.report()));
}

}  // namespace

void add_copies_command(CommandLine& line) {
  const auto arguments = std::make_shared<CopiesArguments>();
  line.add("copies",
           "Copies between host memory and GPUs, and between GPUs, as nvbandwidth measures them")
      .argument("topology", arguments->topology, "topology YAML or NCCL XML")
      .option("--from", arguments->request.from,
              "GPUs or CPUs (for their memory), separated by commas; 'all' GPUs; 'cpu': the other "
              "end's; with --to several at once, without both nvbandwidth's matrices")
      .option("--to", arguments->request.to, "the other ends; one, or as many")
      .flag("--bidirectional", arguments->request.bidirectional,
            "each pair both ways at once; bandwidths are of both together")
      .option("--by", arguments->request.by,
              "who copies: a GPU's copy engines (cudaMemcpyAsync), or a kernel with accesses of "
              "16 B",
              {"engine", "kernel"})
      .option("--blocks", arguments->request.blocks,
              "thread blocks of a kernel, of 512 threads each; 0: one for each SM", kMostBlocks)
      .option("--size", arguments->size,
              "bytes of a copy, several separated by commas; 512M unless given, on packets 4M")
      .flag("--all", arguments->request.all, "all powers of two from 64 B to 1 GiB")
      .option("--fidelity", arguments->request.fidelity,
              "fluid: shared rates, any size; packet: TLP by TLP, 2 GiB at most",
              {"fluid", "packet"})
      .option("--gpu", arguments->gpu, "which GPUs these are, such as h100-sxm")
      .option("--set", arguments->set, "a parameter, KEY=VALUE with its unit; repeatable")
      .option("--params", arguments->params, kParamsHelp)
      .output("--json", arguments->json, "write results as JSON; '-' is standard output")
      .output("--csv", arguments->csv, "write the rows as CSV; '-' is standard output")
      .example(
          "weft copies topologies/hgx-h100-8nic.yaml --from cpu --to gpu0,gpu1 --size 64K,256M")
      .action([arguments] { run(*arguments); });
}

}  // namespace weft
