#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/result/measured.hpp"

namespace weft {

/// What the readers of other tools' output share.

inline constexpr std::size_t kMostLogLineBytes = 65'536;

using Words = std::vector<std::string_view>;

/// What stands between blanks; views into the line.
Words words_of(std::string_view line);
/// The words of a line of nccl-tests, with the '#' of its head and comments where what shows them
/// (dstack) has taken it away.
Words marked(Words words);

/// A word of a command line without what quotes it.
std::string_view bare(std::string_view word);
std::optional<std::int64_t> whole_of(std::string_view word);
/// The whole number that an option of a command line has, as in "-z 1", "-z1", "--blocking=1".
std::optional<std::int64_t> option_of(const Words& words, std::string_view brief,
                                      std::string_view name);

/// Throws InputError if a line has more bytes than kMostLogLineBytes.
void check_length(std::string_view line);

/// Calls visit(line, number) for each line, from 1.
template <class Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// The same of a log: throws InputError at the line if that is too long or `visit` refuses it.
template <class Visit>
void read_lines(std::string_view text, const std::string& file, const Visit& visit) {
  for_each_line(text, [&](std::string_view line, int number) {
    try {
      check_length(line);
      visit(line, number);
    } catch (const InputError& e) {
      throw InputError(Place{file, number, 0}, e.what());
    }
  });
}

/// A row that ends too early.
class CutShort : public InputError {
 public:
  using InputError::InputError;
};

/// The same of a log that may end too early, its job or its output cut: leaves out, and notes, a
/// row that is cut short behind which nothing is read, and a last line without its end that is
/// refused. `read` says whether it knows the line. Returns the note, "" if there is none.
std::string read_lines_to_cut(std::string_view text, MeasuredTable& table,
                              const std::function<bool(std::string_view, int)>& read);

/// Whether it begins as a JSON object does, behind blanks.
bool is_json_object(std::string_view text);
/// Whether it does, and such a key stands in it.
bool is_json_with(std::string_view text, std::string_view key);

/// Throws InputError if a log has no rows: with what went wrong, or what was left out, if anything.
void check_any_row(const MeasuredTable& table, const std::string& left_out);

/// Throws InputError if there is room for no more rows than `rows`.
void check_room(std::size_t rows);
/// Why what nccl-tests or perftest printed has no table; "" if it is neither's, or does not say.
std::string ended_early(std::string_view log);

/// A row of what a log says and what the user states beside. Throws InputError: a column of which
/// they state different values, what measured_row() refuses.
MeasuredRow row_of_log(StatedColumns cells, const StatedColumns& stated,
                       const std::string& unlike = "");

}  // namespace weft
