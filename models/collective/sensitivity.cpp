#include "models/collective/sensitivity.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "models/collective/notes.hpp"
#include "models/collective/scale_note.hpp"
#include "sim/base/parallel.hpp"

namespace weft {
namespace {

constexpr const char* kStoppedBefore = "stopped before it was run";
constexpr const char* kDiffers = "differs between devices: ";

/// One run with one parameter moved.
struct Variant {
  std::size_t param;
  std::string key;
  std::string value;               ///< that it has then
  std::optional<double> factor{};  ///< of a number; its lower run is followed by its upper one
};

/// What became of it: rows, or why there are none.
struct Outcome {
  std::vector<ResultRow> rows;
  std::string why_not;
};

/// A parameter's values, of all devices.
struct Values {
  const ParamSpec* spec;
  std::vector<double> numbers;
};

std::string joined_values(const Values& values, double factor) {
  std::string out;
  for (const double number : values.numbers) {
    out += (out.empty() ? "" : ", ") + ParamCatalog::format(*values.spec, number * factor);
  }
  return out;
}

bool is_whole(double number) { return std::floor(number) == number; }

/// Whether what a device has a whole number of would be another number then, but not a whole one.
bool breaks(const Values& values, double factor) {
  constexpr double kRounding = 1e-9;
  const Unit unit = values.spec->unit;
  if (unit != Unit::kCount && unit != Unit::kBytes) return false;
  return std::any_of(values.numbers.begin(), values.numbers.end(), [factor](double number) {
    const double moved = number * factor;
    return is_whole(number) && std::abs(moved - std::round(moved)) > kRounding * moved;
  });
}

/// By what all values are moved, down or up: as far as the step says, a whole number by 1 at least,
/// and none beyond its range; 1: not at all.
double factor_of(const Values& values, double step) {
  const ParamSpec& spec = *values.spec;
  const bool counts = spec.unit == Unit::kCount || spec.unit == Unit::kBytes;
  double factor = 1 + step;
  for (const double number : values.numbers) {  // the least of them moves furthest
    if (number == 0 || !counts || !is_whole(number)) continue;
    const double by = std::max(1.0, std::round(std::abs(step) * number)) / number;
    factor = step < 0 ? std::min(factor, 1 - by) : std::max(factor, 1 + by);
  }
  for (const double number : values.numbers) {
    if (number != 0 && number * factor < spec.min) factor = spec.min / number;
    if (number != 0 && number * factor > spec.max) factor = spec.max / number;
  }
  return factor > 0 ? factor : 1;
}

/// The runs to make, and why there are none of some parameters.
class Variants {
 public:
  Variants(const SensitivityRequest& request, Sensitivity& out) : request_{request}, out_{out} {}

  void add(std::size_t param, const Values& values) {
    if (values.spec->unit == Unit::kChoice) return add_words(param, values);
    if (values.spec->unit == Unit::kFlags) return add_flags(param, values);
    const double low = factor_of(values, -request_.step);
    const double high = factor_of(values, request_.step);
    const bool is_zero = std::all_of(values.numbers.begin(), values.numbers.end(),
                                     [](double number) { return number == 0; });
    if (is_zero || low == high) {
      out_.not_moved.push_back({param, is_zero ? "is 0: it has no relative change" : "is fixed"});
      return;
    }
    if (values.numbers.size() > 1 && (breaks(values, low) || breaks(values, high))) {
      out_.not_moved.push_back({param, std::string(kDiffers) + "no one factor keeps all whole"});
      return;
    }
    const std::string& key = out_.params[param].key;
    all_.push_back({param, key, joined_values(values, low), low});
    all_.push_back({param, key, joined_values(values, high), high});
  }

  const std::vector<Variant>& all() const { return all_; }

 private:
  void set(std::size_t param, const std::string& value) {
    all_.push_back({param, out_.params[param].key, value, {}});
  }
  void add_words(std::size_t param, const Values& values) {
    for (double word = values.spec->min; word <= values.spec->max; ++word) {
      const bool holds =
          std::find(values.numbers.begin(), values.numbers.end(), word) != values.numbers.end();
      if (!holds || values.numbers.size() > 1) set(param, ParamCatalog::format(*values.spec, word));
    }
  }
  void add_flags(std::size_t param, const Values& values) {
    if (values.numbers.size() > 1) {
      out_.not_moved.push_back(
          {param, std::string(kDiffers) + "a flag cannot be turned over alone"});
      return;
    }
    const auto mask = static_cast<std::uint32_t>(values.numbers.front());
    const auto all = static_cast<std::uint64_t>(values.spec->max);
    for (std::uint64_t flag = 1; flag <= all; flag *= 2) {
      set(param, ParamCatalog::format(*values.spec, mask ^ static_cast<std::uint32_t>(flag)));
    }
  }

