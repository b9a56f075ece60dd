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
/// 10:11:12 2024] ..."), with -x ("kern  :warn  : " before either), and journalctl -k or syslog
/// ("Mar 05 10:11:12 HOST kernel: ...", or with an ISO time). nullopt: it is none.
std::optional<KernelLine> kernel_line(std::string_view line);

}  // namespace weft
