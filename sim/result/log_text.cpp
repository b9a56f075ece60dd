#include "sim/result/log_text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "sim/base/error.hpp"

namespace weft {

void check_length(std::string_view line) {
  if (line.size() <= kMostLogLineBytes) return;
  throw InputError(fmt::format("more than {} bytes in a line", kMostLogLineBytes));
}

Words words_of(std::string_view line) {
  constexpr std::string_view kSpaces = " \t\r";
  Words out;
  while (true) {
    const std::size_t begin = line.find_first_not_of(kSpaces);
    if (begin == std::string_view::npos) return out;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(kSpaces), line.size());
    out.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

Words marked(Words words) {
  const auto begins = [&](std::string_view first, std::string_view second, std::size_t at = 1) {
    return words.size() > at && words[0] == first && words[at] == second;
  };
  const bool is_rank = begins("Rank", "Pid", 2) || begins("Rank", "Pid", 4);  // behind its group
  if (is_rank || begins("size", "count") || begins("nThread", "nGpus", 2) ||
      begins("Using", "devices") || begins("Collective", "test") ||
      begins("nccl-tests", "version") || begins("Out", "of")) {
    words.insert(words.begin(), "#");
  }
  return words;
}

std::string_view bare(std::string_view word) {
  constexpr std::string_view kAround = "\"'`;,()";
  const std::size_t begin = std::min(word.find_first_not_of(kAround), word.size());
  return word.substr(begin, word.find_last_not_of(kAround) + 1 - begin);
}

std::optional<std::int64_t> whole_of(std::string_view word) {
  std::int64_t number{};
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, number);
  return error == std::errc{} && rest == end ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> option_of(const Words& words, std::string_view brief,
                                      std::string_view name) {
  std::optional<std::int64_t> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view word = bare(words[i]);
    const bool is_name = word.starts_with(name);
    if (!is_name && (!word.starts_with(brief) || word.starts_with("--"))) continue;
    word.remove_prefix(is_name ? name.size() : brief.size());
    if (is_name && word.starts_with('=')) word.remove_prefix(1);
    if (word.empty() && i + 1 < words.size()) word = bare(words[i + 1]);
    if (const auto number = whole_of(word)) out = number;
  }
  return out;
}

std::string read_lines_to_cut(std::string_view text, MeasuredTable& table,
                              const std::function<bool(std::string_view, int)>& read) {
  std::optional<InputError> cut;
  for_each_line(text, [&](std::string_view line, int number) {
    const Place place{table.file, number, 0};
    const bool has_end = line.data() + line.size() != text.data() + text.size();
    std::optional<InputError> wrong;
    bool is_known = true;
    try {
      check_length(line);
      is_known = read(line, number);
    } catch (const CutShort& e) {
      wrong.emplace(place, e.what());
    } catch (const InputError& e) {
      wrong.emplace(place, e.what());
      if (has_end) throw *wrong;
    }
    if (cut && is_known) throw *cut;
    if (wrong) cut = wrong;
  });
  if (!cut) return "";
  table.notes.push_back(std::string(cut->what()) + ": the log is cut off there; left out");
  return table.notes.back();
}

bool is_json_object(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{';
}

bool is_json_with(std::string_view text, std::string_view key) {
  return is_json_object(text) && text.find(fmt::format("\"{}\"", key)) != std::string_view::npos;
}

void check_any_row(const MeasuredTable& table, const std::string& left_out) {
  if (!table.rows.empty()) return;
  const std::string& why = table.failures.empty() ? left_out : table.failures.front();
  throw InputError(Place{table.file, 0, 0}, "has no rows" + (why.empty() ? "" : "; " + why));
}

std::string ended_early(std::string_view log) {
  std::string out;
  for_each_line(log, [&](std::string_view line, int) {
    const Words words = words_of(line.substr(0, kMostLogLineBytes));
    const auto has = [&](std::string_view word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    if (!out.empty() || words.size() < 3) return;
    if (words.front().ends_with(':') && words[1] == "Test" && has("failure")) {
      out = "nccl-tests failed before its first row:";
      for (const std::string_view word : words) out += " " + one_line(word);
    } else if (words.back() == "Test" && (has("BW") || has("Latency"))) {
      out = "perftest printed no table: this end still waited for the other, or prints none";
    }
  });
  return out;
}

void check_room(std::size_t rows) {
  if (rows < kMostMeasuredRows) return;
  throw InputError(fmt::format("more than {} rows; split the log", kMostMeasuredRows));
}

MeasuredRow row_of_log(StatedColumns cells, const StatedColumns& stated,
                       const std::string& unlike) {
  for (const auto& [column, value] : stated) {
    const std::string& in_file = cells.try_emplace(column, value).first->second;
    try {
      check_agrees(in_file, value);
    } catch (const InputError& e) {
      throw InputError(column + ": " + e.what());
    }
  }
  return measured_row(cells, unlike);
}

}  // namespace weft
