#include "tools/output_files.hpp"

#include "sim/base/error.hpp"

namespace weft {

void check_outputs_differ(const std::string& json, const std::string& option,
                          const std::string& file) {
  if (json.empty() || json != file) return;
  throw InputError("--json and " + option + " cannot both go to " +
                   (json == "-" ? "standard output" : json));
}

}  // namespace weft
