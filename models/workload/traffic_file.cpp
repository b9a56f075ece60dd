#include "models/workload/traffic_file.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/csv.hpp"

namespace weft {
namespace {

/// A text's lines one after another, but for empty ones.
class Lines {
 public:
  /// `stop`, unless null, is asked now and then, and must outlive it.
  Lines(std::string_view text, std::string file, const Stop* stop)
      : rest_{text}, place_{std::move(file), 0, 1}, stop_{stop} {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
  }
  /// False: there is none left. Throws InputError: a line that is no text; Stopped.
  bool next() {
    do {
      if (rest_.empty()) return false;
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      line_ = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ask(end + 1);
      if (line_.ends_with('\r')) line_.remove_suffix(1);
      ++place_.line;
      const std::size_t nul = line_.find('\0');
      if (nul != std::string_view::npos) {
        throw InputError({place_.file, place_.line, static_cast<int>(nul) + 1},
                         "a NUL byte; expected text");
      }
    } while (trimmed(line_).empty());
    return true;
  }
  /// At most; counted before they are split, which takes many times the memory of a line.
  std::size_t most_cells() const {
    return static_cast<std::size_t>(std::ranges::count(line_, ',')) + 1;
  }
  /// Cells, some with a comma; likewise without splitting it.
  bool has_cells(std::size_t cells) const {
    return csv_cell_column(line_, cells - 1) != 0 && csv_cell_column(line_, cells) == 0;
  }
  std::vector<std::string> cells() const { return csv_cells(line_, place_); }
  const Place& place() const { return place_; }
  Place place(std::size_t cell) const {
    Place out = place_;
    out.column = static_cast<int>(csv_cell_column(line_, cell));
    return out;
  }
  int number() const { return place_.line; }

 private:
  void ask(std::size_t bytes) {
    constexpr std::size_t kBetween = 1 << 16;
    unasked_ += bytes;
    if (stop_ == nullptr || unasked_ < kBetween) return;
    unasked_ = 0;
    stop_->check();
  }

  std::string_view rest_;
  std::string_view line_;
  Place place_;
  const Stop* stop_;
  std::size_t unasked_{0};  // bytes read since
};

/// read(cell) throws InputError without a place; this adds it.
template <class Read>
std::int64_t read_cell(const Lines& lines, const std::vector<std::string>& cells, std::size_t cell,
                       Read&& read) {
  constexpr std::size_t kMostBytes = 64;
  try {
    const std::string& text = cells[cell];
    if (text.size() > kMostBytes) {
      throw InputError(fmt::format("a cell of {} bytes; allowed: {}", text.size(), kMostBytes));
    }
    return read(text);
  } catch (const InputError& e) {
    throw InputError(lines.place(cell), e.what());
  }
}

std::int64_t whole(std::string_view cell, std::int64_t most, std::string_view what) {
  const std::string_view text = trimmed(cell);
  std::int64_t out{};
  const auto [rest, error] = std::from_chars(text.begin(), text.end(), out);
  if (error != std::errc{} || rest != text.end() || text.starts_with('-') || out > most) {
    throw InputError(fmt::format("'{}' is no {}; allowed: 0 to {}", text, what, most));
  }
  return out;
}

std::int64_t size_of(std::string_view cell) {
  const Bytes out = parse_size(cell);
  if (out > kMostSend) throw InputError(fmt::format("'{}' is above 4 TiB", trimmed(cell)));
  return out.count();
}

std::int64_t tokens_of(std::string_view cell) {
  constexpr std::int64_t kMost = 1 << 24;
  return whole(cell, kMost, "number of tokens");
}

/// A list of who has how much with whom, one pair a line.
struct ListForm {
  std::array<std::string_view, 3> head;
  std::array<std::uint32_t, 2> count;        ///< of what the first two columns number from 0
  std::array<std::string_view, 2> what;      ///< "rank"
  std::int64_t (*amount)(std::string_view);  ///< of the third; throws InputError without a place
};

struct Entry {
  std::uint32_t first;
  std::uint32_t second;
  int line;
  std::int64_t amount;
  std::pair<std::uint32_t, std::uint32_t> pair() const { return {first, second}; }
  friend bool operator<(const Entry& a, const Entry& b) {
    return std::tuple{a.first, a.second, a.line} < std::tuple{b.first, b.second, b.line};
  }
};

/// The cells, of which there are to be so many; expected() is told if there are not.
template <class Expected>
std::vector<std::string> cells_of(const Lines& lines, std::size_t cells, Expected&& expected) {
  const bool has_comma = lines.most_cells() != cells && lines.has_cells(cells);
  if (lines.most_cells() != cells && !has_comma) throw InputError(lines.place(), expected());
  std::vector<std::string> out = lines.cells();
  if (has_comma || out.size() != cells) throw InputError(lines.place(), "a comma in a cell");
  return out;
}

bool is_head(const Lines& lines, const ListForm& form) {
  if (lines.most_cells() != form.head.size()) return false;
  return std::ranges::equal(lines.cells(), form.head, {},
                            [](const auto& cell) { return trimmed(cell); });
}

/// As many words as the head has.
bool is_another_head(const Lines& lines, const ListForm& form) {
  if (lines.most_cells() != form.head.size()) return false;
  return std::ranges::all_of(lines.cells(), [](const std::string& cell) {
    const std::string_view text = trimmed(cell);
    return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0;
  });
}

Entry entry_of(const Lines& lines, const ListForm& form) {
  const std::vector<std::string> cells = cells_of(lines, form.head.size(), [&] {
    return fmt::format("{} cells; expected {}", lines.most_cells(), fmt::join(form.head, ","));
  });
  Entry out{0, 0, lines.number(), 0};
  const std::array<std::uint32_t*, 2> numbers{&out.first, &out.second};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto number = [&](std::string_view cell) {
      return whole(cell, std::int64_t{form.count[i]} - 1, form.what[i]);
    };
    *numbers[i] = static_cast<std::uint32_t>(read_cell(lines, cells, i, number));
  }
  out.amount = read_cell(lines, cells, 2, form.amount);
  return out;
}

/// The entries below the head, in the order of their pairs, without zeros.
std::vector<Entry> entries_of(Lines& lines, const ListForm& form) {
  std::vector<Entry> out;
  while (lines.next()) {
    if (out.size() == kMostPairs) {
      throw InputError(lines.place(), fmt::format("more than {} lines", kMostPairs));
    }
    out.push_back(entry_of(lines, form));
  }
  std::sort(out.begin(), out.end());
  const auto twice = std::ranges::adjacent_find(out, {}, &Entry::pair);
  if (twice != out.end()) {
    const Place place{lines.place().file, std::next(twice)->line, 1};
    throw InputError(place, fmt::format("{} {} and {} {} stand on line {} already", form.what[0],
                                        twice->first, form.what[1], twice->second, twice->line));
  }
  std::erase_if(out, [](const Entry& entry) { return entry.amount == 0; });
  return out;
}

TrafficMatrix square_of(Lines& lines, std::uint32_t ranks) {
  const std::string expected = fmt::format(
      "expected {} lines of {} sizes each, one for each GPU, or a list of pairs under "
      "from,to,bytes",
      ranks, ranks);
  TrafficMatrix out;
  std::uint32_t row = 0;
  do {
    if (row == ranks) throw InputError(lines.place(), expected);
    const std::vector<std::string> cells =
        cells_of(lines, ranks, [&]() -> const std::string& { return expected; });
    for (std::uint32_t to = 0; to < ranks; ++to) {
      const Bytes bytes{read_cell(lines, cells, to, size_of)};
      if (bytes > Bytes{0}) out.push_back({row, to, bytes});
    }
    ++row;
  } while (lines.next());
  if (row != ranks) {
    throw InputError(fmt::format("{}: {} lines; {}", lines.place().file, row, expected));
  }
  return out;
}

}  // namespace

