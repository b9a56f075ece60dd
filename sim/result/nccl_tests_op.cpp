#include "sim/result/nccl_tests_op.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"

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

std::vector<BusFactor> factors_of(const PrintedBandwidths& row, std::int64_t ranks) {
  const double n = static_cast<double>(ranks);
  std::vector<BusFactor> out;
  for (const auto& [factor, value] : {std::pair{BusFactor::kTwice, 2 * (n - 1) / n},
                                      {BusFactor::kOnce, (n - 1) / n},
                                      {BusFactor::kPlain, 1.0}}) {
    if (std::abs(row.busbw - row.algbw * value) > kHalfDigit * (1 + value)) continue;
    out.push_back(factor);
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

void check_op(std::string_view op, const PrintedBandwidths& row, std::int64_t ranks) {
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
  throw InputError(
      fmt::format("busbw {} at algbw {} is not that of {} on {} ranks, {}; --as op=OP,ranks=N says "
                  "others of all rows: split the file where they differ",
                  row.busbw, row.algbw, op, ranks,
                  like.empty() ? "nor that of any operation"
                               : fmt::format("but that of {}", fmt::join(like, ", "))));
}

}  // namespace weft
