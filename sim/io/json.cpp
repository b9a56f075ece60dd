#include "sim/io/json.hpp"

#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "sim/base/error.hpp"

namespace weft {
namespace {

using Library = nlohmann::ordered_json;
constexpr std::size_t kMaxDepth =
    200;  // our own files nest about ten deep; bounds recursion on hostile text

Json from_library(const Library& j) {
  switch (j.type()) {
    case Library::value_t::boolean:
      return j.get<bool>();
    case Library::value_t::number_integer:
      return j.get<std::int64_t>();
    case Library::value_t::number_unsigned:
      if (j.get<std::uint64_t>() > INT64_MAX) return j.get<double>();
      return j.get<std::int64_t>();
    case Library::value_t::number_float:
      return j.get<double>();
    case Library::value_t::string:
      return j.get<std::string>();
    case Library::value_t::array: {
      Json::Array items;
      for (const Library& item : j) items.push_back(from_library(item));
      return Json::array(std::move(items));
    }
    case Library::value_t::object: {
      Json object = Json::object();
      for (const auto& [key, value] : j.items()) object.set(key, from_library(value));
      return object;
    }
    default:
      return {};
  }
}

Library to_library(const Json& j) {
  if (j.is_object()) {
    Library out = Library::object();
    for (const auto& [key, value] : j.members()) out.push_back({key, to_library(value)});
    return out;
  }
  if (j.is_array()) {
    Library out = Library::array();
    for (const Json& item : j.items()) out.push_back(to_library(item));
    return out;
  }
  if (j.is_string()) return j.as_string();
  if (j.is_integer()) return j.as_integer();
  if (j.is_number()) return std::isfinite(j.as_number()) ? Library(j.as_number()) : Library();
  if (j.is_null()) return {};
  return j.as_bool();
}

template <class T, class V>
const T& expect(const V& value, const char* what) {
  if (const T* v = std::get_if<T>(&value)) return *v;
  throw InputError(std::string("expected ") + what);
}

}  // namespace

Json Json::array(Array items) {
  Json j;
  j.value_ = std::move(items);
  return j;
}

Json Json::object(std::initializer_list<Member> members) {
  Json j;
  j.value_ = Object(members);
  return j;
}

Json Json::parse(std::string_view text, const std::string& file) {
  std::vector<std::set<std::string>> keys;  // of each open object or array, outermost first
  const auto bounded = [&](int, Library::parse_event_t event, Library& value) {
    if (event == Library::parse_event_t::object_start ||
        event == Library::parse_event_t::array_start) {
      if (keys.size() == kMaxDepth) throw InputError(file + ": nested deeper than 200 levels");
      keys.emplace_back();
    } else if (event == Library::parse_event_t::object_end ||
               event == Library::parse_event_t::array_end) {
      keys.pop_back();
    } else if (event == Library::parse_event_t::key) {
      // The library would keep one of the two in silence.
      if (!keys.back().insert(value.get<std::string>()).second) {
        throw InputError(file + ": key '" + value.get<std::string>() + "' given twice");
      }
    }
    return true;
  };
  try {
    return from_library(Library::parse(text, bounded));
  } catch (const Library::parse_error& e) {
    Place place{file, 1, 1};
    for (std::size_t i = 0; i + 1 < e.byte && i < text.size(); ++i) {
      place.column = text[i] == '\n' ? 1 : place.column + 1;
      place.line += text[i] == '\n' ? 1 : 0;
    }
    throw InputError(place, "not valid JSON");
  } catch (const Library::exception&) {
    throw InputError(file + ": not valid JSON");
  }
}

bool Json::is_number() const {
  return std::holds_alternative<std::int64_t>(value_) || std::holds_alternative<double>(value_);
}

bool Json::as_bool() const { return expect<bool>(value_, "true or false"); }

double Json::as_number() const {
  if (const auto* i = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*i);
  return expect<double>(value_, "a number");
}

std::int64_t Json::as_integer() const { return expect<std::int64_t>(value_, "a whole number"); }
const std::string& Json::as_string() const { return expect<std::string>(value_, "a text"); }
const Json::Array& Json::items() const { return expect<Array>(value_, "a list"); }
const Json::Object& Json::members() const { return expect<Object>(value_, "an object"); }

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : members()) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  if (const Json* j = find(key)) return *j;
  throw InputError("missing key '" + std::string(key) + "'");
}

void Json::set(std::string key, Json value) {
  if (is_null()) value_ = Object{};
  if (!is_object()) throw std::logic_error("Json::set: not an object");
  std::get<Object>(value_).emplace_back(std::move(key), std::move(value));
}

void Json::push(Json value) {
  if (is_null()) value_ = Array{};
  if (!is_array()) throw std::logic_error("Json::push: not a list");
  std::get<Array>(value_).push_back(std::move(value));
}

std::string Json::dump() const {
  // A file name may hold any bytes; those that are not UTF-8 become U+FFFD.
  return to_library(*this).dump(2, ' ', false, Library::error_handler_t::replace) + "\n";
}

}  // namespace weft
