#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace weft {

/// What the program exits with.
enum class ExitCode : std::uint8_t {
  kOk = 0,
  kInput = 2,
  kExpectation = 4,
  kRefused = 5,
  kFault = 6,
  kBug = 70,
  kStopped = 130
};

/// `weft doctor` found what matters, or a run that `weft explain` looked at is too slow.
class FaultFound : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
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
    ExitMeaning{ExitCode::kExpectation,
                "a stated threshold (--expect), or a floor (weft expect --measured), is missed"},
    ExitMeaning{ExitCode::kRefused, "a calibration is refused; the message says why"},
    ExitMeaning{ExitCode::kFault,
                "weft doctor found an error, or what costs over its --threshold; what weft explain "
                "looked at is slower than it should be"},
    ExitMeaning{ExitCode::kBug, "a bug in weft; please report it"},
    ExitMeaning{ExitCode::kStopped,
                "stopped early by Ctrl-C, SIGTERM or --time-limit; what was done is kept, and the "
                "message says how to go on"}};

}  // namespace weft
