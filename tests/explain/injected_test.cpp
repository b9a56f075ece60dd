// Faults of the catalogue put into machines, with noise at the model's own validated error: is the
// cause named? WEFT_EXPLAIN_SEEDS says how often, WEFT_EXPLAIN_PAIRS how many pairs,
// WEFT_EXPLAIN_MACHINES how many shipped machines (0: a small one, one GPU a node, instead).
// Numbers stand on models/explain/README.md.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numbers>
#include <utility>

#include <gtest/gtest.h>

#include "sim/base/random.hpp"
#include "tests/explain/explain_data.hpp"

namespace weft::test::explain_injected {
namespace {

constexpr double kWrong = 0.05;
// Standard deviations apart of two Gaussians of one covariance: the wrong one as often.
constexpr double kTold = 3.29;

std::uint64_t setting(const char* name, std::uint64_t fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

double normal(std::mt19937_64& stream) {
  const double u = 1 - uniform01(stream);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * uniform01(stream));
}

struct Machine {
  const char* topology;
  std::uint32_t nodes;
};
constexpr Machine kMachines[] = {{"hgx-h100-8nic", 2},
                                 {"hgx-a100", 2},
                                 {"hgx-h100-4nic", 2},
                                 {"hgx-h100-8nic", 1},
                                 {"hgx-h200-8nic", 2}};

constexpr const char* kPair = R"(topology: pair
nodes: 2
node:
  devices:
    cpu0: {kind: cpu, part: sapphire-rapids}
    sw0: {kind: switch, part: pex89144, upstream: cpu0}
    gpu0: {kind: gpu, part: h100-sxm, upstream: sw0}
    nic0: {kind: nic, part: connectx-7, upstream: sw0, network: fabric}
network:
  fabric: {kind: one-switch, part: quantum-2}
)";

/// An effect as it would be measured.
std::vector<double> measured(const std::vector<double>& effect, const Gaussian& noise,
                             const ErrorModel& errors, std::mt19937_64& stream) {
  std::vector<double> own;
  for (std::size_t i = 0; i < effect.size(); ++i) own.push_back(normal(stream));
  std::vector<double> out = noise.coloured(own);
  const double scale = std::exp(errors.effect * normal(stream));
  for (std::size_t i = 0; i < effect.size(); ++i) out[i] += scale * effect[i];
  return out;
}

struct Counts {
  std::size_t all{0};
  std::size_t healthy{0};  ///< called not slower
  std::size_t first{0};    ///< in the first answer
  std::size_t leads{0};    ///< the first cause of the first answer
  std::size_t alike{0};    ///< in one of the answers that are said to be alike
  std::size_t told{0};     ///< distinguishable from every other cause
  std::size_t told_leads{0};
  double group{0};  ///< answers that are said to be alike, summed

