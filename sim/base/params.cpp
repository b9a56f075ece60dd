#include "sim/base/params.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace weft {
namespace {

constexpr std::array<std::string_view, 5> kOriginNames{"specification", "published", "measured",
                                                       "fitted", "assumed"};

std::vector<std::string> words(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t space = std::min(list.find(' '), list.size());
    if (space > 0) out.emplace_back(list.substr(0, space));
    list.remove_prefix(std::min(space + 1, list.size()));
  }
  return out;
}

constexpr std::string_view kNoFlags = "none";

/// "RR+CR", "none", or the mask as registers are written: "0x1d".
double parse_flags(const ParamSpec& spec, std::string_view text) {
  const std::vector<std::string> allowed = words(spec.choices);
  if (text == kNoFlags) return 0;
  std::uint32_t mask = 0;
  if (text.starts_with("0x")) {
    const auto [rest, error] =
        std::from_chars(text.data() + 2, text.data() + text.size(), mask, 16);
    if (error == std::errc{} && rest == text.data() + text.size() &&
        (mask >> allowed.size()) == 0) {
      return mask;
    }
    throw InputError(std::string(spec.key) + ": '" + std::string(text) + "' is not a mask of its " +
                     std::to_string(allowed.size()) + " bits");
  }
  while (true) {
    const std::string_view word = text.substr(0, text.find('+'));
    const auto at = std::find(allowed.begin(), allowed.end(), word);
    if (at == allowed.end()) {
      throw InputError(std::string(spec.key) + ": '" + std::string(word) +
                       "' is not a flag; allowed: none, or any of " + known_names(allowed) +
                       " joined by '+'");
    }
    mask |= 1U << static_cast<unsigned>(at - allowed.begin());
    if (word.size() == text.size()) return mask;
    text.remove_prefix(word.size() + 1);
  }
}

std::string format_flags(const ParamSpec& spec, double number) {
  const auto mask = static_cast<std::uint32_t>(number);
  std::string out;
  std::uint32_t bit = 1;
  for (const std::string& word : words(spec.choices)) {
    if ((mask & bit) != 0) out += (out.empty() ? "" : "+") + word;
    bit <<= 1U;
  }
  return out.empty() ? std::string(kNoFlags) : out;
}

std::string_view name_of(std::string_view key) { return key.substr(key.find('.') + 1); }

}  // namespace

std::string_view origin_name(Origin origin) {
  return kOriginNames.at(static_cast<std::size_t>(origin));
}

Origin parse_origin(std::string_view text) {
  const auto* const at = std::find(kOriginNames.begin(), kOriginNames.end(), text);
  if (at == kOriginNames.end()) {
    throw InputError("'" + std::string(text) + "' is not an origin; known: " +
                     known_names({kOriginNames.begin(), kOriginNames.end()}));
  }
  return static_cast<Origin>(at - kOriginNames.begin());
}

ParamCatalog::ParamCatalog(std::span<const std::span<const ParamSpec>> tables) {
  for (const auto table : tables) specs_.insert(specs_.end(), table.begin(), table.end());
  std::sort(specs_.begin(), specs_.end(),
            [](const ParamSpec& a, const ParamSpec& b) { return a.key < b.key; });
  for (std::size_t i = 1; i < specs_.size(); ++i) {
    if (specs_[i - 1].key == specs_[i].key) {
      throw std::logic_error("parameter declared twice: " + std::string(specs_[i].key));
    }
  }
}

const ParamSpec* ParamCatalog::find(std::string_view key) const {
  const auto at =
      std::lower_bound(specs_.begin(), specs_.end(), key,
                       [](const ParamSpec& s, std::string_view k) { return s.key < k; });
  return at != specs_.end() && at->key == key ? &*at : nullptr;
}

