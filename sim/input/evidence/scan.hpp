#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

/// A place in a line that moves on as the line is read; nothing is copied.
class Scan {
 public:
  explicit Scan(std::string_view text) : rest_{text} {}

  /// Passes a literal if it stands here.
  bool skip(std::string_view literal);
  /// Passes everything up to and with a literal; false, and nothing passed, if there is none.
  bool skip_to(std::string_view literal);
  /// Passes blanks.
  Scan& blanks();
  /// A number, decimal; nullopt, and nothing passed, if none stands here or it is too large.
  std::optional<std::int64_t> whole();
  /// The same in hexadecimal digits, behind "0x" or not.
  std::optional<std::uint64_t> hex();
  /// A number with a fraction.
  std::optional<double> number();
  /// Up to a blank.
  std::string_view word();
  /// Up to a literal, which is passed; all that is left if there is none.
  std::string_view until(std::string_view literal);
  std::string_view rest() const { return rest_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

/// A text without the blanks around it.
std::string_view without_blanks(std::string_view text);
/// Whether a text has another in it.
inline bool holds(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}
/// "Key : value" or "Key:value" apart, without blanks around; nullopt without a colon.
struct KeyAndValue {
  std::string_view key;
  std::string_view value;
};
std::optional<KeyAndValue> key_and_value(std::string_view line);

/// "name" of tail's "==> name <=="; "" if the line is none.
std::string_view tail_head(std::string_view line);

}  // namespace weft
