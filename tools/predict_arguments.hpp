#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/collective/parameter_set.hpp"
#include "models/collective/predict.hpp"
#include "sim/base/units.hpp"
#include "tools/command_line.hpp"
#include "tools/output_files.hpp"
#include "tools/predict_asked.hpp"

namespace weft {

/// The arguments of every command that predicts.
struct PredictArguments {
  std::string scenario;          ///< of those that take one
  std::vector<std::string> set;  ///< what a KEY=VALUE may be is the command's own
  std::vector<std::string> env;
  std::string gpu;
  std::string nccl_version;
  std::string seed;    ///< "": the default
  std::string launch;  ///< likewise
  unsigned threads{0};
};

/// Adds --set, --env, --gpu, --nccl-version, --launch, --seed and --threads; `arguments` must
/// outlive the parsing.
void add_predict_options(Command& command, PredictArguments& arguments,
                         const std::string& set_help);

inline constexpr const char* kEnvHelp = "an NCCL variable, NAME=VALUE; repeatable";
/// What each `--env NAME=VALUE` sets; the last one counts. Throws InputError.
std::map<std::string, std::string> variables_of(const std::vector<std::string>& env);

inline constexpr const char* kParamsHelp =
    "a set of parameters, YAML of KEY: VALUE; --set beats it";
inline constexpr const char* kScenarioParamsHelp =
    "a set of parameters, YAML of KEY: VALUE; beats the scenario's, --set beats it";
/// What `--params FILE` holds; nothing if there is none. Throws InputError.
ParameterSet parameter_set(const std::string& file);

/// What `--size TEXT` lists: ascending sizes, separated by commas. Throws InputError.
std::vector<Bytes> size_list(const std::string& text);

/// The scenario that they name. Throws InputError, also where an output would overwrite a file that
/// the scenario names.
Scenario read_scenario(const PredictArguments& arguments, const Outputs& outputs);

/// All that they say but the scenario and --set. Throws InputError.
PredictOptions predict_options(const PredictArguments& arguments);
/// All of it: a file's settings, which everything else beats, and each --set's KEY=VALUE. Throws
/// InputError.
PredictOptions predict_options(const PredictArguments& arguments, const ParameterSet& params);

}  // namespace weft
