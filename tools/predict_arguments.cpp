#include "tools/predict_arguments.hpp"

#include <utility>

#include "models/collective/settings.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace weft {

namespace {

/// All but --set.
PredictAsked asked_of(const PredictArguments& arguments) {
  PredictAsked out;
  out.env = variables_of(arguments.env);
  out.gpu = arguments.gpu;
  out.nccl_version = arguments.nccl_version;
  out.launch = arguments.launch;
  out.seed = parse_seed(arguments.seed);
  out.threads = arguments.threads;
  return out;
}

}  // namespace

std::map<std::string, std::string> variables_of(const std::vector<std::string>& env) {
  std::map<std::string, std::string> out;
  for (const std::string& text : env) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) throw InputError("--env '" + text + "': write NAME=VALUE");
    out[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return out;
}

ParameterSet parameter_set(const std::string& file) {
  return file.empty() ? ParameterSet{} : read_parameter_set(file);
}

std::vector<Bytes> size_list(const std::string& text) {
  std::vector<Bytes> sizes;
  for (const std::string& size : comma_separated(text)) {
    try {
      sizes.push_back(parse_size(size));
    } catch (const InputError& e) {
      throw InputError("--size: " + std::string(e.what()));
    }
  }
  check_ascending(sizes);
  return sizes;
}

void add_predict_options(Command& command, PredictArguments& arguments,
                         const std::string& set_help) {
  command.option("--set", arguments.set, set_help)
      .option("--env", arguments.env, kEnvHelp)
      .option("--gpu", arguments.gpu, "which GPUs these are, such as h100-sxm")
      .option("--nccl-version", arguments.nccl_version, kNcclVersionHelp)
      .option("--launch", arguments.launch,
              "back-to-back (as nccl-tests; unless given), graph or single: how a collective "
              "follows the one before, as nccl.launch",
              {"back-to-back", "graph", "single"})
      .option("--threads", arguments.threads,
              "threads; 0: one a core. The result does not depend on it", 1024)
      .option("--seed", arguments.seed, "seed of all that is random, as wire.seed; 1 unless given");
}

Scenario read_scenario(const PredictArguments& arguments, const Outputs& outputs) {
  Scenario out = read_scenario(arguments.scenario);
  for (const std::string& file : files_of(out)) outputs.keep(file, out.file);
  return out;
}

PredictOptions predict_options(const PredictArguments& arguments) {
  return predict_options(asked_of(arguments));
}

PredictOptions predict_options(const PredictArguments& arguments, const ParameterSet& params) {
  PredictAsked asked = asked_of(arguments);
  for (const std::string& text : arguments.set) {
    ScenarioSetting setting = parse_setting(text);
    asked.set.emplace_back(std::move(setting.key), std::move(setting.value));
  }
  return predict_options(asked, params.set);
}

}  // namespace weft
