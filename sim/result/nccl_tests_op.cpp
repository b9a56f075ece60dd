#include "sim/result/nccl_tests_op.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// Its programs, and what a measured table calls their operation.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kPrograms{
    {{"all_reduce_perf", "allreduce"},
     {"all_gather_perf", "allgather"},
     {"reduce_scatter_perf", "reducescatter"},
     {"broadcast_perf", "broadcast"},
     {"reduce_perf", "reduce"},
     {"alltoall_perf", "alltoall"},
     {"sendrecv_perf", "sendrecv"}}};

}  // namespace

std::string op_of_program(std::string_view program) {
  constexpr std::string_view kSuffix = "_mpi";  // of programs built with MPI=1
  std::string_view test = program.substr(program.rfind('/') + 1);
  if (test.ends_with(kSuffix)) test.remove_suffix(kSuffix.size());
  std::vector<std::string> known;
  for (const auto& [name, op] : kPrograms) {
    if (test == name) return std::string(op);
    known.emplace_back(name);
  }
  throw InputError("'" + std::string(program) +
                   "' is no test that weft predicts; known: " + known_names(known));
}

PrintedNumber printed_number(std::string_view word) {
  const std::size_t point = std::min(word.find('.'), word.size());
  const std::size_t digits = word.size() - std::min(point + 1, word.size());
  return {parse_number(word).value_or(0), std::pow(10.0, -static_cast<double>(digits)) / 2};
}

std::vector<BusFactor> factors_of(const PrintedBandwidths& row, std::int64_t ranks) {
  std::vector<BusFactor> out;
  for (const Operation& operation : kOperations) {
    if (std::find(out.begin(), out.end(), operation.bus) != out.end()) continue;
    const double value = busbw_factor(operation.op, static_cast<std::uint32_t>(ranks));
    const double rounded = row.busbw.half + row.algbw.half * value;
    if (std::abs(row.busbw.value - row.algbw.value * value) > rounded) continue;
    out.push_back(operation.bus);
  }
  return out;
}

std::string_view op_by(const OpSignature& of) {
  if (of.factor == BusFactor::kTwice) return "allreduce";
  if (of.factor == BusFactor::kPlain && of.has_root) return of.has_op ? "reduce" : "broadcast";
  if (!of.has_op || of.has_root || !of.has_all_columns) return "";
  if (of.factor == BusFactor::kOnce) return "reducescatter";
  return of.factor == BusFactor::kPlain ? "sendrecv" : "";
}

void check_op(std::string_view op, const PrintedBandwidths& row, std::int64_t ranks,
              std::string_view advice) {
  const std::vector<BusFactor> factors = factors_of(row, ranks);
  const auto fits = [&](const Operation& operation) {
    return std::find(factors.begin(), factors.end(), operation.bus) != factors.end();
  };
  std::vector<std::string_view> like;
  for (const Operation& operation : kOperations) {
    if (!fits(operation)) continue;
    if (operation.name == op) return;
    like.push_back(operation.name);
  }
  const std::string others = like.empty() ? "nor that of any operation"
                                          : fmt::format("but that of {}", fmt::join(like, ", "));
  throw InputError(fmt::format("busbw {} at algbw {} is not that of {} on {} ranks, {}; {}",
                               row.busbw.value, row.algbw.value, op, ranks, others, advice));
}

}  // namespace weft
