#include "tools/output_files.hpp"

#include <array>

#include "sim/base/error.hpp"

namespace weft {

void check_outputs_differ(std::span<const OutputOption> outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, file] = outputs[i];
    if (file.empty()) continue;
    for (const auto& [other, same] : outputs.subspan(i + 1)) {
      if (same != file) continue;
      throw InputError(option + " and " + other + " cannot both go to " +
                       (file == "-" ? "standard output" : file));
    }
  }
}

void check_outputs_differ(const std::string& json, const std::string& option,
                          const std::string& file) {
  check_outputs_differ(std::array<OutputOption, 2>{{{"--json", json}, {option, file}}});
}

}  // namespace weft
