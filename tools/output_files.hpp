#pragma once

#include <span>
#include <string>
#include <utility>

namespace weft {

/// An option that names an output, and the file that it names; "" where it was not given, "-" for
/// standard output.
using OutputOption = std::pair<std::string, std::string>;

/// Throws InputError if two of them name one file, or both standard output.
void check_outputs_differ(std::span<const OutputOption> outputs);
/// The same of `--json` and another one.
void check_outputs_differ(const std::string& json, const std::string& option,
                          const std::string& file);

}  // namespace weft
