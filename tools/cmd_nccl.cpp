#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/collective/settings.hpp"
#include "models/nccl/decide/tuning_input.hpp"
#include "models/nccl/decide/write_topo.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/input/nccl_tree.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "sim/topology/require_gpu.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/nccl_view.hpp"
#include "tools/predict_arguments.hpp"

namespace weft {
namespace {

struct NcclArguments {
  std::string topology;
  unsigned nodes{0};
  std::vector<std::string> env;
  std::vector<std::string> set;
  std::string gpu;
  std::string version{NcclVersion{}.text()};
  std::string json;
  std::string write_topo;
};

constexpr unsigned kMostNodes = 1'048'576;
// As many as weft run takes. Bounds on memory: rings and trees are held in full (0.4 GB of 131,072
// nodes of 8 GPUs), and as JSON each rank of a channel takes 1.6 KB.
constexpr std::size_t kMostRanks = 1'048'576;
constexpr std::size_t kMostJsonEntries = 600'000;

/// A topology in NCCL's terms, and for how many nodes.
struct NcclTopology {
  NcclTree tree;
  unsigned nodes{1};
  std::vector<std::string> notes;
};

std::size_t count_gpus(const NcclElement& element) {
  std::size_t count = element.tag == "gpu" ? 1 : 0;
  for (const NcclElement& child : element.children) count += count_gpus(child);
  return count;
}

bool is_xml(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");  // a byte order mark too
  return first != std::string::npos && text[first] == '<';
}

/// NCCL's own file is taken as it is; anything else, and a file without GPUs, becomes a fabric
/// first. `asked`: how many nodes; 0: as it says.
NcclTopology read(const std::string& file, const std::vector<std::string>& set,
                  const std::string& gpu, unsigned asked) {
  const std::string text = read_text_file(file);
  if (is_xml(text)) {
    NcclTree tree = parse_nccl_tree(text, file);
    if (count_gpus(tree.system) > 0) {
      for (const auto& [option, given] :
           {std::pair{"--set", !set.empty()}, {"--gpu", !gpu.empty()}}) {
        if (!given) continue;
        throw InputError(std::string(option) + ": " + file +
                         " is NCCL's own and is taken as it is");
      }
      return {std::move(tree), std::max(asked, 1U), {}};
    }
  }
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  Params params(catalog);
  TopologySpec spec = parse_topology(text, file, catalog);
  // The topology's defaults; a skeleton's NVLinks.
  std::vector<ScenarioSetting> settings = parse_settings(set, gpu);
  if (asked > 0) settings.push_back({"nodes", std::to_string(asked), {}});
  apply_settings(settings, spec, params);
  const unsigned nodes = spec.nodes;
  const std::vector<std::string> assumed = spec.notes;
  const Fabric fabric(std::move(spec), 1);
  require_gpu(fabric);
  const DeviceParams devices(fabric, params, parts, NodesAre::kAlike);
  FabricAsNccl read = nccl_tree_of(devices);
  read.notes.insert(read.notes.begin(), assumed.begin(), assumed.end());
  for (const auto& [key, value] : params.of_single_nodes()) {
    read.notes.push_back(key + ": NCCL decides nothing by it");
  }
  return {std::move(read.tree), nodes, std::move(read.notes)};
}

void run(const NcclArguments& arguments) {
  const NcclVersion version = parse_nccl_version(arguments.version);
  const NcclEnv env = parse_nccl_env(variables_of(arguments.env));
  const NcclTopology topology =
      read(arguments.topology, arguments.set, arguments.gpu, arguments.nodes);
  const unsigned hosts = topology.nodes;
  require_verbs(env, hosts);
  const std::size_t ranks = hosts * count_gpus(topology.tree.system);
  if (ranks > kMostRanks) {
    throw InputError(std::to_string(ranks) + " ranks are too many; at most " +
                     std::to_string(kMostRanks));
  }
  const NcclDecisions decisions = decide_nccl(topology.tree, static_cast<int>(hosts), env, version);
  if (!arguments.json.empty() && ranks * decisions.connections.rings.size() > kMostJsonEntries) {
    throw InputError("--json: " + std::to_string(ranks) + " ranks in " +
                     std::to_string(decisions.connections.rings.size()) +
                     " channels are too many; at most " + std::to_string(kMostJsonEntries) +
                     " ranks x channels");
  }
  const Tuning tuning(tuning_input(decisions));
  const std::vector<Bytes> sizes = nccl_choice_sizes();
  if (arguments.json != "-" && arguments.write_topo != "-") {
    std::cout << nccl_text(decisions, tuning, sizes) << std::flush;
  }
  for (const std::string& note : decisions.notes) std::cerr << "note: " << note << '\n';
  if (!arguments.json.empty()) {
    write_text_file(arguments.json, nccl_json(decisions, tuning, sizes).dump());
  }
  if (!arguments.write_topo.empty()) {
    for (const std::string& note : topology.notes) std::cerr << "note: " << note << '\n';
    write_text_file(arguments.write_topo, nccl_tree_text(topology.tree));
  }
}

}  // namespace

void add_nccl_command(CommandLine& line) {
  const auto arguments = std::make_shared<NcclArguments>();
  line.add("nccl",
           "What NCCL would decide: paths, GPUDirect RDMA, channels, rings, trees, tuning, choices")
      .argument("topology", arguments->topology, "topology YAML or NCCL XML")
      .option("--nodes", arguments->nodes, "hosts like this one; 0: as the topology says",
              kMostNodes)
      .option("--env", arguments->env, kEnvHelp)
      .option("--set", arguments->set,
              "a parameter of a topology that is not NCCL's own, KEY=VALUE; repeatable")
      .option("--nccl-version", arguments->version, kNcclVersionHelp)
      .option("--gpu", arguments->gpu,
              "which GPUs these are, such as h100-sxm, of a topology YAML or a file without GPUs")
      .output("--json", arguments->json, "write it as JSON; '-' is standard output")
      .output("--write-topo", arguments->write_topo,
              "write the topology as a file for NCCL_TOPO_FILE; '-' is standard output")
      .example("weft nccl topologies/hgx-h100-8nic.yaml --nodes 4 --env NCCL_NVLS_ENABLE=0")
      .action([arguments] { run(*arguments); });
}

}  // namespace weft
