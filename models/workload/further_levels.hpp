#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/workload/replicas.hpp"
#include "models/workload/task_graph.hpp"

namespace weft {

/// A step whose replicas meet on NCCL's trees (Tree, NVLSTree), of more nodes than
/// Sample::kMostWhole. A tree's nodes are all unlike, so no few replicas stand for all. But each
/// further level of a tree adds its hops to a call, and nothing else (see Sample). A step does not
/// grow so, as it is the longest of what overlaps. So the step runs on few replicas, whose trees
/// have 16 nodes or more, with what NCCL decides for the cluster, and each call on trees then holds
/// its queue for as long as it takes longer in the cluster, alone, or behind another one (which
/// hides some of it). On up to eight times as many nodes these calls run, alone and two behind each
/// other; beyond, each level adds a third of what those three add.
/// Over several switches that never block all messages between nodes take as long as between the
/// farthest. Where switches may block, few and more nodes are on smaller networks of the same kind,
/// and beyond more nodes only calls by LL and LL128 are extended, on a folded Clos whose links
/// trees do not fill: there a level adds its hops alone, too. Where a hash draws routes (ECMP), it
/// does so anew for few and more nodes; there calls on rings are held likewise, and none is
/// extended beyond more nodes. An extension, not exact.
class FurtherLevels {
 public:
  /// nullptr: there are no more nodes or replicas than that, nodes are not alike, uplinks are down,
  /// data does not go by GPUDirect RDMA, the replicas do not begin at the same GPU of a node, their
  /// groups run on neither trees like the cluster's nor rings of which few ranks stand for all, or
  /// beyond more nodes a level is not known to add as much. Where switches may block, also if what
  /// replicas send among their own nodes is of other groups than stages, or of stages that are held
  /// up otherwise than in the cluster; where a hash draws routes, if they send any. All references
  /// must outlive it.
  static std::unique_ptr<FurtherLevels> of(const StepSpec& step, const Machine& cluster,
                                           const PartLibrary& parts,
                                           CommunicatorDecisions& decisions, MemoryPath path);

  /// Those that run the step.
  Replicas& replicas() const { return *few_.replicas; }
  /// What of their network is not the cluster's; "": nothing but its size.
  std::string other_network() const;
  /// What calls of replicas that are extended run on.
  std::string_view calls_on() const { return are_rings_drawn() ? "trees or rings" : "trees"; }
  /// Their tasks, as if trees had no further levels.
  const TaskGraph& graph() const { return few_.graph; }

  struct Extended {
    TaskGraph graph;  ///< graph(), with what further levels take (Exchange)
    /// Of the call to which they add most: from the nodes it ran on, but the cluster's itself.
    ResultRow::Extended longest{};
  };
  /// About how long extended() takes on one core, in seconds, by its call of most transfers. Throws
  /// what PreparedGraph does.
  double seconds(const PredictOptions& options) const;
  /// Runs each kind of call by itself, two behind each other. Throws what PreparedGraph does.
  Extended extended(const PredictOptions& options) const;

 private:
  /// A step on some of the nodes.
  struct Part {
    std::unique_ptr<Replicas> replicas;
    TaskGraph graph;
  };
  /// What groups of one name call at once.
  struct Call {
    std::string group;
    Op op;
    Bytes bytes;
    friend auto operator<=>(const Call&, const Call&) = default;
  };
  /// How it runs (algorithm, protocol, channels), which may differ with the GPUs' places in their
  /// nodes.
  using Runs = std::tuple<Algorithm, std::string_view, std::uint32_t>;
  /// How many nodes a call's groups have.
  struct Nodes {
    std::uint32_t few;
    std::uint32_t more;
    std::uint32_t cluster;
  };

  FurtherLevels(Part few, Part of_few, Part of_more, CommunicatorDecisions& decisions,
                MemoryPath path, const Machine& cluster)
      : few_{std::move(few)},
        of_few_{std::move(of_few)},
        of_more_{std::move(of_more)},
        decisions_{decisions},
        path_{path},
        cluster_{cluster} {}
  static Call call_of(const TaskGraph& graph, const Exchange& exchange) {
    return {graph.groups[exchange.group].name, exchange.op, exchange.bytes};
  }
  static Runs runs_of(const Choice& choice) {
    return {choice.algorithm, choice.protocol, choice.channels};
  }
  Choice choice_of(const Part& part, const Exchange& exchange) const;
  bool find_calls();
  bool are_rings_drawn() const { return !cluster_.network_spreads(); }
  static TaskGraph graph_of(const Part& part, const Call& call);
  /// From a common start, and from the end of the one before it.
  struct Takes {
    Duration alone;
    Duration behind;
  };
  std::map<Runs, Takes> takes(const Part& part, const Call& call,
                              const PredictOptions& options) const;

  Part few_;
  Part of_few_;                       // one stage of it, for calls by themselves
  Part of_more_;                      // likewise, with up to eight times as many replicas
  CommunicatorDecisions& decisions_;  // the cluster's
  MemoryPath path_;
  const Machine& cluster_;
  std::map<Call, Nodes> calls_;
};

}  // namespace weft
