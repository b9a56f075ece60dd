#include "sim/io/keys.hpp"

#include <algorithm>
#include <stdexcept>

#include "sim/io/yaml.hpp"

namespace weft {

void check_keys(const Yaml& yaml, std::span<const KeySpec> keys) {
  std::vector<std::string_view> names;
  for (const KeySpec& key : keys) names.push_back(key.name);
  yaml.allow_keys(names);
  for (const KeySpec& key : keys) {
    if (key.fallback == kRequired) yaml.require(key.name);
  }
}

const KeySpec& key_of(std::span<const KeySpec> keys, std::string_view name) {
  const auto at =
      std::find_if(keys.begin(), keys.end(), [&](const KeySpec& key) { return key.name == name; });
  if (at == keys.end()) throw std::logic_error("undeclared key: " + std::string(name));
  return *at;
}

std::int64_t read_integer(const Yaml& yaml, const KeySpec& key) {
  return yaml.integer(key.min, key.max);
}

std::string form_text(const KeySpec& key) {
  if (key.max > 0) {
    return std::string(key.form) + ", " + std::to_string(key.min) + " to " +
           std::to_string(key.max);
  }
  if (key.words.empty()) return std::string(key.form);
  std::string out(key.form);
  for (std::size_t i = 0; i < key.words.size(); ++i) {
    out += (i == 0 ? ": " : ", ") + std::string(key.words[i]);
  }
  return out;
}

}  // namespace weft
