#pragma once

#include <array>

namespace weft {

/// What Max_Payload_Size and Max_Read_Request_Size can be, bytes: the encodings of PCIe Base
/// 7.5.3.4; for ParamSpec::allowed.
inline constexpr std::array<double, 6> kPcieSizes{128, 256, 512, 1024, 2048, 4096};

}  // namespace weft
