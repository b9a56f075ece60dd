#include "sim/io/kernel_log.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

#include "sim/base/quantity.hpp"
#include "sim/io/text_form.hpp"

namespace weft {
namespace {

using Line = std::string_view;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool are_digits(Line text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

template <std::size_t size>
bool begins_with_any(Line text, const std::array<Line, size>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](Line word) { return text.starts_with(word) && text.size() > 4; });
}

constexpr std::array<Line, 7> kDays{"Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "};
constexpr Line kIso = "dddd-dd-ddTdd:dd:dd";

/// What may be a day's or month's name, in the language of whoever called the tool: "Oct", "Okt",
/// "févr.", "10月".
bool is_calendar_name(Line word) {
  constexpr std::size_t kMost = 16;  // bytes
  const auto is_beyond_ascii = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  const bool has_digits = std::any_of(word.begin(), word.end(), is_beyond_ascii);
  return word.size() > 1 && word.size() <= kMost &&
         std::all_of(word.begin(), word.end(), [&](char c) {
           return std::isalpha(static_cast<unsigned char>(c)) != 0 || is_beyond_ascii(c) ||
                  c == '.' || (has_digits && is_digit(c));
         });
}

/// Takes such a name and the blank behind it away.
bool skip_calendar_name(Line& text) {
  const std::size_t blank = text.find(' ');
  if (blank == Line::npos || !is_calendar_name(text.substr(0, blank))) return false;
  text.remove_prefix(blank + 1);
  return true;
}

/// "Mar  5 10:11:12", with a year behind it or without.
bool is_date(Line text) {
  constexpr Line kTime = "_d dd:dd:dd";
  if (!skip_calendar_name(text)) return false;
  const Line rest = text.substr(std::min(kTime.size(), text.size()));
  return has_form(text.substr(0, kTime.size()), kTime) &&
         (rest.empty() || rest.starts_with('.') || has_form(rest, " dddd"));
}

/// "   12.345678" of dmesg, "Tue Mar  5 10:11:12 2024" of dmesg -T, "Mar 5 10:11" or "Nov15 10:11"
/// and then "  +0.000123" of dmesg -H.
bool is_time_of_dmesg(Line text) {
  constexpr Line kShort = "_d dd:dd";
  if (Line date = text; skip_calendar_name(date) && is_date(date)) return true;
  const std::size_t name = text.size() - std::min(kShort.size(), text.size());
  if (is_calendar_name(text.substr(0, name)) && has_form(text.substr(name), kShort)) return true;
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::size_t dot = std::min(text.find('.'), text.size());
  return are_digits(text.substr(0, dot)) && has_form(text.substr(dot), ".dddddd");
}

/// "[    T123]" or "[    C1]", the thread or CPU that wrote it (CONFIG_PRINTK_CALLER), taken away.
Line without_caller(Line text) {
  const std::size_t end = text.find(']');
  if (!text.starts_with('[') || end == Line::npos) return text;
  const Line caller = trimmed(text.substr(1, end - 1));
  const bool is_one = caller.starts_with('T') || caller.starts_with('C');
  return is_one && are_digits(caller.substr(1)) ? trimmed(text.substr(end + 1)) : text;
}

/// "[TIME] message".
std::optional<Line> behind_brackets(Line line) {
  const std::size_t end = line.find(']');
  if (!line.starts_with('[') || end == Line::npos) return std::nullopt;
  if (!is_time_of_dmesg(line.substr(1, end - 1))) return std::nullopt;
  return without_caller(trimmed(line.substr(end + 1)));
}

/// "2024-03-05T10:11:12,123456+01:00 message" of dmesg --time-format iso.
std::optional<Line> behind_iso_time(Line line) {
  constexpr Line kTime = "dddd-dd-ddTdd:dd:dd,dddddd";
  constexpr Line kZone = "dd:dd ";
  const Line zone = line.substr(std::min(kTime.size(), line.size()));
  if (!has_form(line.substr(0, kTime.size()), kTime) || zone.empty()) return std::nullopt;
  if (zone[0] != '+' && zone[0] != '-') return std::nullopt;
  if (!has_form(zone.substr(1, kZone.size()), kZone)) return std::nullopt;
  return without_caller(trimmed(zone.substr(1 + kZone.size())));
}

/// "Tue 2024-03-05 10:11:12 CET" of journalctl -o short-full.
bool is_full_time(Line text) {
  constexpr Line kTime = "dddd-dd-dd dd:dd:dd";
  if (!begins_with_any(text, kDays)) return false;
  text.remove_prefix(4);
  return has_form(text.substr(0, kTime.size()), kTime) &&
         text.substr(std::min(kTime.size(), text.size())).starts_with(' ');
}

/// The host of "TIME HOST", which journalctl and syslog write before a message; "" of localhost.
std::optional<Line> host_of(Line head) {
  const std::size_t blank = head.rfind(' ');
  const Line name = head.substr(blank == Line::npos ? 0 : blank + 1);
  const Line time = trimmed(head.substr(0, blank == Line::npos ? 0 : blank));
  const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  });
  const bool is_time =
      is_date(time) || is_full_time(time) || has_form(time.substr(0, kIso.size()), kIso);
  if (!is_name || !is_time) return std::nullopt;
  // A name without its domain, as NCCL logs it; of an address all.
  const bool is_address = name.find_first_not_of("0123456789.") == Line::npos;
  const Line host = is_address ? name : name.substr(0, name.find('.'));
  return host == "localhost" ? Line{} : host;
}

