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

/// A number as it is printed, and half of its last digit: by how much it may be rounded.
/// nccl-tests prints fewer digits behind the point of larger ones.
struct PrintedNumber {
  double value{0};
  double half{0};
};
/// 0 of a word that is no number.
PrintedNumber printed_number(std::string_view word);

/// A row's bandwidths in GB/s.
struct PrintedBandwidths {
  PrintedNumber algbw;
  PrintedNumber busbw;
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
/// which it is and with `advice`.
void check_op(std::string_view op, const PrintedBandwidths& row, std::int64_t ranks,
              std::string_view advice);

}  // namespace weft
