#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/cases/change.hpp"
#include "models/explain/site.hpp"

namespace weft {

/// One way in which a cause shows on a machine: where, and how much of it.
struct Variant {
  std::string where;  ///< "all NICs", "one NIC (nic0, or another of 8 alike)"
  std::string how;    ///< "x8 lanes", "NCCL_ALGO=Tree"
  Change change;
};

/// An entry of the catalogue: a change of the machine or of NCCL's environment.
struct CauseEntry {
  std::string_view id;      ///< "acs"
  std::string_view title;   ///< "ACS sends peer traffic by the root complex"
  std::string_view needs;   ///< what a machine must have for it to be there
  std::string_view verify;  ///< what to run or to change
  std::string_view check;   ///< of `weft doctor`, that confirms or rules it out; "": none
  bool has_other_reasons;   ///< a check that is ok makes it less likely, and does not rule it out
  /// None: it cannot be on this machine.
  std::vector<Variant> (*variants)(const Site& site);
  std::string_view seen_by{};  ///< a check that sees what it does, whatever led to it; "": none
};

/// All of them; of causes that predict the same, those that more machines have come first.
const std::vector<CauseEntry>& catalogue();
/// Its parts, by what they change.
std::span<const CauseEntry> pcie_causes();
std::span<const CauseEntry> nccl_causes();

/// What can make a run slow, too, and has no entry.
struct NotLookedAt {
  std::string_view what;
  std::string_view why;
};
std::span<const NotLookedAt> not_looked_at();

}  // namespace weft
