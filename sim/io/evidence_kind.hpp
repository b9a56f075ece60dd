#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft {

/// The kinds of output of other tools that say something of a machine: what `weft import` reads.
enum class EvidenceKind : std::uint8_t {
  kTopoMatrix,
  kLspci,
  kLspciTree,
  kNcclLog,
  kNcclTestsList,
  kNcclXml,
  kHwloc,
  kNvidiaSmi,
  kNvidiaSmiQuery,
  kNvidiaSmiXml,
  kNvlink,
  kIbstat,
  kIbstatus,
  kIbvDevinfo,
  kRdmaLink,
  kMlxlink,
  kMst,
  kIbdev2netdev,
  kIbnetdiscover,
  kIbnetdiscoverPorts,
  kIblinkinfo,
  kIbqueryerrors,
  kPerfquery,
  kEthtoolStatistics,
  kDmesg,
  kCommandLine,
  kLsmod,
  kLscpu,
  kCpuinfo,
  kDriverVersion,
  kUname,
  kModinfo,
  kSysfs,
  kRdmaTopo,
  kAcsLines,
};

/// One kind: its tool, and how it is known.
struct EvidenceKindText {
  EvidenceKind kind;
  std::string_view tool;  ///< "lspci -vvv"
  /// Whether a line, without the blanks at its end, begins such output.
  bool (*begins)(std::string_view line);
};

/// All of them; the first whose `begins` holds counts.
std::span<const EvidenceKindText> evidence_kinds();
/// The kind that such a line begins, or nullptr.
const EvidenceKindText* evidence_begun_by(std::string_view line);
std::string_view evidence_tool(EvidenceKind kind);
/// Whether it is what a tool prints with measured rows: a file of both is taken for these.
constexpr bool is_of_measured(EvidenceKind kind) { return kind == EvidenceKind::kNcclTestsList; }

}  // namespace weft
