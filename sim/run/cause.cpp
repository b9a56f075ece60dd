#include "sim/run/cause.hpp"

namespace weft {

std::string cause_text(const Cause& cause) {
  return cause.where.empty() ? cause.kind : cause.kind + ": " + cause.where;
}

CauseId CauseTable::intern(const Cause& cause) {
  const auto [at, is_new] = ids_.try_emplace({cause.kind, cause.where}, CauseId{causes_.size()});
  if (is_new) causes_.push_back(cause);
  return at->second;
}

}  // namespace weft
