#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/id.hpp"

namespace weft {

using CauseId = Id<struct CauseTag>;

/// Why time passes: a kind of thing, and which one of that kind.
struct Cause {
  std::string kind;   ///< "PCIe uplink, switch to CPU"
  std::string where;  ///< "pcisw0 -> cpu0 @0"; "" where there is only one
};

/// "PCIe uplink, switch to CPU: pcisw0 -> cpu0 @0", or the kind alone.
std::string cause_text(const Cause& cause);

/// The causes of one run, by dense id. Every wait names one.
class CauseTable {
 public:
  /// The id of this cause, new or known.
  CauseId intern(const Cause& cause);
  const Cause& operator[](CauseId id) const { return causes_[id.index()]; }

 private:
  std::vector<Cause> causes_;
  std::map<std::pair<std::string, std::string>, CauseId> ids_;
};

}  // namespace weft
