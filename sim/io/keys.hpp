#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

class Yaml;

/// What stands in KeySpec::fallback of a key that must be there.
inline constexpr std::string_view kRequired = "required";

/// The declaration of one key of a YAML map: the only place where its name, form and default stand.
/// Readers take a map's keys from its table (check_keys, read_integer); the pages of the formats
/// (`weft docs`) are made from the same tables.
struct KeySpec {
  std::string_view name;
  std::string_view form;      ///< what is written there: "text", "whole number", "map", "size"
  std::string_view fallback;  ///< what holds where it is left out, in words; or kRequired
  std::string_view meaning;
  std::span<const std::string_view> words{};  ///< the words there are, where it takes one of a few
  std::int64_t min{0};                        ///< of whole numbers
  std::int64_t max{0};
};

/// One map of a format: where it stands in a file ("node.devices.NAME", capitals for a name that
/// the user chooses), what it is, its keys.
struct FormatSection {
  std::string_view path;
  std::string_view meaning;
  std::vector<KeySpec> keys;
};

/// Refuses keys that are not in the table, with those that are, and a required one that is missing.
/// Throws InputError with the place.
void check_keys(const Yaml& yaml, std::span<const KeySpec> keys);

/// The declaration of `name`. Throws std::logic_error if there is none.
const KeySpec& key_of(std::span<const KeySpec> keys, std::string_view name);

/// A whole number within the key's range. Throws InputError with the place.
std::int64_t read_integer(const Yaml& yaml, const KeySpec& key);

/// What may be written: "whole number, 1 to 8", "one of: gdr, host-staged", else the form itself.
std::string form_text(const KeySpec& key);

/// The words of a table {word, meaning}.
template <class Meaning, std::size_t n>
constexpr std::array<std::string_view, n> words_of(
    const std::array<std::pair<std::string_view, Meaning>, n>& table) {
  std::array<std::string_view, n> words{};
  for (std::size_t i = 0; i < n; ++i) words[i] = table[i].first;
  return words;
}

}  // namespace weft
