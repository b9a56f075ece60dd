#pragma once

#include <string_view>

namespace weft {

/// What a kind of NCCL's warnings means.
struct NcclWarning {
  std::string_view words;   ///< that such a line has
  std::string_view also{};  ///< and these; "": nothing more
  std::string_view what;
  std::string_view remedy;
  bool is_error{true};  ///< else advice
};

/// Of the text behind "NCCL WARN"; nullptr where weft does not know it.
const NcclWarning* nccl_warning(std::string_view text);

}  // namespace weft
