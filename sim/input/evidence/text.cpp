#include "sim/input/evidence/text.hpp"

#include <algorithm>
#include <array>
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

/// A device as mlxlink takes one: a verbs name, a bus id or a path, up to where a shell's word
/// ends; "" of what a shell puts one in place of.
std::string_view mlxlink_device_of(std::string_view word) {
  word = word.substr(0, word.find_first_of("|>;&"));
  word = word.substr(0, word.find_last_not_of(")'\"`") + 1);
  const bool is_name = std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || holds("._-/:", {&c, 1});
  });
  return is_name ? word : std::string_view{};
}

/// The NIC that a banner such as "=== mlx5_0 ===" or "## Device: mlx5_0" names; "" of other lines,
/// such as a listing's.
std::string_view banner_device_of(std::string_view line) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  constexpr std::array<std::string_view, 7> kWords{"Device", "device", "NIC",    "HCA",
                                                   "hca",    "DEV",    "mlxlink"};
  const bool is_marked = line.starts_with("#") || (line.size() > 1 && line[0] == line[1] &&
                                                   holds("=-*+~", line.substr(0, 1)));
  if (!is_marked) return {};
  std::string_view out;
  for (std::size_t at = line.find_first_of(kLetters); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_not_of(kLetters, at), line.size());
    const std::string_view word = line.substr(at, end - at);
    const bool is_nic = word.starts_with("mlx5_") && word.size() > 5;
    const bool is_other = std::find(kWords.begin(), kWords.end(), word) == kWords.end();
    if (is_nic ? !out.empty() : is_other) return {};
    if (is_nic) out = word;
    at = line.find_first_of(kLetters, end);
  }
  return out;
}

/// Whether such a line may stand between a banner and mlxlink's output.
bool is_below_banner(std::string_view line) {
  return line.find_first_not_of("-=#*+~") == std::string_view::npos || line == "{" ||
         line.starts_with("\"result\"") || line.starts_with("\"output\"");
}

/// A command that was echoed or noted above an output which names no device, and its device.
struct Echoed {
  EvidenceKind kind;
  std::string_view device;  ///< "" if the line is no such command, or does not say which
  bool is_mlxlink{false};   ///< it is such a command of mlxlink
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
  return {EvidenceKind::kMlxlink,
          is_mlxlink ? mlxlink_device_of(mlxlink.blanks().word()) : std::string_view{}, is_mlxlink};
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

/// Of which NICs each host's next output of mlxlink is: by the command that was echoed above it, or
/// a banner right above it. Banners of several NICs in a row are a list of these, and say none.
class NextMlxlinks {
 public:
  /// A command of this host may be another's: "pdsh -w h1 mlxlink -d mlx5_0".
  explicit NextMlxlinks(std::string host) : host_{std::move(host)} {}

  /// "" if it does not say which: "mlxlink -d $dev".
  void command(const std::string& host, std::string_view device) {
    next_[host] = {std::string(device), false};
  }
  void line(const std::string& host, std::string_view line) {
    const std::string_view banner = banner_device_of(line);
    if (!banner.empty()) {
      Next& next = next_[host];
      const bool is_list = next.is_banner && next.name != banner;
      next = {is_list ? std::string() : std::string(banner), true};
    } else if (const auto at = next_.find(host);
               at != next_.end() && at->second.is_banner && !is_below_banner(line)) {
      next_.erase(at);
    }
  }
  std::string take(const std::string& host) {
    auto at = next_.find(host);
    if (at == next_.end()) {
      at = next_.find(host_);
      if (at == next_.end() || at->second.is_banner) return "";
    }
    std::string out = std::move(at->second.name);
    next_.erase(at);
    return out;
  }

 private:
  struct Next {
    std::string name;  ///< "" if it does not say which
    bool is_banner{false};
  };
  std::map<std::string, Next> next_;  // by host
  std::string host_;
};

/// Makes a file's sections. Lines of several hosts may be mixed, so each has a section of its own
/// that grows.
class SectionMaker {
 public:
  SectionMaker(const std::vector<ToolLine>& lines, const std::string& file, const std::string& host)
      : lines_{lines}, file_{file}, host_{host}, named_{host}, mlxlinks_{host} {}

  std::vector<EvidenceSection> make() {
    for (std::size_t at = 0; at < lines_.size(); ++at) {
      const ToolLine& line = lines_[at];
      if (is_framed(at)) {
        named_ = lines_[at + 1].text;
        open_.erase(named_);
        at += 2;
      } else if (!read_head(line)) {
        const std::string of = line.host.empty() ? named_ : std::string(line.host);
        if (!read_command(at, of)) read_output(at, of);
      }
    }
    return std::move(sections_);
  }

