#include "sim/io/tool_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/kernel_log.hpp"
#include "sim/io/text_form.hpp"

namespace weft {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// The end of the terminal code that begins at `at`: ECMA-48 control sequences (ESC [), operating
/// system commands (ESC ]), and two-character ones.
std::size_t end_of_code(std::string_view text, std::size_t at) {
  if (++at == text.size()) return at;
  const char kind = text[at++];
  if (kind == '[') {
    while (at < text.size() && text[at] >= 0x20 && text[at] < 0x40) ++at;
    return at < text.size() && text[at] != '\n' ? at + 1 : at;
  }
  if (kind == ']') {
    while (at < text.size() && text[at] != '\a' && text[at] != '\n') ++at;
    return at < text.size() && text[at] == '\a' ? at + 1 : at;
  }
  return kind == '\n' ? at - 1 : at;
}

std::string without_codes(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::size_t at = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  std::string out;
  out.reserve(text.size());
  while (at < text.size()) {
    const std::size_t code = std::min(text.find_first_of("\x1b\r", at), text.size());
    out += text.substr(at, code - at);
    at = code;
    if (at < text.size()) at = text[at] == '\r' ? at + 1 : end_of_code(text, at);
  }
  return out;
}

/// What a collector puts before a line: how long it is, and the host it names.
struct Prefix {
  std::size_t length;
  std::string_view host;
};

/// Text quoted in mail or on GitHub: "> ". What is quoted again has several.
std::optional<Prefix> quote_prefix(std::string_view line) {
  if (!line.starts_with('>')) return std::nullopt;
  return Prefix{line.starts_with("> ") ? 2U : 1U, ""};
}

/// kubectl logs --prefix: "[pod/NAME/CONTAINER] ".
std::optional<Prefix> pod_prefix(std::string_view line) {
  const std::size_t end = line.find("] ");
  if (!line.starts_with("[pod/") || end == std::string_view::npos) return std::nullopt;
  const std::string_view name = line.substr(5, end - 5);
  return Prefix{end + 2, name.substr(0, name.find('/'))};
}

/// mpirun --tag-output: "[1,0]<stdout>:" of Open MPI 4, "[prterun-HOST-PID@1,0]<stdout>: " of 5, of
/// --timestamp-output with a time before it. A blank behind it is the prefix's own or not. The job
/// and rank name no host.
std::optional<Prefix> mpi_prefix(std::string_view line) {
  constexpr std::size_t kLongest = 128;
  const std::string_view head = line.substr(0, kLongest);
  for (const std::string_view stream : {"<stdout>:", "<stderr>:", "<stddiag>:"}) {
    const std::size_t at = head.find(stream);
    if (at == 0 || at == std::string_view::npos) continue;
    const std::size_t end = at + stream.size();
    return Prefix{end + (line.substr(end).starts_with(' ') ? 1U : 0U), ""};
  }
  return std::nullopt;
}

/// Hydra's -prepend-rank: "[0] ", the rank, which names no host. Not ibnetdiscover's port, behind
/// which its peer stands in quotes: "[17]\t"H-..."", with blanks where a page shows it.
std::optional<Prefix> rank_prefix(std::string_view line) {
  const std::size_t end = line.find(']');
  if (!line.starts_with('[') || end == std::string_view::npos || end == 1) return std::nullopt;
  std::string_view rank = line.substr(1, end - 1);
  std::string_view after = line.substr(end + 1);
  for (const std::string_view role : {"rank", "default"}) {  // torchrun's, whose colon follows
    if (!rank.starts_with(role) || !after.starts_with(':')) continue;
    rank.remove_prefix(role.size());
    after.remove_prefix(1);
  }
  if (!std::all_of(rank.begin(), rank.end(), is_digit)) return std::nullopt;
  const bool has_colon = line[line.size() - after.size() - 1] == ':';
  const bool has_blank = after.starts_with(' ');
  if (!after.empty() && !has_blank && !has_colon) return std::nullopt;
  if (trimmed(after).starts_with('"')) return std::nullopt;
  return Prefix{line.size() - after.size() + (has_blank ? 1U : 0U), ""};
}

/// Ray and SkyPilot: "(NAME pid=41, ip=10.0.0.2) ", "(NAME, rank=0, pid=41) ", a process, which
/// names no host as other tools do.
std::optional<Prefix> worker_prefix(std::string_view line) {
  constexpr std::size_t kMost = 128;
  const std::size_t end = line.substr(0, kMost).find(')');
  if (!line.starts_with('(') || end == std::string_view::npos) return std::nullopt;
  if (line.substr(0, end).find("pid=") == std::string_view::npos) return std::nullopt;
  return Prefix{std::min(end + 2, line.size()), ""};
}

/// CloudWatch's table without its column of names: "| 2024-12-04T07:19:43.480Z | ", in which the
/// second bar may be missing, the message then stands there twice.
std::optional<Prefix> cloudwatch_prefix(std::string_view line) {
  constexpr std::string_view kBefore = "| ";
  constexpr std::string_view kBehind = " | ";
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  if (!line.substr(begin).starts_with(kBefore)) return std::nullopt;
  for (const std::string_view zone : {"Z", "+dd:dd", "-dd:dd"}) {
    const std::string form = "dddd-dd-ddTdd:dd:dd.ddd" + std::string(zone);
    if (!has_form(line.substr(begin + kBefore.size(), form.size()), form)) continue;
    const std::size_t end = begin + kBefore.size() + form.size();
    return Prefix{end + (line.substr(end).starts_with(kBehind) ? kBehind.size() : 0), ""};
  }
  return std::nullopt;
}

/// docker compose: "NAME  | ".
std::optional<Prefix> compose_prefix(std::string_view line) {
  const std::size_t end = line.find_first_of(" |");
  if (end == 0 || end == std::string_view::npos || line[end] != ' ') return std::nullopt;
  const std::size_t bar = line.find_first_not_of(' ', end);
  if (bar == std::string_view::npos || line[bar] != '|' || bar > 80) return std::nullopt;
  return Prefix{bar + (line.substr(bar + 1).starts_with(' ') ? 2U : 1U), line.substr(0, end)};
}

/// A time by ISO 8601: "2026-05-05T06:16:47.1234Z ", "2026-05-05 06:16:47,123 ". One of the
/// kernel's log is its own, and tells such a line.
std::optional<Prefix> time_prefix(std::string_view line) {
  const std::size_t open = line.starts_with('[') ? 1 : 0;
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  const std::string_view time = line.substr(open, kForm.size());
  if (!has_form(time, kForm) && !has_form(time, "dddd-dd-dd dd:dd:dd")) return std::nullopt;
  const std::size_t end = line.find(' ', open + kForm.size());
  if (end == std::string_view::npos || end > 48 || kernel_line(line)) return std::nullopt;
  for (const std::string_view stream : {"stdout F ", "stderr F "}) {  // a container runtime's file
    if (line.substr(end + 1).starts_with(stream)) return Prefix{end + 1 + stream.size(), ""};
  }
  return Prefix{end + 1, ""};
}

/// A name of Kubernetes (RFC 1123): lower-case letters, digits, '-' and '.'.
bool is_kubernetes_name(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string_view::npos;
}

/// stern: "POD CONTAINER ". A pod's name has a '-' before what its controller adds.
std::optional<Prefix> stern_prefix(std::string_view line) {
  const std::size_t pod_end = line.find(' ');
  if (pod_end == std::string_view::npos || pod_end > 253) return std::nullopt;
  const std::string_view pod = line.substr(0, pod_end);
  const std::size_t end = line.find(' ', pod_end + 1);
  if (end == std::string_view::npos || end - pod_end > 64) return std::nullopt;
  const std::string_view container = line.substr(pod_end + 1, end - pod_end - 1);
  if (!is_kubernetes_name(pod) || !is_letter(pod[0]) || pod.find('-') == std::string_view::npos) {
    return std::nullopt;
  }
  if (!is_kubernetes_name(container) || !is_letter(container[0])) return std::nullopt;
  return Prefix{end + 1, pod};
}

/// What most of modinfo's lines begin with.
bool is_key_of_modinfo(std::string_view name) {
  constexpr std::array<std::string_view, 6> kKeys{"filename", "alias",   "firmware",
                                                  "license",  "version", "parm"};
  return std::find(kKeys.begin(), kKeys.end(), name) != kKeys.end();
}

/// pdsh and clush: "NAME: ", but not what the kernel calls its own, "NVRM: "; srun --label: "0: ",
/// to the right of a column, which names no host.
std::optional<Prefix> name_prefix(std::string_view line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t end = line.find(':', begin);
  if (end == begin || end == std::string_view::npos || end > 64) return std::nullopt;
  const std::string_view name = line.substr(begin, end - begin);
  for (const char c : name) {
    const bool allowed = is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_';
    if (!allowed) return std::nullopt;
  }
  const bool is_rank = std::all_of(name.begin(), name.end(), is_digit);
  if ((begin > 0 && !is_rank) || kernel_line(line) || is_key_of_modinfo(name)) return std::nullopt;
  const std::string_view after = line.substr(end + 1);
  if (!after.empty() && !after.starts_with(' ')) return std::nullopt;
  return Prefix{std::min(end + 2, line.size()), is_rank ? std::string_view{} : name};
}

using PrefixReader = std::optional<Prefix> (*)(std::string_view);

/// Whether nearly all lines have such a prefix: a script's own lines stand among them. A name
/// counts only if it stands before several lines: "State: Active" of some tool is none.
bool nearly_all_have(PrefixReader reader, const std::vector<ToolLine>& lines) {
  constexpr std::size_t kMostNames = 4096;
  const auto written =
      static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [](const ToolLine& line) {
        return !trimmed(line.text).empty();
      }));
  const std::size_t most_without = written / 8;
  std::set<std::string_view> names;
  std::size_t with = 0;
  std::size_t without = 0;
  for (const ToolLine& line : lines) {
    if (trimmed(line.text).empty()) continue;
    const std::optional<Prefix> prefix = reader(line.text);
    if (prefix) {
      ++with;
      const bool is_time = reader == time_prefix || reader == cloudwatch_prefix;
      if (!is_time) names.insert(line.text.substr(0, prefix->length));
    } else {
      ++without;
    }
    if (without > most_without || names.size() >= kMostNames) return false;
  }
  return with > 1 && names.size() * 2 <= with;
}

