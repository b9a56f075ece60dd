#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/operation.hpp"

namespace weft {

/// Which operation rows of nccl-tests are of: by its programs' names, and by what it printed.

/// What a measured table calls the operation of a program, "./build/all_reduce_perf_mpi". Throws
/// InputError with those that are known.
std::string op_of_program(std::string_view program);

/// A row's bandwidths in GB/s, with two digits behind the point: half the last one.
inline constexpr double kHalfDigit = 0.005;
struct PrintedBandwidths {
  double algbw{0};
  double busbw{0};
};

/// What of a table's columns tells its operation.
struct OpSignature {
  std::optional<BusFactor> factor{};  ///< busbw / algbw
  bool has_op{false};                 ///< another redop than "none"
  bool has_root{false};
  bool has_all_columns{false};  ///< redop and root, whatever the operation
};

/// The factors whose busbw / algbw on so many ranks a row has, as far as its digits tell.
std::vector<BusFactor> factors_of(const PrintedBandwidths& row, std::int64_t ranks);
/// The operation that alone has these columns (src/*.cu of nccl-tests), its other tests counted:
/// all-gather, all-to-all, gather, scatter and hypercube share theirs. "" if none has.
std::string_view op_by(const OpSignature& of);

/// Throws InputError if a row's busbw / algbw on so many ranks is not that of `op`, with those of
/// which it is.
void check_op(std::string_view op, const PrintedBandwidths& row, std::int64_t ranks);

}  // namespace weft
