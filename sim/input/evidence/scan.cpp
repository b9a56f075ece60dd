#include "sim/input/evidence/scan.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

namespace weft {
namespace {

constexpr std::string_view kBlanks = " \t\r";

template <class Number, class... Base>
std::optional<Number> number_at(std::string_view& rest, Base... base) {
  Number number{};
  const auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), number, base...);
  if (error != std::errc{}) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return number;
}

}  // namespace

bool Scan::skip(std::string_view literal) {
  if (!rest_.starts_with(literal)) return false;
  rest_.remove_prefix(literal.size());
  return true;
}

bool Scan::skip_to(std::string_view literal) {
  const std::size_t at = rest_.find(literal);
  if (at == std::string_view::npos) return false;
  rest_.remove_prefix(at + literal.size());
  return true;
}

Scan& Scan::blanks() {
  rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
  return *this;
}

std::optional<std::int64_t> Scan::whole() { return number_at<std::int64_t>(rest_, 10); }

std::optional<std::uint64_t> Scan::hex() {
  const std::string_view before = rest_;
  if (rest_.starts_with("0x") || rest_.starts_with("0X")) rest_.remove_prefix(2);
  const std::optional<std::uint64_t> out = number_at<std::uint64_t>(rest_, 16);
  if (!out) rest_ = before;
  return out;
}

std::optional<double> Scan::number() { return number_at<double>(rest_); }

std::string_view Scan::word() {
  blanks();
  const std::string_view out = rest_.substr(0, rest_.find_first_of(kBlanks));
  rest_.remove_prefix(out.size());
  return out;
}

std::string_view Scan::until(std::string_view literal) {
  const std::size_t at = rest_.find(literal);
  const std::string_view out = rest_.substr(0, at);
  rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at + literal.size());
  return out;
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::optional<KeyAndValue> key_and_value(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  return KeyAndValue{without_blanks(line.substr(0, colon)), without_blanks(line.substr(colon + 1))};
}

std::string_view tail_head(std::string_view line) {
  constexpr std::string_view kOpen = "==> ";
  constexpr std::string_view kClose = " <==";
  const bool is_head = line.size() > kOpen.size() + kClose.size() && line.starts_with(kOpen) &&
                       line.ends_with(kClose);
  if (!is_head) return {};
  line.remove_prefix(kOpen.size());
  line.remove_suffix(kClose.size());
  return line;
}

}  // namespace weft
