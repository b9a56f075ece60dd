#pragma once

#include <array>
#include <string>

#include "sim/base/params.hpp"

namespace weft::test {

constexpr ParamSpec test_param(std::string_view key, Unit unit, double fallback, double min,
                               double max, std::string_view choices = {}) {
  return {key, unit, fallback, min, max, Origin::kAssumed, "test", "test", choices};
}

inline constexpr std::array kTestParams{
    test_param("gpu.pcie_gen", Unit::kCount, 5, 1, 6),
    test_param("gpu.pcie_width", Unit::kCount, 16, 1, 32),
    test_param("gpu.gdr", Unit::kChoice, 1, 0, 1, "off on"),
    test_param("nic.pcie_gen", Unit::kCount, 5, 1, 6),
    test_param("nic.pcie_width", Unit::kCount, 16, 1, 32),
    test_param("nic.rate", Unit::kGigabytesPerS, 50, 0.1, 200),
    test_param("nic.gdr", Unit::kChoice, 1, 0, 1, "off on"),
    test_param("switch.pcie_gen", Unit::kCount, 5, 1, 6),
    test_param("switch.pcie_width", Unit::kCount, 16, 1, 32),
    test_param("netswitch.latency", Unit::kNanoseconds, 200, 0, 1e5),
    test_param("netswitch.uplink_length", Unit::kMetres, 30, 0.1, 1e5),
    test_param("wire.kind", Unit::kChoice, 0, 0, 1, "infiniband roce"),
};
static_assert(every_param_is_sourced(kTestParams));

inline ParamCatalog test_catalog() {
  const std::array<std::span<const ParamSpec>, 1> tables{kTestParams};
  return ParamCatalog(tables);
}

/// The message with which `call` refuses its input; "accepted" if it does not.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace weft::test