  void print(const char* what) const {
    const auto share = [&](std::size_t n, std::size_t of) {
      return of == 0 ? 0 : 100.0 * static_cast<double>(n) / static_cast<double>(of);
    };
    std::printf(
        "%s: %zu; not slower %.1f %%; first cause %.1f %%, in the first answer %.1f %%, "
        "in the alike answers %.1f %% (%.1f of them); distinguishable %zu, of these the first "
        "cause %.1f %%\n",
        what, all, share(healthy, all), share(leads, all), share(first, all), share(alike, all),
        all == 0 ? 0 : group / static_cast<double>(all), told, share(told_leads, told));
    std::fflush(stdout);
  }
};

bool has_all(const Answer& answer, const Effects& effects, const std::vector<std::size_t>& truth) {
  for (const Combination& same : answer.same) {
    std::size_t found = 0;
    for (const std::size_t i : truth) {
      for (const std::size_t j : same.suspects) {
        found += effects.suspects()[i].entry->id == effects.suspects()[j].entry->id ? 1U : 0U;
      }
    }
    if (found == truth.size()) return true;
  }
  return false;
}

bool leads(const Answer& answer, const Effects& effects, const std::vector<std::size_t>& truth) {
  Answer first;
  first.same.push_back(answer.best());
  return has_all(first, effects, truth);
}

void count(const Explanation& made, const Effects& effects, const std::vector<std::size_t>& truth,
           bool is_told, Counts& counts) {
  ++counts.all;
  counts.told += is_told ? 1U : 0U;
  counts.healthy += made.verdict == Explained::kNotSlower ? 1U : 0U;
  counts.group += static_cast<double>(made.alike);
  if (made.answers.empty()) return;
  const bool does_lead = leads(made.answers.front(), effects, truth);
  counts.leads += does_lead ? 1U : 0U;
  counts.told_leads += does_lead && is_told ? 1U : 0U;
  counts.first += has_all(made.answers.front(), effects, truth) ? 1U : 0U;
  for (std::size_t k = 0; k < made.alike; ++k) {
    if (!has_all(made.answers[k], effects, truth)) continue;
    ++counts.alike;
    break;
  }
}

/// Log of the density at `at` of an effect of this length that is off by a factor exp(k z), z and
/// the noise normal: Laplace's method in z.
double log_density(double at, double length, double k) {
  double z = at > 0 && length > 0 ? std::clamp(std::log(at / length) / k, -5.0, 5.0) : 0;
  z *= k * length / (1 + k * length);
  double curve = 1;
  for (int i = 0; i < 12; ++i) {
    const double mean = std::exp(k * z) * length;
    curve = 1 + k * k * mean * (2 * mean - at);
    const double step = (z - k * mean * (at - mean)) / (curve > 0.1 ? curve : 1);
    z = std::clamp(z - std::clamp(step, -1.0, 1.0), -8.0, 8.0);
    if (std::abs(step) < 1e-6) break;
  }
  const double off = at - std::exp(k * z) * length;
  return -(z * z + off * off + std::log(std::max(curve, 0.1))) / 2;
}

/// How far apart two effects are as they would be measured(): Bhattacharyya's distance of the two
/// densities, integrated over the plane of both, in what it would be of two Gaussians of one
/// covariance.
double apart(const std::vector<double>& a, const std::vector<double>& b, const Gaussian& noise,
             double effect_error) {
  constexpr double kStep = 0.7;  // of noise: the integrand is no narrower than that
  constexpr double kReach = 4.5;
  constexpr double kFar = 8;
  const std::vector<double> u = noise.whitened(a);
  const std::vector<double> v = noise.whitened(b);
  const double u_length = std::sqrt(dot(u, u));
  const double v_length = std::sqrt(dot(v, v));
  const double cosine =
      u_length * v_length > 0 ? std::min(1.0, dot(u, v) / (u_length * v_length)) : 1;
  const double sine = std::sqrt(std::max(0.0, 1 - cosine * cosine));
  // Of ways so unlike each other hardly anything overlaps, whatever the factors.
  const double at_least = sine * std::min(u_length, v_length) * std::exp(-3 * effect_error);
  if (at_least > kFar) return at_least;
  const double from = u_length * std::exp(-kReach * effect_error) - kReach;
  const double to = u_length * std::exp(kReach * effect_error) + kReach;
  double overlap = 0;
  for (double x = from; x < to; x += kStep) {
    const double of_u = log_density(x, u_length, effect_error);
    for (double y = -kReach; y <= kReach; y += kStep) {
      const double across = cosine * y - sine * x;
      const double of_v = log_density(cosine * x + sine * y, v_length, effect_error);
      overlap += std::exp((of_u + of_v - (y * y + across * across) / 2) / 2);
    }
  }
  overlap *= kStep * kStep / (2 * std::numbers::pi);
  return std::sqrt(8 * std::max(0.0, -std::log(overlap)));
}

/// How often noise takes an effect for any of others, by the sum over these: of each cause, or pair
/// of causes, the variant that is nearest.
class Taken {
 public:
  Taken(const std::vector<double>& effect, const Gaussian& noise, double effect_error)
      : effect_{effect}, noise_{noise}, effect_error_{effect_error} {}

  void by(const std::string& cause, const std::vector<double>& other) {
    if (other.empty()) return;
    const double off = apart(effect_, other, noise_, effect_error_);
    double& share = shares_[cause];
    share = std::max(share, std::erfc(off / 2 / std::numbers::sqrt2) / 2);
  }
  bool is_rare() const {
    double sum = 0;
    for (const auto& [cause, share] : shares_) sum += share;
    return sum < kWrong;
  }