/// The first kind of prefix that nearly all lines have; nullptr if there is none.
PrefixReader prefix_of(const std::vector<ToolLine>& lines) {
  constexpr std::array<PrefixReader, 10> kReaders{
      quote_prefix,      pod_prefix,     mpi_prefix,  rank_prefix,  worker_prefix,
      cloudwatch_prefix, compose_prefix, time_prefix, stern_prefix, name_prefix};
  const auto* const at = std::find_if(kReaders.begin(), kReaders.end(), [&](PrefixReader reader) {
    return nearly_all_have(reader, lines);
  });
  return at == kReaders.end() ? nullptr : *at;
}

/// Takes away the blanks that all lines begin with: a block of code of a page.
void take_indent(std::vector<ToolLine>& lines) {
  std::size_t least = std::string_view::npos;
  for (const ToolLine& line : lines) {
    if (!trimmed(line.text).empty()) least = std::min(least, line.text.find_first_not_of(' '));
  }
  if (least == std::string_view::npos) return;
  for (ToolLine& line : lines) line.text.remove_prefix(std::min(least, line.text.size()));
}

/// Takes away "> " where only some lines have it: of a quoted paragraph the first needs it.
void take_quotes(std::vector<ToolLine>& lines) {
  constexpr std::string_view kQuote = "> ";
  for (ToolLine& line : lines) {
    while (line.text.starts_with(kQuote)) line.text.remove_prefix(kQuote.size());
    if (line.text == ">") line.text = {};
  }
}

