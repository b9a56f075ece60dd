#include "tools/perftest_request.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/collective/unused.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "tools/predict_asked.hpp"

namespace weft {
namespace {

constexpr unsigned kFewestAsked = 5;
constexpr Bytes kSmallestOfAll{2};
constexpr Bytes kLargestOfAll = Bytes::mib(8);
constexpr Bytes kLargestMessage = Bytes::mib(64);
constexpr Bytes kMostSimulated = Bytes::gib(8);

template <class Meaning>
using PerftestWords = std::array<std::pair<std::string_view, Meaning>, 3>;
constexpr PerftestWords<RdmaOp> kOpWords{
    {{"write", RdmaOp::kWrite}, {"read", RdmaOp::kRead}, {"send", RdmaOp::kSend}}};
constexpr PerftestWords<PerftestMemory> kMemoryWords{{{"gpu", PerftestMemory::kGpu},
                                                      {"host", PerftestMemory::kHost},
                                                      {"staged", PerftestMemory::kStaged}}};
constexpr PerftestWords<PerftestPost> kPostWords{
    {{"cpu", PerftestPost::kCpu}, {"gpu", PerftestPost::kGpu}, {"proxy", PerftestPost::kProxy}}};

template <class Meaning>
Meaning meaning(const char* option, const std::string& word, const PerftestWords<Meaning>& words) {
  std::vector<std::string> known;
  for (const auto& [name, what] : words) {
    if (name == word) return what;
    known.emplace_back(name);
  }
  throw InputError(fmt::format("{} '{}': unknown; known: {}", option, word, known_names(known)));
}

}  // namespace

void check_message_size(Bytes size) {
  if (size >= Bytes{1} && size <= kLargestMessage) return;
  throw InputError(fmt::format("--size {}: allowed are 1 B to {}", format_size(size),
                               format_size(kLargestMessage)));
}

std::vector<Bytes> all_perftest_sizes() {
  std::vector<Bytes> out;
  for (Bytes size = kSmallestOfAll; size <= kLargestOfAll; size = size * 2) out.push_back(size);
  return out;
}

PerftestOptions perftest_options(const PerftestRequest& request, const std::vector<Bytes>& sizes) {
  if (sizes.empty()) throw InputError("--size: name a message size");
  for (const Bytes size : sizes) check_message_size(size);
  const auto at_least_one = [](const char* option, unsigned value) {
    if (value == 0) throw InputError(std::string(option) + " must be at least 1");
  };
  at_least_one("--tx-depth", request.tx_depth);
  at_least_one("--qp", request.qps);
  at_least_one("--rx-depth", request.rx_depth);
  at_least_one("--post-list", request.post_list);
  check_at_most("--tx-depth", request.tx_depth, kMostDepth);
  check_at_most("--qp", request.qps, kMostQps);
  check_at_most("--cq-mod", request.cq_moderation, kMostModeration);
  check_at_most("--rx-depth", request.rx_depth, kMostDepth);
  check_at_most("--post-list", request.post_list, kMostDepth);
  check_at_most("--iters", request.iterations, kMostIterations);
  if (request.iterations != 0 && request.iterations < kFewestAsked) {
    throw InputError(
        fmt::format("--iters {}: at least {}, or 0", request.iterations, kFewestAsked));
  }
  PerftestOptions options = request.options;
  options.op = meaning("--op", request.op, kOpWords);
  options.memory = meaning("--mem", request.memory, kMemoryWords);
  options.post = meaning("--post", request.post, kPostWords);
  options.iterations = request.iterations;
  options.tx_depth = request.tx_depth;
  options.qps = request.qps;
  options.cq_moderation = request.cq_moderation;
  options.all_sizes = request.all;
  options.rx_depth = request.rx_depth;
  options.post_list = request.post_list;
  double most = 0;
  for (const Bytes size : sizes) most += size.as_double() * options.iterations * options.qps;
  const double messages =
      static_cast<double>(sizes.size()) * options.iterations * options.qps * 4096.0;
  if (std::max(most, messages) > kMostSimulated.as_double()) {
    throw InputError(fmt::format(
        "--iters {}: more than the {} of packets that one run may simulate; 0 takes as many as "
        "show a steady rate",
        options.iterations, format_size(kMostSimulated)));
  }
  return options;
}

std::vector<ScenarioSetting> perftest_settings(const PerftestRequest& request,
                                               std::vector<ScenarioSetting> set) {
  if (!request.gpu.empty()) set.push_back({"gpu.part", request.gpu, {}});
  for (ScenarioSetting& seed : seed_setting(request.seed)) set.push_back(std::move(seed));
  return set;
}

std::string without_effect(const PerftestRequest& asked, const PerftestOptions& options) {
  const PerftestRequest usual;
  std::vector<std::string> out;
  const auto add = [&out](const char* option, unsigned value, unsigned fallback) {
    if (value != fallback) out.emplace_back(option);
  };
  const bool is_staged = options.memory == PerftestMemory::kStaged;
  if (is_staged) {
    add("--tx-depth", asked.tx_depth, usual.tx_depth);
    add("--cq-mod", asked.cq_moderation, usual.cq_moderation);
    add("--post-list", asked.post_list, usual.post_list);
  }
  if (is_staged || options.op != RdmaOp::kSend) add("--rx-depth", asked.rx_depth, usual.rx_depth);
  if (out.empty()) return "";
  return fmt::format("no effect on rates and latency with --op {} --mem {}: {}", asked.op,
                     asked.memory, fmt::join(out, ", "));
}

std::string no_effect_on_perftest(const std::vector<ScenarioSetting>& set, const Machine& machine) {
  return no_effect_on("perftest", set, machine, {"explain", "nccl"});
}

std::string seed_note(const PerftestRequest& asked, const std::vector<PerftestRow>& rows) {
  const bool has_drawn =
      std::any_of(rows.begin(), rows.end(), [](const PerftestRow& row) { return row.has_drawn; });
  if (!asked.seed || has_drawn) return "";
  return "the seed has no effect: nothing in this run is random";
}

}  // namespace weft