 private:
  const std::vector<double>& effect_;
  const Gaussian& noise_;
  double effect_error_;
  std::map<std::string, double> shares_;
};

/// Of one fault: whether noise takes it for another cause, or for none, less than once in twenty. A
/// cause's variants need not be told apart.
bool is_told(const std::vector<double>& effect, const Case& on, const Gaussian& noise, double error,
             std::size_t truth) {
  const std::vector<Suspect>& suspects = on.effects().suspects();
  Taken taken(effect, noise, error);
  taken.by("none", std::vector<double>(effect.size(), 0.0));
  for (std::size_t i = 0; i < suspects.size(); ++i) {
    if (suspects[i].entry->id == suspects[truth].entry->id) continue;
    taken.by(std::string(suspects[i].entry->id), on.effect(i));
  }
  return taken.is_rare();
}

/// What two causes would do by what each does alone: the slower one decides, or both add their
/// time.
std::pair<std::vector<double>, std::vector<double>> guesses(const std::vector<double>& a,
                                                            const std::vector<double>& b) {
  std::vector<double> most(a);
  std::vector<double> sum(a);
  for (std::size_t k = 0; k < a.size(); ++k) {
    most[k] = std::max(a[k], b[k]);
    const double added = std::exp(a[k]) + std::exp(b[k]) - 1;
    sum[k] = added > 0 ? std::log(added) : most[k];
  }
  return {most, sum};
}

/// Of two: likewise every single cause, and other pairs: as they are predicted, where one of their
/// causes is one of the two and the other is alone much like the other of the two; the rest as
/// guesses() has it.
bool is_told(const std::vector<double>& effect, const Case& on, const Gaussian& noise, double error,
             std::size_t a, std::size_t b, const std::vector<std::size_t>& causes) {
  const std::vector<Suspect>& suspects = on.effects().suspects();
  const auto id = [&](std::size_t i) { return std::string(suspects[i].entry->id); };
  const auto pair = [&](std::size_t i, std::size_t j) {
    return std::min(id(i), id(j)) + " and " + std::max(id(i), id(j));
  };
  Taken taken(effect, noise, error);
  for (std::size_t i = 0; i < suspects.size(); ++i) taken.by(id(i), on.effect(i));
  for (const std::size_t i : causes) {
    for (const std::size_t j : causes) {
      if (!taken.is_rare()) return false;
      if (j <= i || pair(i, j) == pair(a, b) || id(i) == id(j)) continue;
      const auto [most, sum] = guesses(on.effect(i), on.effect(j));
      taken.by(pair(i, j), most);
      taken.by(pair(i, j), sum);
    }
  }
  for (const auto& [kept, other] : {std::pair{a, b}, std::pair{b, a}}) {
    for (const std::size_t i : causes) {
      if (id(i) == id(kept) || id(i) == id(other)) continue;
      if (apart(on.effect(i), on.effect(other), noise, error) >= kTold) continue;
      taken.by(pair(kept, i), on.effect(Together{std::min(kept, i), std::max(kept, i)}));
    }
  }
  return taken.is_rare();
}

class Injected : public testing::Test {
 protected:
  static const std::vector<std::unique_ptr<Case>>& cases() {
    static const std::vector<std::unique_ptr<Case>> known = [] {
      std::vector<std::unique_ptr<Case>> out;
      const std::uint64_t most = setting("WEFT_EXPLAIN_MACHINES", 0);
      const std::vector<Point> points =
          points_at("allreduce", {64 << 10, 1 << 20, 8 << 20, 64 << 20, 256 << 20, 1 << 30});
      if (most == 0) {
        out.push_back(
            std::make_unique<Case>(parse_topology(kPair, "pair.yaml", make_catalog()), 2U, points));
        out.back()->prepare_all();
        return out;
      }
      for (const Machine& machine : kMachines) {
        if (out.size() == most) break;
        const std::string file =
            in_project("topologies/" + std::string(machine.topology) + ".yaml");
        out.push_back(
            std::make_unique<Case>(read_topology(file, make_catalog()), machine.nodes, points));
        out.back()->prepare_all();
      }
      return out;
    }();
    return known;
  }
  static std::uint64_t seeds() { return setting("WEFT_EXPLAIN_SEEDS", 400); }

  /// Those that are clearly not nothing.
  static std::vector<std::size_t> visible(const Case& on, const Gaussian& noise, double error) {
    std::vector<std::size_t> out;
    const std::vector<double> none(on.points().size(), 0.0);
    for (std::size_t i = 0; i < on.effects().suspects().size(); ++i) {
      const std::vector<double> effect = on.effect(i);
      double sum = 0;
      for (const double each : effect) sum += each;
      if (sum > 0 && apart(effect, none, noise, error) > kTold) out.push_back(i);
    }
    return out;
  }