std::vector<ToolLine> lines_of(std::string_view text, const std::string& file) {
  std::vector<ToolLine> out;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const Place place{file, number, 0};
    if (line.size() > kMostToolLineBytes) {
      throw InputError(place,
                       "more than " + std::to_string(kMostToolLineBytes) + " bytes in a line");
    }
    if (out.size() == kMostToolLines) {
      throw InputError(place, "more than " + std::to_string(kMostToolLines) + " lines; cut it");
    }
    out.push_back({line, {}, number});
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return out;
}

}  // namespace

ToolText::ToolText(std::string_view text, const std::string& file)
    : clean_{without_codes(text)}, lines_{lines_of(clean_, file)} {
  constexpr int kMostPrefixes = 3;  // a time behind a name behind a bracket
  take_indent(lines_);
  take_quotes(lines_);
  for (int i = 0; i < kMostPrefixes; ++i) {
    const PrefixReader reader = prefix_of(lines_);
    if (reader == nullptr) break;
    for (ToolLine& line : lines_) {
      const std::optional<Prefix> prefix = reader(line.text);
      if (!prefix) continue;
      if (!prefix->host.empty()) line.host = prefix->host;
      line.text.remove_prefix(prefix->length);
    }
  }
  take_indent(lines_);
}

std::string without_prefixes(std::string_view text, const std::string& file) {
  if (trimmed(text).starts_with('{')) return std::string(text);
  const ToolText read(text, file);
  std::string out;
  out.reserve(read.clean().size());
  for (const ToolLine& line : read.lines()) {
    out += line.text;
    out += '\n';
  }
  if (!out.empty() && !text.ends_with('\n')) out.pop_back();  // it may be cut off
  return out;
}

}  // namespace weft
