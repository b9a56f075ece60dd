#include "sim/input/evidence/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

void refuse_binary(std::string_view text, const std::string& file) {
  const auto refuse = [&](const std::string& why) { throw InputError(Place{file, 0, 0}, why); };
  if (text.empty()) refuse("is empty");
  if (text.starts_with("\x1f\x8b") ||
      text.starts_with("\xfd"
                       "7zXZ") ||
      text.starts_with("BZh") || text.starts_with("\x28\xb5\x2f\xfd") ||
      text.starts_with("PK\x03")) {
    refuse("is compressed; decompress it first");
  }
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    refuse("is UTF-16; write it as UTF-8");
  }
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    throw InputError(
        Place{file,
              1 + static_cast<int>(std::count(
                      text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n')),
              0},
        "is no text: a byte 0");
  }
}

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

/// kubectl logs --prefix: "[pod/NAME/CONTAINER] ".
std::optional<Prefix> pod_prefix(std::string_view line) {
  const std::size_t end = line.find("] ");
  if (!line.starts_with("[pod/") || end == std::string_view::npos) return std::nullopt;
  const std::string_view name = line.substr(5, end - 5);
  return Prefix{end + 2, name.substr(0, name.find('/'))};
}

/// mpirun --tag-output: "[1,0]<stdout>:", with a blank behind it or not. The job and rank name no
/// host.
std::optional<Prefix> mpi_prefix(std::string_view line) {
  const std::size_t end = line.find(">:");
  if (!line.starts_with('[') || end == std::string_view::npos || end > 32) return std::nullopt;
  if (!holds(line.substr(0, end), "]<std")) return std::nullopt;
  return Prefix{end + (line.substr(end + 2).starts_with(' ') ? 3U : 2U), ""};
}

/// docker compose: "NAME  | ".
std::optional<Prefix> compose_prefix(std::string_view line) {
  const std::size_t end = line.find_first_of(" |");
  if (end == 0 || end == std::string_view::npos || line[end] != ' ') return std::nullopt;
  const std::size_t bar = line.find_first_not_of(' ', end);
  if (bar == std::string_view::npos || line[bar] != '|' || bar > 80) return std::nullopt;
  return Prefix{bar + (line.substr(bar + 1).starts_with(' ') ? 2U : 1U), line.substr(0, end)};
}

/// pdsh and clush: "NAME: "; srun -l: "0: ", which names no host.
std::optional<Prefix> name_prefix(std::string_view line) {
  const std::size_t end = line.find(':');
  if (end == 0 || end == std::string_view::npos || end > 64) return std::nullopt;
  for (const char c : line.substr(0, end)) {
    const bool allowed =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_';
    if (!allowed) return std::nullopt;
  }
  const std::string_view after = line.substr(end + 1);
  if (!after.empty() && !after.starts_with(' ')) return std::nullopt;
  const std::string_view name = line.substr(0, end);
  const bool is_rank = std::all_of(name.begin(), name.end(), is_digit);
  return Prefix{std::min(end + 2, line.size()), is_rank ? std::string_view{} : name};
}

/// A time by ISO 8601: "2026-05-05T06:16:47.1234Z ", "2026-05-05 06:16:47,123 ".
std::optional<Prefix> time_prefix(std::string_view line) {
  const std::size_t open = line.starts_with('[') ? 1 : 0;
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (line.size() < open + kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const char c = line[open + i];
    const bool fits =
        kForm[i] == 'd' ? is_digit(c) : c == kForm[i] || (kForm[i] == 'T' && c == ' ');
    if (!fits) return std::nullopt;
  }
  const std::size_t end = line.find(' ', open + kForm.size());
  if (end == std::string_view::npos || end > 48) return std::nullopt;
  return Prefix{end + 1, ""};
}

using PrefixReader = std::optional<Prefix> (*)(std::string_view);