const ParamSpec& ParamCatalog::require(std::string_view key,
                                       std::vector<std::string> others) const {
  if (const ParamSpec* spec = find(key)) return *spec;
  const std::string_view scope = key.substr(0, key.find('.') + 1);
  std::vector<std::string> same_scope;
  std::vector<std::string> scopes;
  for (const ParamSpec& s : specs_) {
    if (!scope.empty() && s.key.starts_with(scope)) same_scope.emplace_back(s.key);
    others.emplace_back(s.key);
    const std::string its_scope(s.key.substr(0, s.key.find('.')));
    if (scopes.empty() || scopes.back() != its_scope) scopes.push_back(its_scope);
  }
  const bool near = !same_scope.empty();
  const std::string perhaps = did_you_mean(key, others);
  throw InputError("no parameter '" + std::string(key) + "'" + perhaps + "; known" +
                   (near ? ": " : " scopes: ") +
                   known_names(near ? std::move(same_scope) : std::move(scopes), 20) +
                   " (see weft list-params)");
}

double ParamCatalog::parse(const ParamSpec& spec, std::string_view text) {
  if (spec.unit == Unit::kChoice) {
    const std::vector<std::string> allowed = words(spec.choices);
    const auto at = std::find(allowed.begin(), allowed.end(), text);
    if (at == allowed.end()) {
      throw InputError(std::string(spec.key) + ": '" + std::string(text) + "' is not a choice" +
                       did_you_mean(text, allowed) + "; allowed: " + known_names(allowed));
    }
    return static_cast<double>(at - allowed.begin());
  }
  if (spec.unit == Unit::kFlags) return parse_flags(spec, text);
  double value{};
  try {
    value = parse_quantity(text, spec.unit);
  } catch (const InputError& e) {
    throw InputError(std::string(spec.key) + ": " + e.what());
  }
  const bool is_allowed = spec.allowed.empty() ? spec.min <= value && value <= spec.max
                                               : std::find(spec.allowed.begin(), spec.allowed.end(),
                                                           value) != spec.allowed.end();
  if (!is_allowed) {
    throw InputError(std::string(spec.key) + ": " + std::string(text) +
                     (spec.allowed.empty() ? " is out of range" : " cannot be") +
                     "; allowed: " + range(spec));
  }
  return value;
}

std::string ParamCatalog::range(const ParamSpec& spec) {
  if (spec.unit == Unit::kChoice) return std::string(spec.choices);
  if (spec.unit == Unit::kFlags) return "none or any of " + std::string(spec.choices);
  if (spec.allowed.empty()) {
    return format_quantity(spec.min, spec.unit) + " to " + format_quantity(spec.max, spec.unit);
  }
  std::string out;
  for (const double number : spec.allowed) {
    out += (out.empty() ? "" : ", ") + format_quantity(number, spec.unit);
  }
  return out;
}

std::string ParamCatalog::format(const ParamSpec& spec, double number) {
  if (spec.unit == Unit::kFlags) return format_flags(spec, number);
  if (spec.unit != Unit::kChoice) return format_quantity(number, spec.unit);
  return words(spec.choices).at(static_cast<std::size_t>(number));
}

const ParamSpec& Params::spec(std::string_view key) const {
  const ParamSpec* found = catalog_->find(key);
  if (found == nullptr) throw std::logic_error("undeclared parameter " + std::string(key));
  return *found;
}

void Params::set_by_user(std::string_view key, std::string_view kind, ParamValue value) {
  catalog_->require(kind.empty() ? std::string(key)
                                 : std::string(kind) + "." + std::string(name_of(key)));
  user_[std::string(key)] = std::move(value);
}

ParamValues Params::of_single_nodes() const {
  ParamValues out;
  for (const auto& [key, value] : user_) {
    if (key.find('@') != std::string::npos) out.emplace(key, value);
  }
  return out;
}

void Params::keep_nodes(const std::map<std::uint32_t, std::uint32_t>& as) {
  const ParamValues all = of_single_nodes();
  drop_nodes();
  for (const auto& [node, other] : as) {
    const std::string here = "@" + std::to_string(node) + ".";
    for (const auto& [key, value] : all) {
      const std::size_t at = key.find(here);
      if (at == std::string::npos) continue;
      user_[key.substr(0, at) + "@" + std::to_string(other) + key.substr(at + here.size() - 1)] =
          value;
    }
  }
}

