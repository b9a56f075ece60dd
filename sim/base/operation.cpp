#include "sim/base/operation.hpp"

#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/lower_case.hpp"

namespace weft {

Op parse_op(std::string_view text) {
  std::vector<std::string> known;
  for (const Operation& row : kOperations) {
    if (is_same_word(row.name, text)) return row.op;
    known.emplace_back(row.name);
  }
  throw InputError("'" + std::string(text) + "' is not an operation; known: " + known_names(known));
}

double busbw_factor(Op op, std::uint32_t ranks) {
  const double n = ranks;
  switch (operation(op).bus) {
    case BusFactor::kTwice:
      return 2.0 * (n - 1.0) / n;
    case BusFactor::kOnce:
      return (n - 1.0) / n;
    case BusFactor::kPlain:
      break;
  }
  return 1.0;
}

}  // namespace weft
