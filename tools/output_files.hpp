#pragma once

#include <string>

namespace weft {

/// Throws InputError if `--json` and another option name one file, or both standard output ("-").
void check_outputs_differ(const std::string& json, const std::string& option,
                          const std::string& file);

}  // namespace weft
