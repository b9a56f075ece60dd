#pragma once

#include <string>
#include <string_view>

namespace weft {

/// The kinds of files that weft reads, as far as they are known at sight.
enum class TextKind {
  kUnknown,
  kMeasured,
  kPredicted,
  kScenario,
  kTopology,
  kResult,
  kParameters,
  kTrace,
  kEvidence,
  kGate,
  kGraphs
};

/// By the first lines; kUnknown where these do not say it for certain. Measured rows beside what is
/// evidence of a machine are evidence. O(1).
TextKind kind_of(std::string_view text);
/// Whether measured rows have a list of the devices that they are of, which is evidence of a
/// machine. Looks at the first lines, too.
bool lists_devices(std::string_view text);

/// "weft show, check, nccl, perftest and copies read it". Precondition: a known kind.
std::string_view readers_of(TextKind kind);

/// "is a topology, not a scenario; weft show ... read it" if `text` is for certain of another kind
/// than `wanted`, else "".
std::string other_kind(std::string_view text, TextKind wanted);
/// Throws InputError if `text` is for certain of another kind than `wanted`: it says of which, and
/// which command reads that.
void refuse_other_kind(std::string_view text, const std::string& file, TextKind wanted);

}  // namespace weft
