#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "models/collective/settings.hpp"
#include "models/machine/machine.hpp"
#include "models/registry/registry.hpp"
#include "sim/input/topology_file.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/show_text.hpp"

namespace weft {
namespace {

struct ShowArguments {
  std::string topology;
  std::string format{"text"};
  std::string gpu;
  std::vector<std::string> set;
  std::vector<std::string> env;
  std::string nccl_version{NcclVersion{}.text()};
};

void show(const ShowArguments& arguments) {
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  Params params(catalog);
  ShownNccl nccl;
  nccl.version = parse_nccl_version(arguments.nccl_version);
  nccl.env = apply_nccl_env(variables_of(arguments.env), params, {}, nccl.version);
  TopologySpec spec = read_topology(arguments.topology, catalog);
  apply_settings(parse_settings(arguments.set, arguments.gpu), spec, params);
  const std::uint32_t nodes = spec.nodes;
  require_verbs(nccl.env, nodes);
  const Fabric fabric(std::move(spec), nodes);
  const DeviceParams devices(fabric, params, parts);
  const Machine machine(devices);
  for (const std::string& note : fabric.spec().notes) std::cerr << "note: " << note << '\n';
  for (const std::string& note : nccl.env.notes) std::cerr << "note: " << note << '\n';
  if (arguments.format == "dot") {
    std::cout << show_dot(machine);
    return;
  }
  const NodeView node = node_view(machine, nccl);
  std::cout << (arguments.format == "json" ? show_json(machine, node).dump()
                                           : show_text(machine, node));
}

}  // namespace

void add_show_command(CommandLine& line) {
  const auto arguments = std::make_shared<ShowArguments>();
  line.add("show",
           "A topology's tree, its topo -m matrix, and GPUDirect RDMA for each GPU-NIC pair")
      .argument("topology", arguments->topology, "topology YAML or NCCL XML")
      .option("--format", arguments->format, "text, json or dot", {"text", "json", "dot"})
      .option("--gpu", arguments->gpu, "which GPUs these are, such as h100-sxm")
      .option("--set", arguments->set, "a parameter, KEY=VALUE with its unit; repeatable")
      .option("--env", arguments->env, kEnvHelp)
      .option("--nccl-version", arguments->nccl_version, kNcclVersionHelp)
      .example("weft show topologies/hgx-h100-8nic.yaml")
      .action([arguments] { show(*arguments); });
}

}  // namespace weft