  const SensitivityRequest& request_;
  Sensitivity& out_;
  std::vector<Variant> all_;
};

/// In which a row of the same work is compared.
double speed(const ResultRow& row) { return row.bytes > 0 ? row.busbw_gb_per_s : 1 / row.time_us; }

/// Of what has no bytes what its row says of all its calls.
std::string decision(const ResultRow& row) {
  if (row.channels == 0) return row.algo;
  return fmt::format("{} {} x {}", row.algo, row.proto, row.channels);
}

/// The parameter that a device's own ("leaf.uplink_rate", "nic3.rate") is one of; "" if there is
/// none, or if the key is a parameter itself.
std::string of_all_devices(const std::string& key, const ParamCatalog& catalog) {
  if (catalog.find(key) != nullptr) return "";
  const std::string device = key.substr(0, key.find('.'));
  std::string scope = device.substr(0, device.find_first_of("0123456789"));
  if (scope == "leaf" || scope == "spine" || scope == "core") scope = "netswitch";
  if (scope == device) return "";
  const std::string all = scope + key.substr(device.size());
  return catalog.find(all) != nullptr ? all : "";
}

/// Puts the run's parameters into `out`, a key once; the values of each, likewise.
std::vector<Values> add_params(const RunResult& run, const SensitivityRequest& request,
                               const ParamCatalog& catalog, Sensitivity& out) {
  std::vector<Values> values;
  for (const ProvenanceParam& p : run.provenance.params) {
    const bool asked = request.keys.empty() ? !only_packets_see(p.key)
                                            : std::find(request.keys.begin(), request.keys.end(),
                                                        p.key) != request.keys.end();
    if (!asked) continue;
    if (out.params.empty() || out.params.back().key != p.key) {
      out.params.push_back({p.key, p.device, "", p.origin, p.source});
      values.push_back({&catalog.require(p.key), {}});
    }
    std::vector<double>& numbers = values.back().numbers;
    const double number = ParamCatalog::parse(*values.back().spec, p.value);
    if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) {
      numbers.push_back(number);
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) out.params[i].value = joined_values(values[i], 1);
  for (const std::string& key : request.keys) {
    const bool known = std::any_of(out.params.begin(), out.params.end(),
                                   [&](const MovedParam& p) { return p.key == key; });
    if (known) continue;
    if (const std::string all = of_all_devices(key, catalog); !all.empty()) {
      throw InputError("--params: " + key +
                       " is of some devices; a parameter is moved for all that have it: " + all);
    }
    catalog.require(key);
    throw InputError("--params: this run does not use " + key);
  }
  return values;
}

std::vector<Outcome> run_variants(const Scenario& scenario, const TopologySpec& topology,
                                  const SensitivityRequest& request,
                                  const std::vector<Variant>& variants, const Predictor& predictor,
                                  const ParamCatalog& catalog) {
  std::vector<Outcome> outcomes(variants.size());
  std::mutex mutex;
  std::size_t done = 0;
  parallel_for(variants.size(), request.options.threads, [&](std::size_t i) {
    PredictOptions options = request.options;
    options.threads = threads_each(variants.size(), request.options.threads);
    options.on_progress = {};
    if (variants[i].factor) {
      options.scale = {variants[i].key, *variants[i].factor};
    } else {
      options.set.push_back({variants[i].key, variants[i].value, {}});
    }
    try {
      if (options.stop != nullptr) options.stop->check();
      RunResult run = predictor(scenario, topology, options, catalog);
      if (!run.not_run.empty()) throw Stopped("stopped");
      outcomes[i].rows = std::move(run.rows);
    } catch (const InputError& e) {
      outcomes[i].why_not = e.what();
    } catch (const Stopped&) {
      outcomes[i].why_not = kStoppedBefore;
    }
    const std::lock_guard lock(mutex);
    if (request.on_progress) request.on_progress(++done, variants.size());
  });
  return outcomes;
}

/// The row that stands for `row` in another run: the same one or, where GPUDirect RDMA is no longer
/// possible, what runs in its place.
const ResultRow* counterpart(const ResultRow& row, const std::vector<ResultRow>& rows) {
  const ResultRow* other = nullptr;
  for (const ResultRow& r : rows) {
    if (r.bytes != row.bytes || r.job != row.job) continue;
    if (r.memory_path == row.memory_path) return &r;
    if (other == nullptr || r.memory_path == "host-staged") other = &r;
  }
  return other;
}

std::string change_of_decision(const ResultRow& before, const ResultRow& then) {
  std::string out = then.memory_path == before.memory_path ? "" : then.memory_path;
  if (decision(then) != decision(before)) out += (out.empty() ? "" : ", ") + decision(then);
  return out;
}

/// Of a number: d ln(speed) / d ln(parameter).
Effect effect_of(const ResultRow& row, const Variant& low, const Outcome& at_low,
                 const Variant& high, const Outcome& at_high) {
  const ResultRow& below = *counterpart(row, at_low.rows);
  const ResultRow& above = *counterpart(row, at_high.rows);
  Effect effect{low.param, low.value, high.value};
  const auto slope = [](double b0, double b1, double x0, double x1) {
    return x0 == x1 ? 0 : std::log(b1 / b0) / std::log(x1 / x0);
  };
  effect.elasticity = slope(speed(below), speed(above), *low.factor, *high.factor);
  effect.down = slope(speed(below), speed(row), *low.factor, 1);
  effect.up = slope(speed(row), speed(above), 1, *high.factor);
  effect.decides = change_of_decision(row, below);
  if (effect.decides.empty()) effect.decides = change_of_decision(row, above);
  return effect;
}

Effect effect_of(const ResultRow& row, const Variant& word, const Outcome& outcome) {
  const ResultRow& then = *counterpart(row, outcome.rows);
  Effect effect{word.param, "", word.value};
  effect.change = speed(then) / speed(row) - 1;
  effect.decides = change_of_decision(row, then);
  return effect;
}

void add_effects(const std::vector<Variant>& variants, const std::vector<Outcome>& outcomes,
                 Sensitivity& out) {
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const Variant& variant = variants[i];
    const bool is_number = variant.factor.has_value();
    const std::size_t last = i + (is_number ? 1 : 0);
    std::string why;
    bool is_stopped = false;
    for (std::size_t k = i; k <= last; ++k) {
      if (!outcomes[k].why_not.empty()) why = variants[k].value + ": " + outcomes[k].why_not;
      is_stopped = is_stopped || outcomes[k].why_not == kStoppedBefore;
    }
    if (!why.empty()) out.not_moved.push_back({variant.param, why, is_stopped});
    for (RowEffects& row : out.rows) {
      if (!why.empty()) break;
      if (is_number) {
        row.numbers.push_back(
            effect_of(row.row, variant, outcomes[i], variants[last], outcomes[last]));
      } else {
        row.words.push_back(effect_of(row.row, variant, outcomes[i]));
      }
    }
    i = last;
  }
  for (RowEffects& row : out.rows) {
    std::stable_sort(row.numbers.begin(), row.numbers.end(), [](const auto& a, const auto& b) {
      return std::abs(*a.elasticity) > std::abs(*b.elasticity);
    });
    std::stable_sort(row.words.begin(), row.words.end(), [](const auto& a, const auto& b) {
      return std::abs(a.change) > std::abs(b.change);
    });
  }
}

/// Where what a parameter of scale does was asked of two nodes, unless the run's notes say so.
void add_scale_note(Sensitivity& out) {
  constexpr double kMatters = 0.01;  // an elasticity or a change
  std::vector<std::string> keys;
  std::vector<ResultRow> rows;
  for (const RowEffects& row : out.rows) {
    rows.push_back(row.row);
    for (const Effect& e : row.numbers) {
      if (std::abs(*e.elasticity) >= kMatters) keys.push_back(out.params[e.param].key);
    }
    for (const Effect& e : row.words) {
      if (std::abs(e.change) >= kMatters) keys.push_back(out.params[e.param].key);
    }
  }
  std::string note = scale_note(keys, rows);
  if (note.empty() || std::ranges::any_of(out.notes, is_scale_note)) return;
  out.notes.push_back(std::move(note));
}

}  // namespace

