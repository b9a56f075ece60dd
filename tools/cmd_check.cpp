#include <algorithm>
#include <initializer_list>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "models/collective/settings.hpp"
#include "models/gpu/bar1.hpp"
#include "models/machine/machine.hpp"
#include "models/machine/registration.hpp"
#include "models/params/device_params.hpp"
#include "models/registry/registry.hpp"
#include "sim/input/prices.hpp"
#include "sim/input/scenario.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "sim/io/text_kind.hpp"
#include "sim/io/yaml.hpp"
#include "tools/answer.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"

namespace weft {
namespace {

/// Whether one of these is a key of a file's text. XML has none.
bool has_key(const std::string& text, const std::string& file,
             std::initializer_list<std::string_view> keys) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");  // a byte order mark too
  if (first != std::string::npos && text[first] == '<') return false;
  const Yaml yaml = Yaml::parse(text, file);
  return std::any_of(keys.begin(), keys.end(),
                     [&](std::string_view key) { return yaml.find(key) != nullptr; });
}

void check_prices(const std::string& text, const std::string& file) {
  const PriceList list = parse_prices(text, file);
  std::cout << file << ": ok, " << list.prices.size() << " prices in " << list.currency << '\n';
}

/// GPUs whose memory no NIC of their node takes, by what ibv_reg_mr says.
std::map<std::string, std::string> unregistered(const Machine& machine) {
  const Fabric& fabric = machine.fabric();
  std::map<std::string, std::string> out;
  for (std::size_t i = 0; i < fabric.count(DeviceKind::kGpu); ++i) {
    const DeviceId gpu = fabric.device(0, DeviceKind::kGpu, i);
    if (!fabric.upstream(gpu) || fabric.count(DeviceKind::kNic) == 0) continue;
    Registration said;
    for (std::size_t n = 0; n < fabric.count(DeviceKind::kNic); ++n) {
      said = register_memory(machine, gpu, fabric.device(0, DeviceKind::kNic, n), kBar1Page);
      if (said.error.empty()) break;
    }
    if (said.error.empty()) continue;
    std::string& gpus = out[said.error + ": " + said.why];
    gpus += (gpus.empty() ? "" : ", ") + fabric.device(gpu).name;
  }
  return out;
}

void check(const std::string& file, const std::string& gpu) {
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  Params params(catalog);
  const std::string text = read_text_file(file);
  if (kind_of(text) != TextKind::kScenario) refuse_other_kind(text, file, TextKind::kTopology);
  if (has_key(text, file, {"prices"})) return check_prices(text, file);
  const bool scenario_file = has_key(text, file, {"scenario", "workload"});
  Scenario scenario;
  if (scenario_file) scenario = parse_scenario(text, file);
  TopologySpec spec = scenario_file ? read_topology(scenario.topology, catalog)
                                    : parse_topology(text, file, catalog);
  trace_files(scenario);  // throws where one is missing
  NcclEnv env;
  if (scenario_file) env = apply_nccl_env(scenario.env, params, scenario.env_place);
  if (!gpu.empty()) scenario.set.push_back({"gpu.part", gpu, {}});
  spec.nodes = scenario.nodes.value_or(spec.nodes);
  apply_settings(scenario.set, spec, params);
  const std::uint32_t nodes = spec.nodes;
  require_verbs(env, nodes, scenario.env_place);
  const Fabric fabric(std::move(spec), nodes);
  const DeviceParams devices(fabric, params, parts);
  const Machine machine(devices);
  for (const std::string& note : fabric.spec().notes) std::cerr << "note: " << note << '\n';
  std::cout << file << ": ok, " << fabric.nodes() << " x " << fabric.spec().name << " with "
            << fabric.count(DeviceKind::kGpu) << " GPUs and " << fabric.count(DeviceKind::kNic)
            << " NICs a node\n";
  for (const auto& [why, gpus] : unregistered(machine)) {
    std::cout << "  no NIC registers memory of " << gpus << ": " << why << '\n';
  }
}

}  // namespace

void add_check_command(CommandLine& line) {
  const auto file = std::make_shared<std::string>();
  const auto gpu = std::make_shared<std::string>();
  line.add("check", "Load and validate a topology, scenario or price list, run nothing")
      .argument("file", *file, "topology (YAML or NCCL XML), scenario or price list")
      .option("--gpu", *gpu, "which GPUs these are, such as h100-sxm")
      .example("weft check topologies/hgx-h100-8nic.yaml")
      .action([file, gpu] { check(*file, *gpu); });
}

}  // namespace weft
