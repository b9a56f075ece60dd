#include "sim/io/linux_release.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

#include "sim/base/quantity.hpp"

namespace weft {
namespace {

constexpr std::string_view kDigits = "0123456789";

/// What a builder adds to the three numbers that a release begins with: "-105-generic", "+"; the
/// word itself if it begins otherwise.
std::string_view behind_numbers(std::string_view word) {
  const std::size_t minor = word.find('.') + 1;
  const std::size_t dot = word.find('.', minor);
  const bool is_major = minor == 2 && word[0] >= '3' && word[0] <= '9';
  if (!is_major || dot == std::string_view::npos) return word;
  const std::string_view middle = word.substr(minor, dot - minor);
  const std::size_t end = std::min(word.find_first_not_of(kDigits, dot + 1), word.size());
  const bool are_numbers = !middle.empty() && middle.size() <= 3 && end > dot + 1 &&
                           middle.find_first_not_of(kDigits) == std::string_view::npos;
  return are_numbers ? word.substr(end) : word;
}

bool is_release(std::string_view word) {
  constexpr std::size_t kMost = 64;  // of struct utsname
  const std::string_view more = behind_numbers(word);
  return more.size() < word.size() && word.size() <= kMost &&
         std::all_of(more.begin(), more.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                  std::string_view("-+._~").find(c) != std::string_view::npos;
         });
}

}  // namespace

std::string_view linux_release_of(std::string_view line) {
  line = trimmed(line);
  std::array<std::string_view, 3> words;
  std::size_t at = 0;
  for (std::string_view& word : words) {
    at = std::min(line.find_first_not_of(' ', at), line.size());
    word = line.substr(at, line.find(' ', at) - at);
    at += word.size();
  }
  if (words[0] == "Linux") {
    return is_release(words[1]) ? words[1] : is_release(words[2]) ? words[2] : std::string_view{};
  }
  const std::string_view more = behind_numbers(line);
  const bool is_built = more.find_first_of("-+") != std::string_view::npos &&
                        std::string_view("-+.").find(more[0]) != std::string_view::npos;
  return is_release(line) && is_built ? line : std::string_view{};
}

}  // namespace weft
