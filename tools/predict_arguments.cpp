#include "tools/predict_arguments.hpp"

#include <charconv>

#include "models/collective/settings.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace weft {

/// CLI11 would take -1 for the largest number and cut larger ones off in silence.
std::vector<ScenarioSetting> seed_setting(const std::string& text) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 53) - 1;  // whole as a double
  if (text.empty()) return {};
  std::int64_t seed{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seed);
  if (error != std::errc{} || rest != end || seed < 0 || seed > kMost) {
    throw InputError("--seed '" + text + "': write a whole number from 0 to " +
                     std::to_string(kMost));
  }
  return {{"wire.seed", text, {}}};
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
    if (sizes.back() < Bytes{1}) throw InputError("--size '" + size + "': 1 B at least");
    if (sizes.size() > 1 && sizes[sizes.size() - 2] >= sizes.back()) {
      throw InputError("--size '" + text + "': sizes must ascend, none given twice");
    }
  }
  return sizes;
}

void add_predict_options(Command& command, PredictArguments& arguments,
                         const std::string& set_help) {
  command.option("--set", arguments.set, set_help)
      .option("--env", arguments.env, "an NCCL variable, NAME=VALUE; repeatable")
      .option("--gpu", arguments.gpu, "which GPUs these are, such as h100-sxm")
      .option("--nccl-version", arguments.nccl_version, kNcclVersionHelp)
      .option("--launch", arguments.launch,
              "back-to-back (as nccl-tests; unless given), graph or single: how a collective "
              "follows the one before, as nccl.launch")
      .option("--threads", arguments.threads,
              "threads; 0: one a core. The result does not depend on it", 1024)
      .option("--seed", arguments.seed, "seed of all that is random, as wire.seed; 1 unless given");
}

PredictOptions predict_options(const PredictArguments& arguments) {
  PredictOptions options;
  options.threads = arguments.threads;
  if (!arguments.nccl_version.empty()) {
    options.nccl_version = parse_nccl_version(arguments.nccl_version);
  }
  options.set = seed_setting(arguments.seed);
  if (!arguments.launch.empty()) options.set.push_back({"nccl.launch", arguments.launch, {}});
  if (!arguments.gpu.empty()) options.set.push_back({"gpu.part", arguments.gpu, {}});
  for (const std::string& text : arguments.env) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) throw InputError("--env '" + text + "': write NAME=VALUE");
    options.env[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return options;
}

PredictOptions predict_options(const PredictArguments& arguments, const ParameterSet& params) {
  PredictOptions options = predict_options(arguments);
  options.set.insert(options.set.begin(), params.set.begin(), params.set.end());
  for (const std::string& text : arguments.set) options.set.push_back(parse_setting(text));
  return options;
}

}  // namespace weft
