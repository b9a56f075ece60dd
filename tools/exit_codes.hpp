#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weft {

/// What the program exits with.
enum class ExitCode : std::uint8_t {
  kOk = 0,
  kInput = 2,
  kExpectation = 4,
  kRefused = 5,
  kBug = 70
};

struct ExitMeaning {
  ExitCode code;
  std::string_view meaning;
};
inline constexpr std::array kExitMeanings{
    ExitMeaning{ExitCode::kOk, "ok"},
    ExitMeaning{ExitCode::kInput,
                "usage or input is wrong; the message says where, what, and what "
                "is allowed"},
    ExitMeaning{ExitCode::kExpectation, "a stated threshold (--expect) is missed"},
    ExitMeaning{ExitCode::kRefused, "a calibration is refused; the message says why"},
    ExitMeaning{ExitCode::kBug, "a bug in weft; please report it"}};

}  // namespace weft