void Params::drop_nodes() {
  std::erase_if(user_, [](const auto& set) { return set.first.find('@') != std::string::npos; });
}

void Params::set_by_topology(std::string_view key, ParamValue value) {
  catalog_->require(key);
  topology_[std::string(key)] = std::move(value);
}

void Params::scale(std::string_view key, double factor) {
  catalog_->require(key);
  scaled_ = key;
  factor_ = factor;
}

ParamValue Params::get(std::string_view key, const ParamScope& scope) const {
  const ParamSpec& declared = spec(key);
  const std::string_view name = name_of(key);
  const auto find = [](const ParamValues* values, std::string_view k) -> const ParamValue* {
    if (values == nullptr) return nullptr;
    const auto at = values->find(k);
    return at == values->end() ? nullptr : &at->second;
  };
  const ParamValue* found = nullptr;
  const auto find_of = [&](std::string_view device) {
    if (found != nullptr || device.empty()) return;
    found = find(&user_, std::string(device) + "." + std::string(name));
  };
  if (!scope.on_node.empty()) {
    find_of(scope.on_node);
    find_of(std::string(key.substr(0, key.find('.'))) +
            std::string(scope.on_node.substr(scope.on_node.find('@'))));
  }
  find_of(scope.device);
  if (found == nullptr) found = find(&user_, key);
  if (found == nullptr) found = find(scope.topology, name);
  if (found == nullptr) found = find(scope.part, name);
  if (found == nullptr) found = find(&topology_, key);
  ParamValue value = found != nullptr ? *found
                                      : ParamValue{declared.fallback, declared.origin,
                                                   std::string(declared.source)};
  if (key == scaled_) value.number *= factor_;
  return value;
}

void UsedParams::add(std::string_view key, std::string_view device, const ParamValue& value) {
  const auto before = [](const UsedParam& u,
                         const std::pair<std::string_view, const ParamValue*>& v) {
    if (u.key != v.first) return u.key < v.first;
    if (u.value.number != v.second->number) return u.value.number < v.second->number;
    return u.value.source < v.second->source;
  };
  const auto at = std::lower_bound(used_.begin(), used_.end(), std::pair{key, &value}, before);
  if (at == used_.end() || at->key != key || at->value.number != value.number ||
      at->value.source != value.source) {
    used_.insert(at, UsedParam{std::string(key), std::string(device), value});
  } else if (device < at->device) {
    at->device = device;
  }
}

double Params::number(std::string_view key, const ParamScope& scope) const {
  return get(key, scope).number;
}

Duration Params::duration(std::string_view key, const ParamScope& scope) const {
  if (spec(key).unit != Unit::kNanoseconds)
    throw std::logic_error("not a time: " + std::string(key));
  return Duration::from_ns(get(key, scope).number);
}

Bandwidth Params::bandwidth(std::string_view key, const ParamScope& scope) const {
  if (spec(key).unit != Unit::kGigabytesPerS) {
    throw std::logic_error("not a rate: " + std::string(key));
  }
  return Bandwidth::gigabytes_per_s(get(key, scope).number);
}

Bytes Params::bytes(std::string_view key, const ParamScope& scope) const {
  if (spec(key).unit != Unit::kBytes) throw std::logic_error("not a size: " + std::string(key));
  return Bytes{std::llround(get(key, scope).number)};
}

std::uint32_t Params::flags(std::string_view key, const ParamScope& scope) const {
  if (spec(key).unit != Unit::kFlags) throw std::logic_error("not flags: " + std::string(key));
  return static_cast<std::uint32_t>(get(key, scope).number);
}

std::string_view Params::choice(std::string_view key, const ParamScope& scope) const {
  const ParamSpec& declared = spec(key);
  if (declared.unit != Unit::kChoice) throw std::logic_error("not a choice: " + std::string(key));
  const std::size_t want = static_cast<std::size_t>(get(key, scope).number);
  std::string_view list = declared.choices;
  for (std::size_t i = 0; i < want; ++i) list.remove_prefix(list.find(' ') + 1);
  return list.substr(0, list.find(' '));
}

}  // namespace weft