/// The first kind of prefix that all lines have but blank ones. A name counts only if it stands
/// before several lines: "State: Active" of some tool is none.
PrefixReader prefix_of_all(const std::vector<EvidenceLine>& lines) {
  constexpr std::array<PrefixReader, 5> kReaders{pod_prefix, mpi_prefix, compose_prefix,
                                                 time_prefix, name_prefix};
  for (const PrefixReader reader : kReaders) {
    std::map<std::string_view, std::size_t> names;
    std::size_t written = 0;
    bool all = true;
    for (const EvidenceLine& line : lines) {
      if (without_blanks(line.text).empty()) continue;
      const std::optional<Prefix> prefix = reader(line.text);
      constexpr std::size_t kMostNames = 4096;
      all = prefix.has_value() && (reader == time_prefix || names.size() < kMostNames);
      if (!all) break;
      if (reader != time_prefix) ++names[line.text.substr(0, prefix->length)];
      ++written;
    }
    const bool several = reader == time_prefix || names.size() * 2 <= written;
    if (all && written > 1 && several) return reader;
  }
  return nullptr;
}

bool is_rule(std::string_view line) {
  return line.size() >= 8 && line.find_first_not_of('-') == std::string_view::npos;
}

/// "==> name <==" of tail; "" if the line is none.
std::string_view tail_head(std::string_view line) {
  if (!line.starts_with("==> ") || !line.ends_with(" <==")) return {};
  return line.substr(4, line.size() - 8);
}

}  // namespace

EvidenceText::EvidenceText(std::string_view text, std::string file, std::string host)
    : file_{std::move(file)} {
  refuse_binary(text, file_);
  clean_ = without_codes(text);
  make_sections(lines(), host);
}

std::vector<EvidenceText::Line> EvidenceText::lines() const {
  std::vector<EvidenceLine> raw;
  std::string_view rest = clean_;
  for (int number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const Place place{file_, number, 0};
    if (line.size() > kMostEvidenceLineBytes) {
      throw InputError(place, fmt::format("more than {} bytes in a line", kMostEvidenceLineBytes));
    }
    if (raw.size() == kMostEvidenceLines) {
      throw InputError(place, fmt::format("more than {} lines; cut it", kMostEvidenceLines));
    }
    raw.push_back({line, number});
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  std::vector<std::string> hosts(raw.size());
  constexpr int kMostPrefixes = 3;  // a time behind a name behind a bracket
  for (int i = 0; i < kMostPrefixes; ++i) {
    const PrefixReader reader = prefix_of_all(raw);
    if (reader == nullptr) break;
    for (std::size_t l = 0; l < raw.size(); ++l) {
      const std::optional<Prefix> prefix = reader(raw[l].text);
      if (!prefix) continue;
      if (!prefix->host.empty()) hosts[l] = prefix->host;
      raw[l].text.remove_prefix(prefix->length);
    }
  }
  std::vector<Line> out;
  out.reserve(raw.size());
  for (std::size_t l = 0; l < raw.size(); ++l) {
    out.push_back({raw[l].text, std::move(hosts[l]), raw[l].number});
  }
  return out;
}

/// Lines of several hosts may be mixed, so each has a section of its own that grows.
void EvidenceText::make_sections(const std::vector<Line>& lines, const std::string& host) {
  std::map<std::string, std::optional<std::size_t>> open;  // host: its section
  std::string named = host;                                // by a head
  std::string argument;
  for (std::size_t l = 0; l < lines.size(); ++l) {
    const Line& line = lines[l];
    if (is_rule(line.text) && l + 2 < lines.size() && is_rule(lines[l + 2].text) &&
        !holds(lines[l + 1].text, " ")) {
      named = lines[l + 1].text;
      l += 2;
      open.erase(named);
      continue;
    }
    if (const std::string_view head = tail_head(without_blanks(line.text)); !head.empty()) {
      named = head;
      open.erase(named);
      continue;
    }
    const std::string& of = line.host.empty() ? named : line.host;
    Scan command(line.text);
    if (command.skip("# weft-collect: ")) {  // which command's output follows
      const std::string_view words = command.rest();
      argument = words.substr(std::min(words.rfind(' ') + 1, words.size()));
      open.erase(of);
      continue;
    }
    std::optional<std::size_t>& section = open[of];
    const EvidenceKindText* begun = evidence_begun_by(without_blanks(line.text));
    // Of `grep ACSCtl`, but lspci's own inside its output.
    if (begun != nullptr && begun->kind == EvidenceKind::kAcsLines && section) begun = nullptr;
    if (begun != nullptr && (!section || sections_[*section].kind != begun->kind)) {
      section = sections_.size();
      sections_.push_back({begun->kind, file_, of, argument, {}});
    }
    if (section) sections_[*section].lines.push_back({line.text, line.number});
  }
}

}  // namespace weft
