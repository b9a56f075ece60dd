#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/doctor/check_table.hpp"
#include "models/doctor/price.hpp"

namespace weft {

struct DoctorRequest {
  PriceRequest price;
  std::string gpu{};                   ///< the GPUs' part; "": as the evidence says
  std::optional<std::uint32_t> nodes;  ///< absent: the evidence's, and two where there are NICs
};

/// What one check came to on one host.
struct Checked {
  std::string_view name;
  std::string_view looks_at;
  std::string host;
  Outcome outcome;  ///< its findings stand in Diagnosis
};

/// What all findings of a host cost together.
struct HostPrice {
  std::string host;
  Priced priced;
};

struct Diagnosis {
  std::string op;
  std::uint32_t nodes{1};
  std::string nccl_version;
  std::vector<std::string> hosts;  ///< that were examined, the one that is as most are first
  std::vector<Checked> checks;
  std::vector<Finding> findings;  ///< what costs most first, then those without a price
  std::vector<HostPrice> together;
  std::vector<std::string> notes;
  std::vector<std::string> unread;  ///< those of the notes that tell what was not read

  std::size_t count(Verdict verdict) const;
  /// Whether a finding is an error, costs, or may cost, more than this share of bandwidth at any
  /// size, alone or with the others, or has a price that is not known.
  bool is_ill(double threshold) const;
};

/// Goes through the checklist for the host that is as most are, then for each other, of which
/// findings count that the first has not; predicts what each costs, for eight other hosts at most.
/// The same evidence gives the same diagnosis. Throws InputError: no GPU in the evidence; Stopped.
Diagnosis diagnose(const Evidence& evidence, const DoctorRequest& request,
                   const ParamCatalog& catalog);

}  // namespace weft
