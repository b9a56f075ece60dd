#include "tools/border.hpp"

namespace weft::api {

Cause cause_of(CauseShare cause) {
  return {std::move(cause.cause), std::move(cause.where), cause.share};
}

}  // namespace weft::api
