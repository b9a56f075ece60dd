#include "sim/io/text_kind.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/evidence_kind.hpp"

namespace weft {
namespace {

constexpr std::size_t kHead = 16'384;  // bytes that are looked at

struct KindText {
  TextKind kind;
  std::string_view what;
  std::string_view readers;
};
constexpr std::array<KindText, 10> kKinds{
    {{TextKind::kMeasured, "measured rows",
      "weft compare, calibrate, explain and expect --measured read it"},
     {TextKind::kPredicted, "rows that weft predicted (--csv)",
      "weft report reads those of a sweep, weft diff the JSON of runs"},
     {TextKind::kScenario, "a scenario", "weft run, step, traffic, sweep and check read it"},
     {TextKind::kTopology, "a topology", "weft show, check, nccl, perftest and copies read it"},
     {TextKind::kResult, "a result of weft run or weft nccl", "weft diff reads it"},
     {TextKind::kParameters, "a file of parameters", "--params reads it"},
     {TextKind::kTrace, "a verbs trace", "weft trace, replay and calibrate read it"},
     {TextKind::kEvidence, "another tool's output", "weft import and doctor read it"},
     {TextKind::kGate, "a gate's floors", "weft expect reads it"},
     {TextKind::kGraphs, "an NCCL graph file (<graphs>), the rings and trees that NCCL chose",
      "weft does not read it: NCCL_TOPO_DUMP_FILE writes the topology, which weft check and import "
      "read, and NCCL_DEBUG=INFO logs the rings and trees, which weft diff reads"}}};

constexpr std::string_view kTraceMagic = "\x89weft\r\n\x1a";  // replay/trace/block.hpp

const KindText& text_of(TextKind kind) {
  return *std::find_if(kKinds.begin(), kKinds.end(),
                       [kind](const KindText& k) { return k.kind == kind; });
}

bool has(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

TextKind kind_of_json(std::string_view head) {
  for (const std::string_view schema : {"\"weft.run/1\"", "\"weft.nccl/1\""}) {
    if (has(head, schema)) return TextKind::kResult;
  }
  if (has(head, "\"weft.gate/1\"")) return TextKind::kGate;
  for (const std::string_view key :
       {"\"test_info\"", "test_info:", "\"nvbandwidth\"", "\"out_of_place\""}) {
    if (has(head, key)) return TextKind::kMeasured;
  }
  return TextKind::kUnknown;
}

/// Of other tools' logs a line that only they have.
bool is_of_log(std::string_view line) {
  // nccl-tests' head before releases that say so: of its options, or of its columns.
  const auto all = [&](std::initializer_list<std::string_view> words) {
    return std::all_of(words.begin(), words.end(), [&](auto word) { return has(line, word); });
  };
  if (all({"nThread ", " nGpus ", " minBytes "}) ||
      all({" count ", " type ", " algbw ", " busbw "})) {
    return true;
  }
  return line.starts_with("# nccl-tests version") ||
         line.starts_with("# Collective test starting:") ||
         line.starts_with("nvbandwidth Version:") ||
         (has(line, "#bytes") && has(line, "#iterations"));
}

/// The first line of what weft run and sweep write with --csv.
bool is_of_predictions(std::string_view line) {
  return has(line, "memory_path,algo,proto,channels,time_us,algbw_GBps,");
}

/// A measured table's first line.
bool is_of_table(std::string_view line) {
  return line.starts_with("transport,") || (has(line, ",op,") && has(line, ",bytes"));
}

}  // namespace

TextKind kind_of(std::string_view text) {
  if (text.starts_with(kTraceMagic)) return TextKind::kTrace;
  std::string_view head = text.substr(0, kHead);
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
  if (head.starts_with('{')) return kind_of_json(head);
  const std::string_view first = head.substr(0, head.find('\n'));
  if (is_of_predictions(first)) return TextKind::kPredicted;
  if (is_of_table(first)) return TextKind::kMeasured;
  bool has_node = false;
  bool has_topology = false;
  bool has_log = false;
  bool has_list = false;
  const EvidenceKindText* begun = nullptr;
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find('\n'));
    head.remove_prefix(std::min(line.size() + 1, head.size()));
    has_log = has_log || is_of_log(line);
    if (begun == nullptr) begun = evidence_begun_by(trimmed(line));
    if (begun != nullptr && is_of_measured(begun->kind)) {
      has_list = true;
      begun = nullptr;
    }
    if (has_log) continue;
    if (line.starts_with("<graphs ")) return TextKind::kGraphs;
    if (line.starts_with("scenario:")) return TextKind::kScenario;
    if (line.starts_with("calibration:")) return TextKind::kParameters;
    has_node = has_node || line.starts_with("node:");
    has_topology = has_topology || line.starts_with("topology:");
  }
  if (has_log && begun == nullptr) return TextKind::kMeasured;
  if (has_node && has_topology) return TextKind::kTopology;
  // NCCL's topology dump is a topology too.
  const bool evidence = begun == nullptr ? has_list : begun->kind != EvidenceKind::kNcclXml;
  return evidence ? TextKind::kEvidence : TextKind::kUnknown;
}

bool lists_devices(std::string_view text) {
  for (std::string_view head = text.substr(0, kHead); !head.empty();) {
    const std::string_view line = head.substr(0, head.find('\n'));
    head.remove_prefix(std::min(line.size() + 1, head.size()));
    const EvidenceKindText* const begun = evidence_begun_by(trimmed(line));
    if (begun != nullptr && is_of_measured(begun->kind)) return true;
  }
  return false;
}

std::string_view readers_of(TextKind kind) { return text_of(kind).readers; }

std::string other_kind(std::string_view text, TextKind wanted) {
  const TextKind kind = kind_of(text);
  if (kind == TextKind::kUnknown || kind == wanted) return "";
  // Who reads topologies tells of other XML with its place.
  if (kind == TextKind::kGraphs && wanted == TextKind::kTopology) return "";
  // Measured rows may stand far below what NCCL logged of the same run.
  if (kind == TextKind::kEvidence && wanted == TextKind::kMeasured) return "";
  return "is " + std::string(text_of(kind).what) + ", not " + std::string(text_of(wanted).what) +
         "; " + std::string(text_of(kind).readers);
}

void refuse_other_kind(std::string_view text, const std::string& file, TextKind wanted) {
  const std::string other = other_kind(text, wanted);
  if (!other.empty()) throw InputError(file + ": " + other);
}

}  // namespace weft
