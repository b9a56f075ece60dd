#pragma once

#include <string>

namespace weft {

/// Between which multiples of its prediction the measured time of a row lies in eight cases of ten.
struct ErrorInterval {
  double low{1};
  double high{1};
  std::string wider{};  ///< "transport, op": the class that it is of; "": the row's own
};

}  // namespace weft
