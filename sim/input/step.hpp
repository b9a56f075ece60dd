#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/io/keys.hpp"
#include "sim/io/yaml.hpp"

namespace weft {

/// How a model is split over GPUs.
enum class Parallel : std::uint8_t { kTensor, kContext, kExpert, kData, kPipeline };
inline constexpr std::array<std::string_view, 5> kParallelNames{"tensor", "context", "expert",
                                                                "data", "pipeline"};
constexpr std::string_view parallel_name(Parallel p) {
  return kParallelNames[static_cast<std::size_t>(p)];
}

/// What the ranks of a data-parallel group hold each a part of.
enum class Sharding : std::uint8_t {
  kNone,       ///< nothing: gradients are added up on all (DDP)
  kOptimizer,  ///< the optimizer's state: gradients are scattered, parameters gathered (ZeRO-1)
  kFull        ///< parameters too: gathered before each use (ZeRO-3, FSDP)
};

/// One training step of a model of equal layers, as a scenario states it. Bytes are of the whole
/// model, as if on one GPU; times are of one GPU with its part.
struct StepSpec {
  Place place;
  std::uint32_t layers{1};
  std::uint32_t micro_batches{1};
  Duration forward;         ///< of a layer and micro-batch
  Duration backward;        ///< likewise
  Duration optimizer;       ///< at the end
  double attention{0.5};    ///< of a layer's compute, what stands before its feed-forward part
  Bytes activations;        ///< between two layers, of a micro-batch
  Bytes gradients;          ///< of a layer, without its experts
  Bytes parameters;         ///< likewise
  Bytes keys_values;        ///< of a layer and micro-batch: what attention needs of other tokens
  Bytes dispatched;         ///< of a layer and micro-batch: what all tokens' experts are sent
  Bytes expert_gradients;   ///< of a layer, all its experts
  Bytes expert_parameters;  ///< likewise
  std::array<std::uint32_t, 5> degrees{1, 1, 1, 1, 1};  ///< by Parallel
  bool data_is_rest{false};  ///< its degree is as many as there are GPUs for; 2 until on()
  std::array<Parallel, 5> order{Parallel::kTensor, Parallel::kContext, Parallel::kExpert,
                                Parallel::kData, Parallel::kPipeline};
  bool sequence{false};  ///< activations are split along the sequence between tensor-parallel parts
  Sharding sharding{Sharding::kNone};
  std::uint32_t bucket{1};  ///< layers whose gradients, or parameters, go together
  // What runs beside compute.
  bool overlaps_gradients{false};
  bool overlaps_parameters{false};
  bool overlaps_stages{false};

  std::uint32_t degree(Parallel p) const { return degrees[static_cast<std::size_t>(p)]; }
  std::uint64_t ranks() const;
  /// The step on so many GPUs. Throws InputError, where data is the rest: GPUs that the other
  /// degrees do not divide.
  StepSpec on(std::uint64_t gpus) const;
};

/// Reads a scenario's `workload: {step: ...}`. Throws InputError with the place.
StepSpec read_step(const Yaml& yaml);

/// Its maps with their keys.
std::vector<FormatSection> step_format();

}  // namespace weft