Sensitivity sensitivity(const Scenario& scenario, const TopologySpec& topology,
                        const SensitivityRequest& asked, const Predictor& predictor,
                        const ParamCatalog& catalog) {
  SensitivityRequest request = asked;
  request.options.shared = make_shared_runs();  // many a parameter changes nothing of the run
  RunResult run = predictor(scenario, topology, request.options, catalog);
  if (!run.not_run.empty()) throw Stopped("stopped");
  Sensitivity out;
  const std::vector<Values> values = add_params(run, request, catalog, out);
  for (ResultRow& row : run.rows) {
    if (speed(row) > 0) out.rows.push_back({std::move(row), {}, {}});
  }
  if (out.rows.empty()) throw InputError(scenario.file + ": one GPU alone has no bus bandwidth");
  Variants variants(request, out);
  for (std::size_t i = 0; i < values.size(); ++i) variants.add(i, values[i]);
  const std::vector<Outcome> outcomes =
      run_variants(scenario, topology, request, variants.all(), predictor, catalog);
  add_effects(variants.all(), outcomes, out);
  out.is_stopped = std::ranges::any_of(out.not_moved, &NotMoved::is_stopped);
  out.notes = std::move(run.notes);
  if (!scenario.op.empty()) add_scale_note(out);  // others are of the nodes that they have
  out.provenance = std::move(run.provenance);
  return out;
}

}  // namespace weft
