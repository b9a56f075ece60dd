#include "sim/input/repetition.hpp"

#include <charconv>
#include <limits>
#include <string_view>

namespace weft {
namespace {

/// Reads one expression of i: sums of products of numbers, i and parentheses.
class Expression {
 public:
  Expression(std::string_view text, std::int64_t i) : text_{text}, i_{i} {}

  std::int64_t value() {
    const std::int64_t value = sum(0);
    if (at_ < text_.size()) refuse("'" + std::string(text_.substr(at_)) + "' is left over");
    if (value < 0) refuse("it is " + std::to_string(value) + " for i = " + std::to_string(i_));
    return value;
  }

 private:
  static constexpr int kMostDepth = 16;
  static constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError("'{" + std::string(text_) + "}': " + why +
                     "; allowed: an expression such as i/2+1, not negative");
  }
  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  std::int64_t bounded(std::int64_t value) const {
    if (value > kMost || value < -kMost) refuse("it is beyond 2^31");
    return value;
  }

  std::int64_t sum(int depth) {
    std::int64_t value = product(depth);
    for (char c = next(); c == '+' || c == '-'; c = next()) {
      ++at_;
      const std::int64_t other = product(depth);
      value = bounded(c == '+' ? value + other : value - other);
    }
    return value;
  }

  std::int64_t product(int depth) {
    std::int64_t value = operand(depth);
    for (char c = next(); c == '*' || c == '/' || c == '%'; c = next()) {
      ++at_;
      const std::int64_t other = operand(depth);
      if (c != '*' && other == 0) refuse("it divides by 0 for i = " + std::to_string(i_));
      value = bounded(c == '*' ? value * other : c == '/' ? value / other : value % other);
    }
    return value;
  }

  std::int64_t operand(int depth) {
    const char c = next();
    if (c == 'i') {
      ++at_;
      return i_;
    }
    if (c == '(') {
      if (depth == kMostDepth) refuse("its parentheses are nested too deep");
      ++at_;
      const std::int64_t value = sum(depth + 1);
      if (next() != ')') refuse("a parenthesis is not closed");
      ++at_;
      return value;
    }
    std::int64_t value{};
    const char* const end = text_.data() + text_.size();
    const auto [rest, error] = std::from_chars(text_.data() + at_, end, value);
    if (c < '0' || c > '9' || error != std::errc{}) refuse("a number or i is missing");
    at_ = static_cast<std::size_t>(rest - text_.data());
    return bounded(value);
  }

  std::string_view text_;
  std::int64_t i_;
  std::size_t at_{0};
};

}  // namespace

std::string fill_in(const std::string& text, std::int64_t i) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t open = text.find('{'); open != std::string::npos; open = text.find('{', at)) {
    const std::size_t close = text.find('}', open);
    if (close == std::string::npos) throw InputError("'" + text + "': a brace is not closed");
    out += text.substr(at, open - at);
    const std::string_view inside = std::string_view(text).substr(open + 1, close - open - 1);
    out += std::to_string(Expression(inside, i).value());
    at = close + 1;
  }
  return out + text.substr(at);
}

void repeat_entry(const std::string& name, const Yaml& entry, std::size_t made, std::size_t most,
                  const std::function<void(const std::string&, const Yaml&)>& take) {
  const Yaml* repeat = entry.is_map() ? entry.find(kRepeatKey.name) : nullptr;
  if (repeat == nullptr) {
    take(name, entry);
    return;
  }
  const std::int64_t times = read_integer(*repeat, kRepeatKey);
  const std::size_t all = made + static_cast<std::size_t>(times);
  if (all > most) {
    repeat->fail("makes " + std::to_string(all) + " entries; allowed: up to " +
                 std::to_string(most));
  }
  constexpr std::size_t kMostText = 64U << 20U;  // of all entries
  std::size_t bytes = name.size();
  (void)entry.rewritten([&bytes](const std::string& part) {
    bytes += part.size();
    return part;
  });
  if (bytes > kMostText / static_cast<std::size_t>(times)) {
    repeat->fail("makes more than 64 MiB of text");
  }
  for (std::int64_t i = 0; i < times; ++i) {
    std::string own_name;
    try {
      own_name = fill_in(name, i);
    } catch (const InputError& error) {
      entry.fail(error.what());
    }
    take(own_name, entry.rewritten([i](const std::string& text) { return fill_in(text, i); }));
  }
}

}  // namespace weft
