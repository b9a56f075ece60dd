#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/units.hpp"

namespace weft {

/// Where a number comes from, best first.
enum class Origin { kSpecification, kPublished, kMeasured, kFitted, kAssumed };
std::string_view origin_name(Origin origin);
/// Throws InputError with the known names.
Origin parse_origin(std::string_view text);

/// The declaration of one parameter: the only place where its key, unit, range and default stand.
///
/// `key` is "<scope>.<name>". Where the scope is a kind of device (gpu, nic, cpu, ...) the value
/// may differ from device to device (a part file, the topology, "--set nic3.pcie_width=8"), and
/// that of some from node to node ("--set nic3@5.trained_width=8"). Numbers are in the unit's
/// canonical form. For Unit::kChoice, `choices` lists the words separated by spaces and `fallback`
/// is the index of the default. For Unit::kFlags, the first word of `choices` is bit 0, the second
/// bit 1, and so on, and numbers are bit masks. `allowed` are the only numbers that can be,
/// ascending, where not all of the range can.
struct ParamSpec {
  std::string_view key;
  Unit unit;
  double fallback;
  double min;
  double max;
  Origin origin;
  std::string_view source;
  std::string_view meaning;
  std::string_view choices = {};
  std::span<const double> allowed = {};
};

/// For static_assert beside each table: every row has a key with a scope, a source, a meaning and a
/// default inside its range.
constexpr bool every_param_is_sourced(std::span<const ParamSpec> table) {
  for (const ParamSpec& p : table) {
    if (p.key.find('.') == std::string_view::npos || p.source.empty() || p.meaning.empty()) {
      return false;
    }
    if (!(p.min <= p.fallback && p.fallback <= p.max)) return false;
    const bool words = p.unit == Unit::kChoice || p.unit == Unit::kFlags;
    if (words != !p.choices.empty()) return false;
    if (p.allowed.empty()) continue;
    if (p.min != p.allowed.front() || p.max != p.allowed.back()) return false;
    if (std::find(p.allowed.begin(), p.allowed.end(), p.fallback) == p.allowed.end()) return false;
  }
  return true;
}

/// A value for one parameter with where it comes from.
struct ParamValue {
  double number{0};  ///< canonical unit; the index of the word for a choice; a mask for flags
  Origin origin{Origin::kAssumed};
  std::string source;
};

/// Values by parameter name ("pcie_gen") for one device or part, or by full key.
using ParamValues = std::map<std::string, ParamValue, std::less<>>;

/// Every declared parameter, sorted by key. Immutable once built.
class ParamCatalog {
 public:
  /// Throws std::logic_error if two tables declare the same key.
  explicit ParamCatalog(std::span<const std::span<const ParamSpec>> tables);

  std::span<const ParamSpec> specs() const { return specs_; }
  const ParamSpec* find(std::string_view key) const;
  /// Throws InputError: unknown key, with the known keys of the same scope, and the one of these or
  /// `others` (what else may be set) that may be meant.
  const ParamSpec& require(std::string_view key, std::vector<std::string> others = {}) const;
  /// The number for `text` by the spec's unit; throws InputError naming the key: malformed, wrong
  /// unit, out of range, unknown choice.
  static double parse(const ParamSpec& spec, std::string_view text);
  /// "50 GB/s", "infiniband".
  static std::string format(const ParamSpec& spec, double number);
  /// What a value may be: "0 ns to 10 us", "256 B, 512 B", "infiniband roce".
  static std::string range(const ParamSpec& spec);

 private:
  std::vector<ParamSpec> specs_;
};

/// Who asks for a parameter: a device with what its topology file and its part say of it.
/// All members may be absent; not owned.
struct ParamScope {
  std::string_view device = {};   ///< "nic3"
  std::string_view on_node = {};  ///< "nic3@5", where something is set for that one alone
  const ParamValues* topology = nullptr;
  const ParamValues* part = nullptr;
};

/// One value of a run, for its provenance.
struct UsedParam {
  std::string key;
  std::string device;  ///< the first by name that has this value; "" for values without a device
  ParamValue value;
};

/// Distinct (key, value, source), by key.
class UsedParams {
 public:
  void add(std::string_view key, std::string_view device, const ParamValue& value);
  const std::vector<UsedParam>& all() const { return used_; }

 private:
  std::vector<UsedParam> used_;
};

/// The parameters of one run. A value is looked for in this order: what the user set for the device
/// of one node ("nic3@5.trained_width"), for its kind there ("nic@5.trained_width"), for the device
/// ("nic3.pcie_width"), for its kind ("nic.pcie_width"), the topology's word on the device, its
/// part, what the topology sets for all, the declared default.
class Params {
 public:
  explicit Params(const ParamCatalog& catalog) : catalog_{&catalog} {}

  const ParamCatalog& catalog() const { return *catalog_; }

  /// `--set KEY=VALUE` and a scenario's `set`: highest precedence. `key` is "<scope>.<name>" or
  /// "<device>.<name>" with `kind` the device's kind. Throws InputError.
  void set_by_user(std::string_view key, std::string_view kind, ParamValue value);
  /// What the user set for devices of one node: "nic3@5.trained_width", "nic@5.trained_width", ...
  ParamValues of_single_nodes() const;
  /// Of what is set for devices of single nodes leaves that of some, each as another's.
  void keep_nodes(const std::map<std::uint32_t, std::uint32_t>& as);
  /// Leaves nothing of it.
  void drop_nodes();
  /// What the topology file says for all: beats defaults only.
  void set_by_topology(std::string_view key, ParamValue value);

  /// From now on all values of `key`, wherever they come from, are so many times what they were:
  /// how far an answer depends on it. Of one key at a time. Throws InputError: no such key.
  void scale(std::string_view key, double factor);

  /// The resolved value. Throws std::logic_error for an undeclared key. By name, so for setting up:
  /// what runs often has its values from then (DeviceModel).
  ParamValue get(std::string_view key, const ParamScope& scope = {}) const;

  double number(std::string_view key, const ParamScope& scope = {}) const;
  Duration duration(std::string_view key, const ParamScope& scope = {}) const;
  Bandwidth bandwidth(std::string_view key, const ParamScope& scope = {}) const;
  Bytes bytes(std::string_view key, const ParamScope& scope = {}) const;
  /// The mask of a parameter of flags.
  std::uint32_t flags(std::string_view key, const ParamScope& scope = {}) const;
  /// The chosen word; valid as long as the catalog.
  std::string_view choice(std::string_view key, const ParamScope& scope = {}) const;

 private:
  const ParamSpec& spec(std::string_view key) const;

  const ParamCatalog* catalog_;
  ParamValues user_;
  ParamValues topology_;
  std::string scaled_;
  double factor_{1};
};

}  // namespace weft