/// "<4>" of dmesg -r, the priority.
Line without_priority(Line line) {
  const std::size_t end = line.find('>');
  const bool is_one = line.starts_with('<') && end <= 4 && are_digits(line.substr(1, end - 1));
  return is_one ? trimmed(line.substr(end + 1)) : line;
}

/// "kern  :warn  : " of dmesg -x.
Line without_facility(Line line) {
  constexpr Line kFacility = "kern  :";
  if (!line.starts_with(kFacility)) return line;
  const std::size_t end = line.find(':', kFacility.size());
  return end == Line::npos ? line : trimmed(line.substr(end + 1));
}

/// A message without any time, as dmesg -t has it and as lines of one message follow the first: of
/// drivers whose words no other tool's line begins with.
bool is_bare_message(Line line) {
  constexpr std::array<Line, 2> kWords{"NVRM: ", "nvidia-nvlink: "};
  constexpr std::array<Line, 3> kDrivers{"mlx5_core ", "pcieport ", "nvidia "};
  constexpr std::size_t kBusId = 12;  // "0000:4c:00.0"
  if (begins_with_any(line, kWords)) return true;
  const Line id = line.substr(std::min(line.find(' ') + 1, line.size()));
  return begins_with_any(line, kDrivers) && id.size() > kBusId && id[4] == ':' && id[7] == ':' &&
         id[10] == '.' && id[kBusId] == ':';
}

}  // namespace

std::optional<KernelLine> kernel_line(std::string_view line) {
  line = trimmed(line);
  const Line timed = without_priority(without_facility(line));
  if (const std::optional<Line> message = behind_brackets(timed)) return KernelLine{"", *message};
  if (const std::optional<Line> message = behind_iso_time(timed)) return KernelLine{"", *message};
  if (is_bare_message(timed)) return KernelLine{"", timed};
  constexpr Line kKernel = " kernel: ";
  constexpr std::size_t kLongest = 300;  // a time and a name
  const std::size_t at = line.substr(0, kLongest).find(kKernel);
  if (at == Line::npos) return std::nullopt;
  const std::optional<Line> host = host_of(line.substr(0, at));
  if (!host) return std::nullopt;
  const Line message = trimmed(line.substr(at + kKernel.size()));
  return KernelLine{*host, behind_brackets(message).value_or(message)};
}

}  // namespace weft
