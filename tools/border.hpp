#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/stop.hpp"
#include "sim/base/units.hpp"
#include "sim/result/run_result.hpp"
#include "tools/predict_asked.hpp"
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

std::vector<Bytes> sizes_of(const std::vector<std::int64_t>& bytes);
Cause cause_of(CauseShare cause);

/// What options say that every command has which predicts.
template <class Options>
PredictAsked predict_asked(const Options& options) {
  return {options.set,    options.env,  options.gpu,    options.nccl_version,
          options.launch, options.seed, options.threads};
}

}  // namespace weft::api
