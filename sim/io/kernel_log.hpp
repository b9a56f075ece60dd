#pragma once

#include <optional>
#include <string_view>

namespace weft {

/// A line of the kernel's log without what stands before its message.
struct KernelLine {
  std::string_view host;  ///< that journalctl and syslog name, up to its first dot; "": none
  std::string_view message;
};

/// As `dmesg` writes it ("[   12.345678] ...", "[   12.345678][  T123] ..."), with -T ("[Tue Mar  5
/// 10:11:12 2024] ..."), with -H ("[Mar 5 10:11] ...", "[  +0.000123] ..."), with
/// --time-format iso ("2024-03-05T10:11:12,123456+01:00 ..."), with -x or -r ("kern  :warn  : " or
/// "<4>" before any), with -t where it begins with a driver's name, and journalctl -k or syslog
/// ("Mar 05 10:11:12 HOST kernel: ...", or with an ISO time, or as short-full has it). nullopt: it
/// is none.
std::optional<KernelLine> kernel_line(std::string_view line);

}  // namespace weft