 private:
  /// Whether a host's name between two rules begins here.
  bool is_framed(std::size_t at) const {
    return is_rule(lines_[at].text) && at + 2 < lines_.size() && is_rule(lines_[at + 2].text) &&
           !holds(lines_[at + 1].text, " ");
  }
  /// tail's, of a host or a path; false if it is none, or one that the reader of /sys has use for.
  bool read_head(const ToolLine& line);
  /// What tells of which device the output behind it is; false if the line is no such command.
  bool read_command(std::size_t at, const std::string& of);
  void read_output(std::size_t at, std::string of);
  /// Whether a section begins at a line that begins output of such a kind, where one is open.
  bool begins(EvidenceKind kind, const std::optional<std::size_t>& section) const;
  /// Of what a tool was asked whose output begins.
  std::string take_argument(EvidenceKind kind, const std::string& of);

  const std::vector<ToolLine>& lines_;
  const std::string& file_;
  const std::string& host_;
  std::vector<EvidenceSection> sections_{};
  std::map<std::string, std::optional<std::size_t>> open_{};  // host: its section
  std::string named_;                                         // by a head
  std::string argument_{};                                    // by weft-collect
  std::string interface_{};                                   // of the next output of ethtool -S
  NextMlxlinks mlxlinks_;
  std::optional<std::size_t> piped_{};  // the line of a command that leaves a part of its output
};

bool SectionMaker::read_head(const ToolLine& line) {
  const std::string_view head = tail_head(without_blanks(line.text));
  if (head.empty()) return false;
  named_ = head.starts_with("/") ? host_ : std::string(head);
  if (head.starts_with("/sys/")) return false;
  open_.erase(named_);
  return true;
}

bool SectionMaker::read_command(std::size_t at, const std::string& of) {
  const std::string_view line = lines_[at].text;
  const Echoed echo = echoed(line);
  if (echo.is_mlxlink) mlxlinks_.command(of, echo.device);
  if (!echo.device.empty()) {
    if (echo.kind == EvidenceKind::kEthtoolStatistics) interface_ = echo.device;
    open_.erase(of);
    if (holds(line, "|")) piped_ = at;
    return true;
  }
  Scan command(line);
  if (!command.skip("# weft-collect: ")) return false;  // which command's output follows
  const std::string_view words = command.rest();
  argument_ = words.substr(std::min(words.rfind(' ') + 1, words.size()));
  open_.erase(of);
  return true;
}

bool SectionMaker::begins(EvidenceKind kind, const std::optional<std::size_t>& section) const {
  if (!section) return true;
  // Of `grep ACSCtl`, but lspci's own inside its output.
  if (kind == EvidenceKind::kAcsLines) return false;
  const EvidenceKind open = sections_[*section].kind;
  // Between what NCCL logs nccl-tests lists its devices; its reader knows such lines.
  if (kind == EvidenceKind::kNcclTestsList && open == EvidenceKind::kNcclLog) return false;
  return is_of_one_device(kind) || open != kind;
}

std::string SectionMaker::take_argument(EvidenceKind kind, const std::string& of) {
  if (kind == EvidenceKind::kMlxlink) return mlxlinks_.take(of);
  if (kind == EvidenceKind::kEthtoolStatistics) return std::exchange(interface_, "");
  return argument_;
}

void SectionMaker::read_output(std::size_t at, std::string of) {
  const ToolLine& line = lines_[at];
  const EvidenceKindText* const begun = evidence_begun_by(without_blanks(line.text));
  if (of.empty() && begun != nullptr && begun->kind == EvidenceKind::kDmesg) {
    of = kernel_line(line.text)->host;
  }
  if (begun == nullptr || !is_of_one_device(begun->kind)) {
    mlxlinks_.line(of, without_blanks(line.text));
  }
  std::optional<std::size_t>& section = open_[of];
  std::optional<EvidenceKind> kind;
  if (begun != nullptr && begins(begun->kind, section)) kind = begun->kind;
  if (piped_ && at == *piped_ + 1 && line.text.starts_with("```")) ++*piped_;
  const bool is_left = begun == nullptr && !section && !interface_.empty() && piped_ &&
                       at == *piped_ + 1 && is_statistic(line.text);
  if (is_left) kind = EvidenceKind::kEthtoolStatistics;
  if (kind) {
    section = sections_.size();
    sections_.push_back({*kind, file_, of, take_argument(*kind, of), {}});
  }
  if (section) sections_[*section].lines.push_back({line.text, line.number});
}

}  // namespace

EvidenceText::EvidenceText(std::string_view text, const std::string& file, const std::string& host)
    : read_{checked(text, file), file}, sections_{SectionMaker(read_.lines(), file, host).make()} {}

}  // namespace weft
