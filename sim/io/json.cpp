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
constexpr std::size_t kMaxValues = 1U << 22;  // some hundred megabytes

/// Takes the library's events and builds our value. (Its own callback parser takes quadratic time.)
class Builder final : public nlohmann::json_sax<Library> {
 public:
  Builder(std::string_view text, const std::string& file, int line)
      : text_{text}, file_{file}, line_{line} {}
  Json take() { return std::move(root_); }

  bool null() override { return add({}); }
  bool boolean(bool v) override { return add(v); }
  bool number_integer(number_integer_t v) override { return add(v); }
  bool number_unsigned(number_unsigned_t v) override {
    return v > INT64_MAX ? add(static_cast<double>(v)) : add(static_cast<std::int64_t>(v));
  }
  bool number_float(number_float_t v, const string_t& /*as_written*/) override { return add(v); }
  bool string(string_t& v) override { return add(std::move(v)); }
  bool binary(binary_t& /*v*/) override { return false; }  // only in formats other than JSON
  bool start_object(std::size_t /*size*/) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& v) override {
    Open& object = open_.back();
    if (!object.keys.insert(v).second)
      throw InputError((line_ > 1 ? Place{file_, line_}.text() : file_) + ": key '" + v +
                       "' given twice");
    object.key = std::move(v);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*last_token*/,
                   const Library::exception& /*e*/) override {
    Place place{file_, line_, 1};
    for (std::size_t i = 0; i + 1 < position && i < text_.size(); ++i) {
      place.column = text_[i] == '\n' ? 1 : place.column + 1;
      place.line += text_[i] == '\n' ? 1 : 0;
    }
    throw InputError(place, "not valid JSON");
  }

 private:
  /// An object or array whose end has not come yet.
  struct Open {
    Json value;
    std::set<std::string> keys;
    std::string key;  // of the member to come
  };

  bool add(Json value) {
    if (++values_ > kMaxValues) {
      throw InputError(file_ + ": holds more than " + std::to_string(kMaxValues) + " values");
    }
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().value.is_array()) {
      open_.back().value.push(std::move(value));
    } else {
      open_.back().value.set(std::move(open_.back().key), std::move(value));
    }
    return true;
  }
  bool open(Json value) {
    if (open_.size() == kMaxDepth) throw InputError(file_ + ": nested deeper than 200 levels");
    open_.push_back({std::move(value), {}, {}});
    return true;
  }
  bool close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }

  std::string_view text_;
  const std::string& file_;
  int line_;
  std::vector<Open> open_;  // outermost first
  std::size_t values_{0};
  Json root_;
};

Library to_library(const Json& j) {
  if (j.is_object()) {
    Library out = Library::object();
    // Keys are new: the library's own insertion would look for each among all.
    auto& members = out.get_ref<Library::object_t&>();
    for (const auto& [key, value] : j.members()) {
      members.Library::object_t::Container::emplace_back(key, to_library(value));
    }
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

Json Json::parse(std::string_view text, const std::string& file, int line) {
  Builder builder(text, file, line);
  Library::sax_parse(text, &builder);
  return builder.take();
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

std::string Json::dump_line() const {
  return to_library(*this).dump(-1, ' ', false, Library::error_handler_t::replace);
}

}  // namespace weft
