#include "sim/input/evidence/text.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "sim/input/evidence/scan.hpp"
#include "sim/io/kernel_log.hpp"

namespace weft {
namespace {

/// The text, if it is one.
std::string_view checked(std::string_view text, const std::string& file) {
  const auto refuse = [&](const std::string& why) { throw InputError(Place{file, 0, 0}, why); };
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) refuse("is empty");
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
  return text;
}

bool is_rule(std::string_view line) {
  return line.size() >= 8 && line.find_first_not_of('-') == std::string_view::npos;
}

/// An interface's name, quoted or not; "" of what a shell puts one in place of: "$NETDEV".
std::string_view interface_of(std::string_view word) {
  const bool is_quoted = word.size() > 2 && word.front() == word.back() &&
                         (word.front() == '"' || word.front() == '\'');
  if (is_quoted) word = word.substr(1, word.size() - 2);
  const bool is_name = std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || holds("._@-", {&c, 1});
  });
  return is_name ? word : std::string_view{};
}

/// A command that was echoed or noted above an output which names no device, and its device.
struct Echoed {
  EvidenceKind kind;
  std::string_view device;  ///< "" if the line is no such command
};
Echoed echoed(std::string_view line) {
  Scan ethtool(line);
  if (ethtool.skip_to("ethtool -S ") || ethtool.skip_to("ethtool --statistics ")) {
    const std::string_view name = interface_of(ethtool.blanks().word());
    // A heading, "# ethtool -S output", not a root's prompt: it has more words, or its own.
    const std::string_view more = ethtool.blanks().rest();
    const bool has_more = !more.empty() && std::isalpha(static_cast<unsigned char>(more[0])) != 0;
    const bool is_word = without_blanks(line).starts_with("#") &&
                         name.find_first_of("0123456789") == std::string_view::npos &&
                         (has_more || name == "output" || name == "statistics");
    return {EvidenceKind::kEthtoolStatistics, is_word ? std::string_view{} : name};
  }
  Scan mlxlink(line);
  const bool is_mlxlink =
      mlxlink.skip_to("mlxlink ") && (mlxlink.skip_to("-d ") || mlxlink.skip_to("--device "));
  return {EvidenceKind::kMlxlink, is_mlxlink ? mlxlink.blanks().word() : std::string_view{}};
}

/// Output of one device, whose next one is another's.
bool is_of_one_device(EvidenceKind kind) {
  return kind == EvidenceKind::kMlxlink || kind == EvidenceKind::kEthtoolStatistics;
}

/// "rx_prio3_pause: 41927": what `ethtool -S NIC | grep pause` leaves has no head.
bool is_statistic(std::string_view line) {
  const std::optional<KeyAndValue> entry = key_and_value(line);
  if (!entry || entry->value.empty()) return false;
  const std::size_t other = entry->key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_");
  return other == std::string_view::npos && holds(entry->key, "_") &&
         std::isdigit(static_cast<unsigned char>(entry->value.front())) != 0;
}

}  // namespace

EvidenceText::EvidenceText(std::string_view text, std::string file, std::string host)
    : file_{std::move(file)}, read_{checked(text, file_), file_} {
  make_sections(host);
}

/// Lines of several hosts may be mixed, so each has a section of its own that grows.
void EvidenceText::make_sections(const std::string& host) {
  const std::vector<ToolLine>& lines = read_.lines();
  std::map<std::string, std::optional<std::size_t>> open;  // host: its section
  std::string named = host;                                // by a head
  std::string argument;
  std::map<EvidenceKind, std::string> devices;  // of the next output
  std::optional<std::size_t> piped;             // the line of a command that leaves a part of it
  for (std::size_t l = 0; l < lines.size(); ++l) {
    const ToolLine& line = lines[l];
    if (is_rule(line.text) && l + 2 < lines.size() && is_rule(lines[l + 2].text) &&
        !holds(lines[l + 1].text, " ")) {
      named = lines[l + 1].text;
      l += 2;
      open.erase(named);
      continue;
    }
    if (const std::string_view head = tail_head(without_blanks(line.text)); !head.empty()) {
      const bool is_path = head.starts_with("/");
      named = is_path ? host : std::string(head);
      if (!head.starts_with("/sys/")) {  // the reader of /sys has use for its heads
        open.erase(named);
        continue;
      }
    }
    std::string of = line.host.empty() ? named : std::string(line.host);
    if (const Echoed command = echoed(line.text); !command.device.empty()) {
      devices[command.kind] = command.device;
      open.erase(of);
      if (holds(line.text, "|")) piped = l;
      continue;
    }
    Scan command(line.text);
    if (command.skip("# weft-collect: ")) {  // which command's output follows
      const std::string_view words = command.rest();
      argument = words.substr(std::min(words.rfind(' ') + 1, words.size()));
      open.erase(of);
      continue;
    }
    const EvidenceKindText* begun = evidence_begun_by(without_blanks(line.text));
    if (of.empty() && begun != nullptr && begun->kind == EvidenceKind::kDmesg) {
      of = kernel_line(line.text)->host;
    }
    std::optional<std::size_t>& section = open[of];
    // Of `grep ACSCtl`, but lspci's own inside its output.
    if (begun != nullptr && begun->kind == EvidenceKind::kAcsLines && section) begun = nullptr;
    // Between what NCCL logs nccl-tests lists its devices; its reader knows such lines.
    const bool is_list = begun != nullptr && begun->kind == EvidenceKind::kNcclTestsList;
    if (is_list && section && sections_[*section].kind == EvidenceKind::kNcclLog) begun = nullptr;
    const bool begins_device = begun != nullptr && is_of_one_device(begun->kind);
    if (begun != nullptr &&
        (begins_device || !section || sections_[*section].kind != begun->kind)) {
      section = sections_.size();
      sections_.push_back({begun->kind,
                           file_,
                           of,
                           begins_device ? std::exchange(devices[begun->kind], "") : argument,
                           {}});
    }
    if (std::string& device = devices[EvidenceKind::kEthtoolStatistics];
        begun == nullptr && !section && !device.empty() && piped && l == *piped + 1 &&
        is_statistic(line.text)) {
      section = sections_.size();
      sections_.push_back(
          {EvidenceKind::kEthtoolStatistics, file_, of, std::exchange(device, ""), {}});
    }
    if (section) sections_[*section].lines.push_back({line.text, line.number});
  }
}

}  // namespace weft
