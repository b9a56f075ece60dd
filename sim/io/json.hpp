#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace weft {

/// A JSON value. Objects keep the order in which keys were added, so the same input gives the same
/// bytes. Numbers are int64 or double; doubles print shortest-round-trip; NaN and infinity are
/// null.
class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;
  Json(bool v) : value_{v} {}                           // NOLINT(google-explicit-constructor)
  Json(int v) : value_{std::int64_t{v}} {}              // NOLINT(google-explicit-constructor)
  Json(std::int64_t v) : value_{v} {}                   // NOLINT(google-explicit-constructor)
  Json(std::uint32_t v) : value_{std::int64_t{v}} {}    // NOLINT(google-explicit-constructor)
  Json(double v) : value_{v} {}                         // NOLINT(google-explicit-constructor)
  Json(const char* v) : value_{std::string(v)} {}       // NOLINT(google-explicit-constructor)
  Json(std::string_view v) : value_{std::string(v)} {}  // NOLINT(google-explicit-constructor)
  Json(std::string v) : value_{std::move(v)} {}         // NOLINT(google-explicit-constructor)

  static Json array(Array items = {});
  static Json object(std::initializer_list<Member> members = {});

  /// Parses text that begins in that line of `file`; throws InputError naming file, line and
  /// column. Keys given twice are refused; a whole number beyond int64 becomes a double.
  static Json parse(std::string_view text, const std::string& file, int line = 1);
  /// Two-space indentation and a final newline. Bytes that are not UTF-8 become U+FFFD.
  std::string dump() const;
  /// The same without blanks and line ends.
  std::string dump_line() const;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_number() const;
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  /// Each throws InputError ("expected a number") if the value is of another kind.
  bool as_bool() const;
  double as_number() const;
  std::int64_t as_integer() const;
  const std::string& as_string() const;
  const Array& items() const;
  const Object& members() const;

  /// The member, or nullptr; throws InputError if this is not an object.
  const Json* find(std::string_view key) const;
  /// The member; throws InputError if it is missing.
  const Json& at(std::string_view key) const;

  /// Adds to an object or array (a null value becomes one); else throws std::logic_error. The key
  /// must be new: it is not looked for.
  void set(std::string key, Json value);
  void push(Json value);

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

}  // namespace weft
