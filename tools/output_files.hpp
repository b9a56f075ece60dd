#pragma once

#include <span>
#include <string>

namespace weft {

/// A value of the command line that names a file, or may do so.
struct GivenFile {
  std::string name;  ///< of its argument or option: "measured", "--json"
  std::string value;
};

/// Throws InputError if two outputs go to one file, or both to standard output ("-"); or if one
/// would overwrite a file that another value names, by whatever path and links, as it is or behind
/// a KEY=. Devices and pipes overwrite nothing.
void check_outputs(std::span<const GivenFile> outputs, std::span<const GivenFile> others);

}  // namespace weft
