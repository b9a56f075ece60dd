#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "models/explain/explain.hpp"
#include "models/registry/registry.hpp"
#include "sim/input/topology_file.hpp"

namespace weft::test {

inline std::string in_project(const std::string& path) {
  return std::string(WEFT_SOURCE_DIR) + "/" + path;
}

/// Sets a suspect's weight; 0: it is left out.
using Weigh = std::function<void(Suspect&)>;

/// A machine, its catalogue and what its causes do at some sizes.
class Case {
 public:
  Case(TopologySpec spec, std::uint32_t nodes, std::vector<Point> points,
       std::vector<ScenarioSetting> set = {}, std::map<std::string, std::string> env = {},
       const std::vector<std::string>& only = {}, const Weigh& weigh = {})
      : points_{std::move(points)}, parts_{catalog_}, context_{catalog_, parts_, {}, nodes} {
    healthy_.spec = std::move(spec);
    healthy_.set = std::move(set);
    healthy_.env = std::move(env);
    std::vector<Suspect> suspects = suspects_of(entries_, Site(healthy_, context_));
    std::erase_if(suspects, [&](Suspect& suspect) {
      if (weigh) weigh(suspect);
      const bool is_of =
          only.empty() || std::find(only.begin(), only.end(), suspect.entry->id) != only.end();
      return !is_of || suspect.weight == 0;
    });
    effects_ =
        std::make_unique<Effects>(healthy_, context_, points_, std::move(suspects), 0U, nullptr);
  }

  const Effects& effects() const { return *effects_; }
  /// Of some suspects, at all points; empty where the model refuses them.
  std::vector<double> effect(const Together& which) const {
    effects_->predict({which}, all());
    const CauseEffect& made = effects_->of(which);
    return made.why_not.empty() ? made.log_ratio : std::vector<double>{};
  }
  std::vector<double> effect(std::size_t suspect) const { return effect(Together{suspect}); }
  /// Makes those of all suspects, on threads.
  void prepare_all() const {
    std::vector<Together> each;
    for (std::size_t i = 0; i < effects_->suspects().size(); ++i) each.push_back({i});
    effects_->predict(each, all());
  }
  std::vector<std::size_t> all() const {
    std::vector<std::size_t> out(points_.size());
    std::iota(out.begin(), out.end(), std::size_t{0});
    return out;
  }
  const std::vector<Point>& points() const { return points_; }
  const MachineCase& healthy() const { return healthy_; }
  const CaseContext& context() const { return context_; }

  ErrorModel errors(bool has_healthy) const { return error_model(Params(catalog_), has_healthy); }
  /// The suspect of an entry, the first whose place and amount begin so.
  std::size_t suspect(std::string_view id, std::string_view how = "") const {
    for (std::size_t i = 0; i < effects_->suspects().size(); ++i) {
      const Suspect& each = effects_->suspects()[i];
      if (each.entry->id == id && each.variant.how.starts_with(how)) return i;
    }
    throw std::logic_error("no suspect " + std::string(id));
  }
  Explanation of(const std::vector<double>& gaps, bool has_healthy = true) const {
    return explain(gaps, *effects_, errors(has_healthy));
  }

 private:
  ParamCatalog catalog_{make_catalog()};
  std::vector<Point> points_;
  PartLibrary parts_;
  CaseContext context_;
  MachineCase healthy_;
  std::vector<CauseEntry> entries_{catalogue()};
  std::unique_ptr<Effects> effects_;
};

inline std::vector<Point> points_at(const std::string& op, const std::vector<std::int64_t>& sizes) {
  std::vector<Point> out;
  for (const std::int64_t bytes : sizes) out.push_back({op, "", bytes, 1, 1});
  return out;
}

/// Two GPUs and two NICs below a switch of each of two sockets.
inline constexpr const char* kSmallMachine = R"(topology: small
nodes: 2
node:
  devices:
    cpu0: {kind: cpu, part: sapphire-rapids}
    cpu1: {kind: cpu, part: sapphire-rapids}
    sw0: {kind: switch, part: pex89144, upstream: cpu0}
    sw1: {kind: switch, part: pex89144, upstream: cpu1}
    gpu0: {kind: gpu, part: h100-sxm, upstream: sw0}
    gpu1: {kind: gpu, part: h100-sxm, upstream: sw1}
    nic0: {kind: nic, part: connectx-7, upstream: sw0, network: fabric}
    nic1: {kind: nic, part: connectx-7, upstream: sw1, network: fabric}
    nvswitch: {kind: nvswitch, part: nvswitch-3}
  links:
    - {kind: socket, between: [cpu0, cpu1], count: 4}
    - {kind: nvlink, between: [gpu0, nvswitch], count: 18}
    - {kind: nvlink, between: [gpu1, nvswitch], count: 18}
network:
  fabric: {kind: one-switch, part: quantum-2}
)";

/// Whether an answer has a cause, in any of what is alike in it.
inline bool has_cause(const Answer& answer, const Effects& effects, std::string_view id) {
  for (const Combination& same : answer.same) {
    for (const std::size_t i : same.suspects) {
      if (effects.suspects()[i].entry->id == id) return true;
    }
  }
  return false;
}

}  // namespace weft::test
