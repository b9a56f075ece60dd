#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/base/stop.hpp"
#include "sim/plan/equitable.hpp"
#include "sim/plan/footprint.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// A plan, and what it shares of a machine, as a graph whose equitable partitions tell what does
/// the same: see fold(). Nodes of one kind stand together: programs, actors, flags, queue pairs,
/// joins; then, as they are met, paths (what walks and messages take) and servers; then blocks.
class PlanGraph {
 public:
  /// Both must outlive it. `sides`: ascending; actors from there on are held apart from those
  /// before. Throws Stopped soon after `stop` asks for it.
  PlanGraph(const Plan& plan, const Footprints& footprints,
            const std::vector<ActorIndex>& sides = {}, const Stop* stop = nullptr);

  const LabelledGraph& graph() const { return graph_; }
  std::uint32_t program_node(std::uint32_t p) const { return p; }
  std::uint32_t actor_node(ActorIndex a) const {
    return static_cast<std::uint32_t>(plan_.programs.size()) + a;
  }
  std::uint32_t flag_node(FlagIndex f) const {
    return actor_node(static_cast<ActorIndex>(plan_.actors.size())) + f;
  }
  std::uint32_t queue_pair_node(QueuePairIndex q) const {
    return flag_node(static_cast<FlagIndex>(plan_.flags.size())) + q;
  }
  std::uint32_t join_node(std::size_t j) const {
    return queue_pair_node(static_cast<QueuePairIndex>(plan_.queue_pairs.size())) +
           static_cast<std::uint32_t>(j);
  }
  /// By server; kNoIndex: nothing uses it.
  const std::vector<std::uint32_t>& server_nodes() const { return server_nodes_; }

  /// How many flags a context has, at most.
  std::uint32_t flags_of_context() const { return flags_of_context_; }
  /// Whether the tag that an instruction gives is a queue pair that somebody asks for.
  bool names_queue_pair(const Instruction& i) const;

  /// Tells apart the members of a class that one node takes one after another; whether there were
  /// any.
  bool split_rivals(const Partition& partition);

 private:
  void reserve();
  std::uint32_t count_context() const;
  void add_nodes(const std::vector<ActorIndex>& sides);
  std::uint32_t server_node(std::uint32_t server);
  std::uint64_t lag_digest(LagIndex lag) const { return lag == kNoIndex ? 0 : lag_digests_[lag]; }
  std::uint64_t second_lag_digest(const Instruction& i) const;
  std::vector<bool> flags_with_queue_pairs() const;
  void add_single(std::uint32_t from, std::uint32_t to, std::uint64_t with);
  void add_program(std::uint32_t p);
  void add_instruction(std::uint32_t node, const Program& program, const Instruction& i,
                       std::uint64_t place);
  void add_move(std::uint32_t node, WalkIndex walk, std::uint32_t mover, std::uint64_t place);
  /// What a walk, or messages of queue pairs between the same ends, take of servers that are not
  /// the mover's own: a node; and the rest of its footprint.
  struct Path {
    std::uint32_t node{kNoIndex};
    std::vector<Footprint::Own> own;
    std::vector<std::uint32_t> in_turn;
  };
  /// Of a server: a path's node, the server's, the weight of a byte.
  struct PathUse {
    std::uint32_t path;
    std::uint32_t server;
    double weight;
  };
  Path path(Footprint footprint);
  const Path& path_of(const QueuePair& q);
  void add_queue_pair(QueuePairIndex index);
  void add_join(std::size_t index);
  void add_actors();
  void add_paths();

  const Plan& plan_;
  const Footprints& footprints_;
  const Stop* stop_;
  std::vector<std::uint64_t> lag_digests_;
  LabelledGraph graph_;
  std::vector<bool> is_single_;  // by label
  std::vector<std::uint32_t> server_nodes_;
  std::vector<std::uint32_t> servers_of_flags_;  // programs
  std::vector<bool> by_queue_pair_;              // by flag
  std::uint32_t flags_of_context_;
  std::vector<std::uint32_t> programs_of_;                      // by actor: how many so far
  std::vector<PathUse> path_uses_;                              // path by path
  std::vector<Path> of_walks_;                                  // as they are met
  std::unordered_map<std::uint64_t, Path> of_queue_pairs_;      // by what they carry between what
  std::vector<std::pair<std::uint32_t, QueuePairIndex>> tags_;  // that programs serve
};

/// Whether an instruction next to another of its kind may as well come before it.
bool commutes(Instruction::Kind kind);

/// Where the run of instructions begins in which each stands that may as well come before or after
/// the others: one kind, one after another, within one loop.
std::vector<std::size_t> run_begins(const std::vector<Instruction>& code);

}  // namespace weft
