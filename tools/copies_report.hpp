#pragma once

#include <string>
#include <vector>

#include "models/copies/matrices.hpp"
#include "sim/result/run_result.hpp"
#include "tools/assembled.hpp"

namespace weft {

/// Copies as a user asks for them, words and counts not yet checked; named as the options of
/// `weft copies`. Neither end: nvbandwidth's matrices.
struct CopiesRequest {
  std::string from;
  std::string to;
  std::string by{"engine"};
  std::string fidelity{"fluid"};
  bool bidirectional{false};
  unsigned blocks{0};
  bool all{false};            ///< powers of two from 64 B to 1 GiB
  const Stop* stop{nullptr};  ///< asks it to end early

  bool wants_matrices() const { return from.empty() && to.empty(); }
};

inline constexpr unsigned kMostBlocks = 4096;

/// What copies of one size at once, or of a matrix one after another, come to together.
struct CopySum {
  std::string test;  ///< "" if of no matrix
  Bytes bytes;
  Bandwidth rate{Bandwidth::bytes_per_s(1)};
};

/// Copies that were run.
struct CopiesReport {
  CopiesRequest request;
  std::vector<CopyRow> rows;
  std::vector<CopySum> sums;
  Provenance provenance;
};

/// Runs what a user asks for, size by size.
class CopiesRun {
 public:
  /// `on` must outlive the run. No sizes: what nvbandwidth has, and less on packets. Throws
  /// InputError naming the option and what is allowed.
  CopiesRun(const Assembled& on, CopiesRequest request, std::vector<Bytes> sizes);

  const std::vector<Bytes>& sizes() const { return sizes_; }

  /// Text for people, before all sizes.
  std::string head() const;
  /// One size; what it comes to as text for people.
  std::string run(Bytes size);
  /// What was asked for and has no effect; "" if nothing was.
  std::string note() const;
  const CopiesReport& report() const { return report_; }

 private:
  std::string run_matrices(Bytes size);
  std::string run_pairs(Bytes size);

  const Assembled& on_;
  CopyTask task_;
  std::vector<Bytes> sizes_;
  CopiesReport report_;
};

/// What a user set that copies do not have; "" if nothing was.
std::string no_effect_on_copies(const std::vector<ScenarioSetting>& set, const Machine& machine);

/// One CSV line for each row, and a head.
std::string copies_csv(const CopiesReport& report);

}  // namespace weft