  static std::size_t drawn(const Case& on, const std::vector<std::size_t>& from,
                           std::mt19937_64& stream) {
    std::vector<std::string_view> ids;
    for (const std::size_t i : from) {
      const std::string_view id = on.effects().suspects()[i].entry->id;
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    }
    const std::string_view id = ids[uniform_below(stream, ids.size())];
    std::vector<std::size_t> variants;
    for (const std::size_t i : from) {
      if (on.effects().suspects()[i].entry->id == id) variants.push_back(i);
    }
    return variants[uniform_below(stream, variants.size())];
  }
};

/// One draw: a case, the error that a run of it has, and what chance is drawn from.
struct Trial {
  Trial(const Case& drawn, bool has_healthy, std::uint64_t seed, const char* name)
      : on{drawn},
        errors{drawn.errors(has_healthy)},
        noise{noise_of(drawn.points(), errors)},
        stream{random_stream(seed, name)} {}

  Explanation explained(const std::vector<double>& effect) {
    return explain(measured(effect, noise, errors, stream), on.effects(), errors);
  }

  const Case& on;
  ErrorModel errors;
  Gaussian noise;
  std::mt19937_64 stream;
};

TEST_F(Injected, HealthyMachines) {
  for (const bool has_healthy : {true, false}) {
    Counts counts;
    for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
      Trial trial(*cases()[seed % cases().size()], has_healthy, seed, "healthy");
      const Explanation made = trial.explained(std::vector<double>(trial.on.points().size(), 0.0));
      ++counts.all;
      counts.healthy += made.verdict == Explained::kNotSlower ? 1U : 0U;
    }
    counts.print(has_healthy ? "healthy, with a healthy run" : "healthy, without");
    EXPECT_GE(static_cast<double>(counts.healthy), 0.95 * static_cast<double>(counts.all));
  }
}

TEST_F(Injected, SingleFaults) {
  for (const bool has_healthy : {true, false}) {
    Counts counts;
    for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
      Trial trial(*cases()[seed % cases().size()], has_healthy, seed, "single");
      const Case& on = trial.on;
      const std::size_t fault =
          drawn(on, visible(on, trial.noise, trial.errors.effect), trial.stream);
      const std::vector<double> effect = on.effect(fault);
      const Explanation made = trial.explained(effect);
      count(made, on.effects(), {fault},
            is_told(effect, on, trial.noise, trial.errors.effect, fault), counts);
    }
    counts.print(has_healthy ? "single, with a healthy run" : "single, without");
    const auto all = static_cast<double>(counts.all);
    // Drawn alike often, though explain takes published causes to be likelier.
    EXPECT_GE(static_cast<double>(counts.alike), 0.9 * all);
    EXPECT_GE(static_cast<double>(counts.told_leads), 0.92 * static_cast<double>(counts.told));
    EXPECT_GE(counts.told, 1U);
    EXPECT_LE(counts.group, 5 * all);
  }
}

TEST_F(Injected, DoubleFaults) {
  const std::uint64_t pairs = setting("WEFT_EXPLAIN_PAIRS", 150);
  const std::uint64_t first = setting("WEFT_EXPLAIN_FIRST_PAIR", 0);
  Counts counts;
  for (std::uint64_t seed = first; seed < first + pairs; ++seed) {
    Trial trial(*cases()[seed % cases().size()], true, seed, "double");
    const Case& on = trial.on;
    const std::vector<std::size_t> from = visible(on, trial.noise, trial.errors.effect);
    const std::size_t a = drawn(on, from, trial.stream);
    const std::size_t b = drawn(on, from, trial.stream);
    if (on.effects().suspects()[a].entry->id == on.effects().suspects()[b].entry->id) continue;
    const std::vector<double> effect = on.effect(Together{std::min(a, b), std::max(a, b)});
    if (effect.empty()) continue;
    const Explanation made = trial.explained(effect);
    count(made, on.effects(), {a, b},
          is_told(effect, on, trial.noise, trial.errors.effect, a, b, from), counts);
  }
  counts.print("double, with a healthy run");
  EXPECT_GE(2 * counts.all, pairs);  // others are one cause, or are refused
  EXPECT_GE(static_cast<double>(counts.alike), 0.15 * static_cast<double>(counts.all));
  if (counts.told >= 5) {  // of fewer a share says little
    EXPECT_GE(static_cast<double>(counts.told_leads), 0.6 * static_cast<double>(counts.told));
  }
}

}  // namespace
}  // namespace weft::test::explain_injected
