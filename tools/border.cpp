#include "tools/border.hpp"

namespace weft::api {

std::vector<Bytes> sizes_of(const std::vector<std::int64_t>& bytes) {
  std::vector<Bytes> out;
  for (const std::int64_t size : bytes) out.emplace_back(size);
  return out;
}

Cause cause_of(CauseShare cause) {
  return {std::move(cause.cause), std::move(cause.where), cause.share};
}

}  // namespace weft::api
