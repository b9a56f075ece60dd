#pragma once

#include <string_view>

namespace weft {

/// The release of the kernel in a line of `uname` or /proc/version: "5.15.0-105-generic" of "Linux
/// node1 5.15.0-105-generic #115-Ubuntu SMP ...", "Linux 5.15.0-105-generic x86_64", "Linux version
/// 5.15.0-105-generic (...) ..." and of `uname -r`, where nothing else stands in the line and what
/// the builder adds tells it from other programs' versions. "" of other lines. Linux 3 to 9.
std::string_view linux_release_of(std::string_view line);

}  // namespace weft
