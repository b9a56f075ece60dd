#include "sim/input/step.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"

namespace weft {
namespace {

constexpr std::int64_t kMostDegree = 1 << 20;
constexpr std::string_view kSize = "size";
constexpr std::string_view kTime = "time";
constexpr std::array<std::pair<std::string_view, Sharding>, 3> kShardings{
    {{"none", Sharding::kNone}, {"optimizer", Sharding::kOptimizer}, {"full", Sharding::kFull}}};
constexpr auto kShardingWords = words_of(kShardings);
constexpr std::array<std::string_view, 3> kOverlaps{"gradients", "parameters", "stages"};

constexpr std::array kStepKeys{
    KeySpec{"layers", "whole number", kRequired, "of the model, all alike", {}, 1, 100'000},
    KeySpec{"micro_batches", "whole number", "1", "of each pipeline in a step", {}, 1, 100'000},
    KeySpec{"compute", "map", kRequired, "how long a GPU computes, as measured or estimated"},
    KeySpec{"bytes", "map", "none", "what is exchanged, of the whole model"},
    KeySpec{"parallel", "map", kRequired,
            "over how many GPUs the model is split; the product is the number of GPUs"},
    KeySpec{"order", "list of", "[tensor, context, expert, data, pipeline]",
            "how ranks are numbered: the first changes from one rank to the next", kParallelNames},
    KeySpec{"sequence", "true or false", "false",
            "between tensor-parallel parts activations are split along the sequence: all-gather "
            "and reduce-scatter in place of all-reduce"},
    KeySpec{"sharding", "one of", "none",
            "none: gradients are all-reduced; optimizer: reduce-scattered, and parameters "
            "gathered once a step; full: parameters are gathered before each use",
            kShardingWords},
    KeySpec{"bucket",
            "whole number",
            "1",
            "layers whose gradients, or parameters, go in one collective",
            {},
            1,
            100'000},
    KeySpec{"overlap", "list of", "none",
            "what runs beside compute: gradients; parameters; what pipeline stages send",
            kOverlaps}};
constexpr std::array kComputeKeys{
    KeySpec{"forward", kTime, kRequired, "of a layer and micro-batch, on one GPU with its part"},
    KeySpec{"backward", kTime, kRequired, "likewise"},
    KeySpec{"optimizer", kTime, "0 ns", "at the end, when all gradients are there"},
    KeySpec{"attention", "fraction", "0.5",
            "of a layer's compute, what stands before its feed-forward part (assumed)"}};
constexpr std::array kByteKeys{
    KeySpec{"activations", kSize, "none; needed with tensor or pipeline",
            "between two layers, of a micro-batch: tokens x hidden size x bytes a number"},
    KeySpec{"gradients", kSize, "none; needed with data", "of a layer, without experts"},
    KeySpec{"parameters", kSize, "none; needed where they are gathered",
            "of a layer, without experts"},
    KeySpec{"keys_values", kSize, "none; needed with context",
            "of a layer and micro-batch: keys and values of all its tokens"},
    KeySpec{"dispatched", kSize, "none; needed with expert",
            "of a layer and micro-batch: what all tokens send to experts, each to its top k"},
    KeySpec{"expert_gradients", kSize, "none; needed with expert and data or context",
            "of a layer, all experts; may be 0 B"},
    KeySpec{"expert_parameters", kSize, "none; likewise, where they are gathered",
            "of a layer, all experts; may be 0 B"}};
constexpr std::array kParallelKeys{
    KeySpec{
        "tensor", "whole number", "1", "GPUs that share each layer's matrices", {}, 1, kMostDegree},
    KeySpec{"context", "whole number", "1", "GPUs that share each sequence", {}, 1, kMostDegree},
    KeySpec{"expert",
            "whole number",
            "1",
            "GPUs that share a layer's experts; each has tokens of its own",
            {},
            1,
            kMostDegree},
    KeySpec{"data",
            "whole number, or rest",
            "1",
            "copies of the model, each with micro-batches of its own; rest: as many as the machine "
            "has GPUs for",
            {},
            1,
            kMostDegree},
    KeySpec{"pipeline",
            "whole number",
            "1",
            "stages of as many layers each; 1F1B",
            {},
            1,
            kMostDegree}};

Duration read_time(const Yaml& yaml) {
  constexpr double kMost = 1e13;  // 10,000 s
  const double ns = yaml.quantity(Unit::kNanoseconds);
  if (!(ns >= 0 && ns <= kMost)) {
    yaml.fail("'" + yaml.text() + "' is out of range; allowed: 0 ns to 10,000 s");
  }
  return Duration::from_ns(ns);
}

Bytes read_bytes(const Yaml& yaml, Bytes least) {
  constexpr Bytes kMost{1LL << 42};
  const Bytes size = yaml.size();
  if (size < least || size > kMost) {
    yaml.fail("'" + yaml.text() + "' is out of range; allowed: " + format_size(least) + " to " +
              format_size(kMost));
  }
  return size;
}

bool read_bool(const Yaml& yaml) {
  if (yaml.text() == "true") return true;
  if (yaml.text() != "false") yaml.fail("'" + yaml.text() + "': write true or false");
  return false;
}

void read_compute(const Yaml& yaml, StepSpec& step) {
  check_keys(yaml, kComputeKeys);
  step.forward = read_time(yaml.require("forward"));
  step.backward = read_time(yaml.require("backward"));
  if (const Yaml* time = yaml.find("optimizer")) step.optimizer = read_time(*time);
  if (const Yaml* share = yaml.find("attention")) {
    step.attention = share->quantity(Unit::kFraction);
    if (!(step.attention >= 0 && step.attention <= 1)) {
      share->fail("'" + share->text() + "' is out of range; allowed: 0 to 1");
    }
  }
}

void read_bytes_of(const Yaml& yaml, StepSpec& step) {
  check_keys(yaml, kByteKeys);
  const std::array<std::pair<std::string_view, Bytes*>, 7> places{
      {{"activations", &step.activations},
       {"gradients", &step.gradients},
       {"parameters", &step.parameters},
       {"keys_values", &step.keys_values},
       {"dispatched", &step.dispatched},
       {"expert_gradients", &step.expert_gradients},
       {"expert_parameters", &step.expert_parameters}}};
  for (const auto& [name, bytes] : places) {
    const Bytes least{name.starts_with("expert_") ? 0 : 1};  // no experts' may be said
    if (const Yaml* size = yaml.find(name)) *bytes = read_bytes(*size, least);
  }
}

void read_order(const Yaml& yaml, StepSpec& step) {
  const std::vector<Yaml>& items = yaml.items();
  std::vector<Parallel> order;
  for (const Yaml& item : items) {
    const auto at = std::find(kParallelNames.begin(), kParallelNames.end(), item.text());
    if (at == kParallelNames.end()) {
      item.fail("'" + item.text() + "' is unknown; known: " +
                known_names({kParallelNames.begin(), kParallelNames.end()}));
    }
    const auto parallel = static_cast<Parallel>(at - kParallelNames.begin());
    if (std::find(order.begin(), order.end(), parallel) != order.end()) {
      item.fail("'" + item.text() + "' is given twice");
    }
    order.push_back(parallel);
  }
  if (order.size() != kParallelNames.size()) {
    yaml.fail("name all of " + known_names({kParallelNames.begin(), kParallelNames.end()}));
  }
  std::copy(order.begin(), order.end(), step.order.begin());
}

void read_overlap(const Yaml& yaml, StepSpec& step) {
  for (const Yaml& item : yaml.items()) {
    if (item.text() == "gradients") {
      step.overlaps_gradients = true;
    } else if (item.text() == "parameters") {
      step.overlaps_parameters = true;
    } else if (item.text() == "stages") {
      step.overlaps_stages = true;
    } else {
      item.fail("'" + item.text() +
                "' is unknown; known: " + known_names({kOverlaps.begin(), kOverlaps.end()}));
    }
  }
}

/// Keys without effect, and what must be said of bytes for what is split.
void check_use(const Yaml& yaml, const StepSpec& step) {
  const auto splits = [&](std::initializer_list<Parallel> all) {
    return std::any_of(all.begin(), all.end(), [&](Parallel p) { return step.degree(p) > 1; });
  };
  const auto only_with = [](bool is_used, const Yaml* at, const std::string& why) {
    if (!is_used && at != nullptr) at->fail("goes with " + why + " only");
  };
  const bool has_copies = splits({Parallel::kData, Parallel::kContext, Parallel::kExpert});
  const bool is_sharded = step.sharding != Sharding::kNone;
  const std::string copies = "data, context or expert above 1";
  only_with(splits({Parallel::kTensor}) || !step.sequence, yaml.find("sequence"), "tensor above 1");
  only_with(has_copies || !is_sharded, yaml.find("sharding"), copies);
  only_with(has_copies, yaml.find("bucket"), copies);
  const Yaml* const overlap = yaml.find("overlap");
  only_with(has_copies || !step.overlaps_gradients, overlap, copies + ": gradients");
  only_with(is_sharded || !step.overlaps_parameters, overlap, "sharding: parameters");
  only_with(splits({Parallel::kPipeline}) || !step.overlaps_stages, overlap,
            "pipeline above 1: stages");

  const Yaml* const bytes = yaml.find("bytes");
  const auto check = [&](std::string_view key, bool is_used, bool is_needed,
                         const std::string& why) {
    const Yaml* const at = bytes == nullptr ? nullptr : bytes->find(key);
    only_with(is_used, at, why);
    if (is_needed && at == nullptr) {
      yaml.fail("bytes." + std::string(key) + " is missing; it is needed with " + why);
    }
  };
  const auto goes_with = [&](std::string_view key, bool is_used, const std::string& why) {
    check(key, is_used, is_used, why);
  };
  goes_with("activations", splits({Parallel::kTensor, Parallel::kPipeline}),
            "tensor or pipeline above 1");
  goes_with("keys_values", splits({Parallel::kContext}), "context above 1");
  goes_with("dispatched", splits({Parallel::kExpert}), "expert above 1");
  goes_with("gradients", has_copies, copies);
  goes_with("parameters", is_sharded, "sharding");
  const bool has_experts = splits({Parallel::kExpert});
  const bool copies_experts = splits({Parallel::kData, Parallel::kContext});
  check("expert_gradients", copies_experts, copies_experts && has_experts,
        "data or context above 1");
  check("expert_parameters", copies_experts && is_sharded,
        copies_experts && is_sharded && has_experts, "sharding, and data or context above 1");
}

}  // namespace

std::uint64_t StepSpec::ranks() const {
  std::uint64_t product = 1;
  for (const std::uint32_t degree : degrees) product *= degree;
  return product;
}

StepSpec StepSpec::on(std::uint64_t gpus) const {
  StepSpec out = *this;
  if (!data_is_rest) return out;
  const std::uint64_t of_a_copy = ranks() / degree(Parallel::kData);
  if (gpus == 0 || gpus % of_a_copy != 0) {
    throw InputError(place, fmt::format("data: rest: {} GPUs are no multiple of the {} that a copy "
                                        "of the model is split over",
                                        gpus, of_a_copy));
  }
  out.degrees[static_cast<std::size_t>(Parallel::kData)] =
      static_cast<std::uint32_t>(gpus / of_a_copy);
  return out;
}

StepSpec read_step(const Yaml& yaml) {
  check_keys(yaml, kStepKeys);
  const auto whole = [&](std::string_view name, std::uint32_t fallback) {
    const Yaml* at = yaml.find(name);
    return at == nullptr ? fallback
                         : static_cast<std::uint32_t>(read_integer(*at, key_of(kStepKeys, name)));
  };
  StepSpec step;
  step.place = yaml.place();
  step.layers = whole("layers", 1);
  step.micro_batches = whole("micro_batches", 1);
  step.bucket = whole("bucket", 1);
  read_compute(yaml.require("compute"), step);
  if (const Yaml* bytes = yaml.find("bytes")) read_bytes_of(*bytes, step);
  const Yaml& parallel = yaml.require("parallel");
  check_keys(parallel, kParallelKeys);
  std::uint64_t product = 1;
  for (std::size_t p = 0; p < kParallelNames.size(); ++p) {
    const Yaml* degree = parallel.find(kParallelNames[p]);
    if (degree == nullptr) continue;
    if (static_cast<Parallel>(p) == Parallel::kData && degree->text() == "rest") {
      step.data_is_rest = true;
      step.degrees[p] = 2;
      continue;
    }
    step.degrees[p] =
        static_cast<std::uint32_t>(read_integer(*degree, key_of(kParallelKeys, kParallelNames[p])));
    product *= step.degrees[p];
    if (product > kMostDegree) parallel.fail("more than 1048576 GPUs");
  }
  if (const Yaml* order = yaml.find("order")) read_order(*order, step);
  if (const Yaml* sequence = yaml.find("sequence")) step.sequence = read_bool(*sequence);
  if (const Yaml* sharding = yaml.find("sharding")) {
    const auto at = std::find_if(kShardings.begin(), kShardings.end(),
                                 [&](const auto& s) { return s.first == sharding->text(); });
    if (at == kShardings.end()) {
      sharding->fail("'" + sharding->text() + "' is unknown; known: " +
                     known_names({kShardingWords.begin(), kShardingWords.end()}));
    }
    step.sharding = at->second;
  }
  if (const Yaml* overlap = yaml.find("overlap")) read_overlap(*overlap, step);
  if (step.layers % step.degree(Parallel::kPipeline) != 0) {
    yaml.require("layers").fail(
        "is no multiple of pipeline: stages of unlike numbers of layers are not modelled");
  }
  check_use(yaml, step);
  return step;
}

std::vector<FormatSection> step_format() {
  return {
      {"workload.step", "A training step, for `weft step`.", {kStepKeys.begin(), kStepKeys.end()}},
      {"workload.step.compute", "Given times.", {kComputeKeys.begin(), kComputeKeys.end()}},
      {"workload.step.bytes", "", {kByteKeys.begin(), kByteKeys.end()}},
      {"workload.step.parallel",
       "How the model is split.",
       {kParallelKeys.begin(), kParallelKeys.end()}}};
}

}  // namespace weft
