#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/collective/predict.hpp"
#include "sim/base/error.hpp"
#include "sim/base/stop.hpp"
#include "sim/input/scenario.hpp"
#include "sim/result/run_result.hpp"
#include "tools/weft.hpp"

/// What the files of the library's face share.
namespace weft::api {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// What `work` returns; whatever it throws leaves as Error.
template <class Work>
auto at_the_border(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const InputError& e) {
    throw Error(Error::Kind::kInput, e.what());
  } catch (const Stopped& e) {
    throw Error(Error::Kind::kStopped, e.what());
  } catch (const std::exception& e) {
    throw Error(Error::Kind::kInternal, e.what());
  } catch (...) {  // of `stop`
    throw Error(Error::Kind::kInternal, "an exception that is no std::exception");
  }
}

/// What `work` returns, on a thread of its own; this one asks meanwhile whether to end it. What
/// `asked` throws ends it, too. Nobody to ask: on this one.
template <class Work>
auto run_asking(const std::function<bool()>& asked, Work work) {
  if (!asked) return work(nullptr);
  constexpr std::chrono::milliseconds kBetween{50};
  Stop stop;
  if (asked()) stop.request();
  auto running = std::async(std::launch::async, [&] { return work(&stop); });
  try {
    while (running.wait_for(kBetween) != std::future_status::ready) {
      if (!stop.was_asked() && asked()) stop.request();
    }
  } catch (...) {
    stop.request();
    running.wait();
    throw;
  }
  return running.get();
}

std::vector<ScenarioSetting> settings_of(const Settings& set);
/// What a seed sets. Throws InputError.
std::vector<ScenarioSetting> seed_setting(std::optional<std::uint64_t> seed);
Cause cause_of(CauseShare cause);

/// All that options say which every command has that predicts, `machine` set before them.
template <class Options>
PredictOptions predict_options(const Options& options, const Settings& machine) {
  PredictOptions out;
  out.threads = options.threads;
  if (!options.nccl_version.empty()) out.nccl_version = parse_nccl_version(options.nccl_version);
  const auto add = [&out](std::vector<ScenarioSetting> settings) {
    for (ScenarioSetting& setting : settings) out.set.push_back(std::move(setting));
  };
  add(settings_of(machine));
  add(seed_setting(options.seed));
  if (!options.launch.empty()) out.set.push_back({"nccl.launch", options.launch, {}});
  if (!options.gpu.empty()) out.set.push_back({"gpu.part", options.gpu, {}});
  add(settings_of(options.set));
  out.env = options.env;
  return out;
}

}  // namespace weft::api
