#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/nccl/decide/env.hpp"
#include "models/nccl/decide/graph.hpp"
#include "models/nccl/decide/release.hpp"
#include "models/nccl/decide/tuning_constants.hpp"
#include "models/nccl/decide/tuning_env.hpp"
#include "sim/base/units.hpp"

namespace weft {

enum class TuningCpu : std::uint8_t { kIntel, kAmd, kMixed, kPower, kOther };

/// All that the tuning model knows of a communicator.
struct TuningInput {
  NcclVersion version;
  std::uint32_t nodes{1};
  std::uint32_t ranks{1};
  std::uint32_t most_local_ranks{1};  ///< of any node
  int min_compute_capability{0};      ///< 90 for sm_90
  int max_compute_capability{0};
  TuningCpu cpu{TuningCpu::kOther};
  bool x86{true};
  /// As all nodes agree on them; nullopt for a pattern that was not granted.
  NcclGraph ring;
  NcclGraph tree;
  std::optional<NcclGraph> collnet_direct;
  std::optional<NcclGraph> collnet_chain;
  std::optional<NcclGraph> nvls;
  /// Why there is no such graph; "": its search found none.
  std::string why_no_collnet;
  std::string why_no_nvls;
  bool plain_tree{false};         ///< some rank's tree graph has the plain tree pattern (3)
  bool collnet_supported{false};  ///< NCCL_COLLNET_ENABLE and a network that reduces
  bool collnet_gathers{false};    ///< ... and that gathers and scatters
  int collnet_heads{0};
  int nvswitches{0};
  int channels{1};    ///< of the communicator, once connected
  int most_dealt{0};  ///< of them, how many rings and trees may use; 0: all
  int nvls_channels{0};
  NcclEnv env;
};

/// NCCL's tuning table and what else its choice needs. All in float, as NCCL computes.
class Tuning {
 public:
  struct Cell {
    float latency_us{0};
    float bandwidth{0};  ///< algorithm bandwidth, GB/s; 0: not to be used
  };
  /// Throws InputError: NCCL_ALGO or NCCL_PROTO is not understood.
  explicit Tuning(TuningInput input);

  const TuningInput& input() const { return input_; }
  const Cell& cell(NcclOp op, NcclAlgo algo, NcclProto proto) const;
  /// The "Max NThreads" row of NCCL's table.
  int max_threads(NcclAlgo algo, NcclProto proto) const;

  /// The time that NCCL expects, us; nullopt where it would not use this.
  std::optional<float> time_us(NcclOp op, NcclAlgo algo, NcclProto proto, Bytes bytes) const;

  /// An algorithm of which no protocol may be used, and why.
  struct Excluded {
    NcclAlgo algo;
    std::vector<NcclOp> ops;  ///< for which
    bool everywhere{true};    ///< for all that NCCL has code for, and for one reason
    std::string why;
  };
  /// All that NCCL has code for in some release. Of one GPU alone none: nothing is chosen.
  std::vector<Excluded> excluded() const;

  /// An algorithm and a protocol that NCCL may take, with the time that it expects.
  struct Candidate {
    NcclAlgo algo{NcclAlgo::kRing};
    NcclProto proto{NcclProto::kSimple};
    float time_us{0};
  };
  /// How NCCL runs one collective.
  struct Choice {
    NcclAlgo algo{NcclAlgo::kRing};
    NcclProto proto{NcclProto::kSimple};
    int channels{1};  ///< that carry data
    int threads{0};   ///< of each channel's block
    float time_us{0};
    std::optional<Candidate> next{};  ///< the second fastest; nullopt: there is no other
  };
  /// The choice for a collective alone in its group, 4-byte elements, buffers not registered.
  /// `bytes` is what NCCL counts: the gathered total of an all-gather, the whole input of a
  /// reduce-scatter. nullopt: NCCL finds nothing allowed and fails. `among`: of which algorithms;
  /// empty: of all.
  std::optional<Choice> choose(NcclOp op, Bytes bytes,
                               const std::function<bool(NcclAlgo)>& among = {}) const;

 private:
  using Cells = std::array<std::array<std::array<Cell, kNcclProtos>, kNcclAlgos>, kNcclOps>;

  Cell& at(NcclOp op, NcclAlgo algo, NcclProto proto);
  int steps_of(NcclOp op) const;
  const NcclGraph* graph(NcclAlgo algo) const;
  void set_threads();
  void set_thresholds();
  void fill(NcclOp op, NcclAlgo algo, NcclProto proto);
  float bus_bandwidth(const NcclGraph& g, NcclOp op, NcclAlgo algo, NcclProto proto) const;
  float nvls_channel_bandwidth(const NcclGraph& g, NcclOp op, NcclAlgo algo) const;
  float collnet_direct_bandwidth(const NcclGraph& g, NcclOp op, float bus) const;
  float algorithm_share(NcclOp op, NcclAlgo algo) const;
  float latency(const NcclGraph& g, NcclOp op, NcclAlgo algo, NcclProto proto) const;
  float ring_latency(NcclOp op, NcclProto proto, float intra, float inter) const;
  float net_overhead(NcclProto proto) const;
  bool is_offered(NcclOp op, NcclAlgo algo, NcclProto proto) const;
  // Why not, or "":
  std::string why_not_offered(NcclOp op, NcclAlgo algo) const;
  std::string why_no_collnet() const;
  std::string why_no_graph(NcclAlgo algo) const;
  std::string why_not_available(NcclOp op, NcclAlgo algo) const;
  std::string why_not_by_network(NcclOp op, NcclAlgo algo) const;
  bool ll128_is_safe(const NcclGraph& graph) const;
  void disable();
  void disable(NcclOp op, NcclAlgo algo);
  void forgive_collnet();
  void add_backup_ring(const Cells& before);
  Choice with_channels(Choice choice, NcclOp op, std::int64_t bytes) const;
  int dealt_channels(const Choice& choice, NcclOp op, std::int64_t bytes, int most) const;

  TuningInput input_;
  NcclRelease release_;
  const TuningConstants* constants_;
  TuningPermissions permissions_;
  std::size_t generation_;  // rows of the constants
  std::size_t scale_;       // columns: 1, 2, more nodes
  Cells cells_{};
  std::array<std::array<std::string, kNcclAlgos>, kNcclOps> why_not_{};  // "" where it may be
  std::array<std::array<int, kNcclProtos>, kNcclAlgos> max_threads_{};
  std::array<std::array<std::int64_t, kNcclProtos>, kNcclAlgos> thresholds_{};
};

}  // namespace weft
