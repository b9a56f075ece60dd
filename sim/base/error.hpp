#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Where in the user's input something stands. Line and column count from 1; 0 means unknown.
struct Place {
  std::string file;
  int line{0};
  int column{0};

  /// "f.yaml:3:5", "f.yaml:3" or "f.yaml"; "" when nothing is known.
  std::string text() const;
};

/// The user's input or usage is wrong; the message says where, what, and what is allowed.
/// The program exits with 2. Everything derived from std::logic_error is weft's own fault (70).
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  InputError(const Place& where, const std::string& what);
};

/// A stated threshold (`--expect`) is missed; the program exits with 4.
class ExpectationMissed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A fit is not to be used; the program exits with 5.
class CalibrationRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// On one line, whatever a file or an argument holds: line ends and terminal codes are escaped.
std::string one_line(std::string_view text);

/// "a, b, c and 7 more": sorted names for an error message, at most `most` of them.
std::string known_names(std::vector<std::string> names, std::size_t most = 12);

/// " (did you mean 'nodes'?)" where one of the names is close to what was written, else "". Close:
/// at most two letters changed, added or left out, and fewer than a third of them.
std::string did_you_mean(std::string_view written, const std::vector<std::string>& names);

}  // namespace weft