TrafficMatrix parse_traffic_matrix(const std::string& text, const std::string& file,
                                   std::uint32_t ranks, const Stop* stop) {
  const ListForm form{{"from", "to", "bytes"}, {ranks, ranks}, {"rank", "rank"}, size_of};
  Lines lines(text, file, stop);
  if (!lines.next()) throw InputError(file + ": is empty");
  if (!is_head(lines, form)) {
    if (is_another_head(lines, form)) {
      throw InputError(lines.place(), "expected sizes, or a list of pairs under from,to,bytes");
    }
    if (std::uint64_t{ranks} * ranks > kMostPairs) {
      throw InputError(lines.place(),
                       fmt::format("a square of {} ranks has more than {} cells; write a list of "
                                   "pairs under from,to,bytes",
                                   ranks, kMostPairs));
    }
    return square_of(lines, ranks);
  }
  TrafficMatrix out;
  for (const Entry& entry : entries_of(lines, form)) {
    out.push_back({entry.first, entry.second, Bytes{entry.amount}});
  }
  return out;
}

TrafficMatrix parse_traffic_routing(const std::string& text, const std::string& file,
                                    std::uint32_t ranks, std::uint32_t experts, Bytes token_bytes,
                                    const Stop* stop) {
  const ListForm form{
      {"rank", "expert", "tokens"}, {ranks, experts}, {"rank", "expert"}, tokens_of};
  Lines lines(text, file, stop);
  if (!lines.next()) throw InputError(file + ": is empty");
  if (!is_head(lines, form)) {
    throw InputError(lines.place(), "expected the head rank,expert,tokens");
  }
  TrafficMatrix out;
  for (const Entry& entry : entries_of(lines, form)) {
    const std::uint32_t to = entry.second / (experts / ranks);
    if (out.empty() || out.back().from != entry.first || out.back().to != to) {
      out.push_back({entry.first, to, Bytes{0}});
    }
    Bytes& sum = out.back().bytes;
    if (entry.amount > (kMostSend - sum).count() / token_bytes.count()) {
      throw InputError(Place{file, entry.line, 1},
                       fmt::format("rank {} would send rank {} more than 4 TiB", entry.first, to));
    }
    sum += token_bytes * entry.amount;
  }
  return out;
}

}  // namespace weft
