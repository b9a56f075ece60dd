#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "models/catalog/catalog.hpp"
#include "models/params/device_params.hpp"
#include "models/predict/settings.hpp"
#include "models/system/machine.hpp"
#include "sim/input/scenario.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "tools/commands.hpp"

namespace weft {
namespace {

/// Whether a YAML text is a scenario: its first key says so. XML never is.
bool is_scenario(const std::string& file) {
  const std::string text = read_text_file(file);
  return text.starts_with("scenario:") || text.find("\nscenario:") != std::string::npos;
}

void check(const std::string& file) {
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  Params params(catalog);
  const bool scenario_file = is_scenario(file);
  Scenario scenario;
  if (scenario_file) scenario = read_scenario(file);
  TopologySpec spec = read_topology(scenario_file ? scenario.topology : file, catalog);
  if (scenario_file) apply_nccl_env(scenario.env, params);
  apply_settings(scenario.set, spec, params);
  const std::uint32_t nodes = scenario.nodes.value_or(spec.nodes);
  const Fabric fabric(std::move(spec), nodes);
  DeviceParams devices(fabric, params, parts);
  const Machine machine(devices);
  std::cout << file << ": ok, " << fabric.nodes() << " x " << fabric.spec().name << " with "
            << fabric.count(DeviceKind::kGpu) << " GPUs and " << fabric.count(DeviceKind::kNic)
            << " NICs a node\n";
}

}  // namespace

void add_check_command(CLI::App& app) {
  const auto file = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("check", "Load and validate a topology or scenario, run nothing");
  command->add_option("file", *file, "topology (YAML or NCCL XML) or scenario")->required();
  command->footer("Example: weft check topologies/hgx-h100-8nic.yaml");
  command->callback([file] { check(*file); });
}

}  // namespace weft
