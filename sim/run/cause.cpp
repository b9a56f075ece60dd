#include "sim/run/cause.hpp"

namespace weft {

CauseId CauseTable::intern(const Cause& cause) {
  const auto [at, is_new] = ids_.try_emplace({cause.kind, cause.where}, CauseId{causes_.size()});
  if (is_new) causes_.push_back(cause);
  return at->second;
}

}  // namespace weft
