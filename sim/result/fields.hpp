#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// One member of a JSON object that stands for a T, declared once: what is written follows from it,
/// and so does the page of the format. A null value is left out, unless the member keeps it.
template <class T>
struct JsonField {
  KeySpec key;
  Json (*value)(const T&);
  bool keeps_null{false};
};

/// A text where there is one; else the member is left out.
inline Json if_any(const std::string& text) { return text.empty() ? Json() : Json(text); }

/// A count; below 2^63.
inline Json whole(std::uint64_t n) { return static_cast<std::int64_t>(n); }

/// A list of texts.
inline Json texts(const std::vector<std::string>& all) {
  Json out = Json::array();
  for (const std::string& text : all) out.push(text);
  return out;
}

template <class T, std::size_t n>
Json object_of(const T& from, const std::array<JsonField<T>, n>& fields) {
  Json out = Json::object();
  for (const JsonField<T>& field : fields) {
    Json value = field.value(from);
    if (field.keeps_null || !value.is_null())
      out.set(std::string(field.key.name), std::move(value));
  }
  return out;
}

/// A JSON list of them.
template <class T, std::size_t n>
Json objects_of(const std::vector<T>& items, const std::array<JsonField<T>, n>& fields) {
  Json out = Json::array();
  for (const T& item : items) out.push(object_of(item, fields));
  return out;
}

template <class T, std::size_t n>
std::vector<KeySpec> keys_of(const std::array<JsonField<T>, n>& fields) {
  std::vector<KeySpec> keys;
  for (const JsonField<T>& field : fields) keys.push_back(field.key);
  return keys;
}

}  // namespace weft
