#include "models/nccl/execute/nvls_plan.hpp"

#include <algorithm>

#include "models/gpu/sm_copy.hpp"

namespace weft {
namespace {

constexpr std::uint32_t kWarps = 20;  ///< of a block: NCCL_MAX_NTHREADS / 32

/// Threads that copy in a group of so many warps. One that sends keeps a warp for flags, if it has
/// three (NCCL src/device/prims_simple.h).
std::uint32_t threads_of(std::uint32_t warps, bool sends) {
  return kWarp * (sends && warps >= 3 ? warps - 1 : warps);
}

/// Warps of a rank's groups. What is left goes to scatter and gather, half each.
struct Groups {
  std::uint32_t scatter;
  std::uint32_t gather;
  std::uint32_t reduce;
  std::uint32_t broadcast;
};
/// More than `kFew` ranks saturate the links with fewer warps.
constexpr std::uint32_t kFew = 6;
Groups groups_of(Op op, std::uint32_t ranks, bool has_parent) {
  if (op == Op::kAllGather) return {.scatter = 0, .gather = 16, .reduce = 0, .broadcast = 4};
  const std::uint32_t reduce = has_parent || ranks > kFew ? 5 : 7;
  if (op == Op::kReduceScatter) {
    return {.scatter = kWarps - reduce, .gather = 0, .reduce = reduce, .broadcast = 0};
  }
  const std::uint32_t broadcast = has_parent ? 4 : 0;
  const std::uint32_t left = kWarps - reduce - broadcast;
  return {.scatter = (left + 1) / 2, .gather = left / 2, .reduce = reduce, .broadcast = broadcast};
}

/// One channel: its FIFOs, then a rank's groups.
class NvlsChannel {
 public:
  NvlsChannel(PlanBuilder& builder, const Protocol& protocol, const NvlsHeads& nvls, Op op,
              std::uint32_t number, Bytes bytes)
      : builder_{builder},
        protocol_{protocol},
        nvls_{nvls},
        op_{op},
        number_{number},
        bytes_{bytes},
        to_parent_(builder.ranks()) {}

  void add() {
    if (!nvls_.trees.empty()) connect_trees();
    for (const std::vector<std::uint32_t>& ranks : builder_.communicator().ranks_by_node()) {
      add_node(ranks);
    }
  }

 private:
  struct Edge {
    ConnectionIndex up;
    ConnectionIndex down;
  };

  bool has_parent(std::uint32_t rank) const {
    return !nvls_.trees.empty() && tree()[rank].up != TreeRank::kNone;
  }
  const Tree& tree() const { return nvls_.trees[number_ % nvls_.trees.size()]; }

  void connect_trees() {
    const auto end_of = [&](std::uint32_t rank) {
      Endpoint end{rank, tree()[rank].nic};
      if (tree()[rank].proxy != TreeRank::kNone) end.proxy = tree()[rank].proxy;
      return end;
    };
    for (std::uint32_t r = 0; r < builder_.ranks(); ++r) {
      if (!has_parent(r)) continue;
      const std::uint32_t parent = tree()[r].up;
      to_parent_[r] = {builder_.connect(protocol_, end_of(r), end_of(parent), number_),
                       builder_.connect(protocol_, end_of(parent), end_of(r), number_)};
    }
  }

  void add_node(const std::vector<std::uint32_t>& ranks) {
    std::vector<std::uint32_t> heads;
    for (const std::uint32_t place : nvls_.places) {
      heads.push_back(builder_.rank_at(builder_.communicator().node(ranks.front()), place));
    }
    const SwitchFifos fifos = builder_.connect_switch(protocol_, heads, ranks);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const Groups groups = groups_of(op_, builder_.ranks(), has_parent(ranks[i]));
      add_own(ranks[i], groups, fifos.scatter[i], fifos.gather[i]);
      for (std::size_t h = 0; h < heads.size(); ++h) {
        if (heads[h] == ranks[i]) add_head(heads[h], h, groups, fifos);
      }
    }
  }

  /// Scatter and gather.
  void add_own(std::uint32_t rank, const Groups& groups, ConnectionIndex out, ConnectionIndex in) {
    const std::size_t heads = nvls_.places.size();
    if (groups.scatter > 0) {
      builder_.add_block(protocol_, rank, number_, threads_of(groups.scatter, true));
      loops([&](Bytes all, Bytes) { builder_.scatter(protocol_, all, out, heads); });
    }
    if (groups.gather > 0) {
      builder_.add_block(protocol_, rank, number_, threads_of(groups.gather, false));
      loops([&](Bytes all, Bytes) { builder_.gather(protocol_, all, in, heads); });
    }
  }

  /// Reduce and broadcast of head `h`.
  void add_head(std::uint32_t rank, std::size_t h, const Groups& groups, const SwitchFifos& fifos) {
    const auto each = [&](auto&& body) {
      loops([&](Bytes all, Bytes chunk) {
        const Bytes before = chunk * static_cast<std::int64_t>(h);
        body(std::clamp(all - before, Bytes{0}, chunk));
      });
    };
    const auto block = [&](std::uint32_t warps, bool sends) {
      builder_.add_block(protocol_, rank, number_, threads_of(warps, sends));
    };
    if (op_ == Op::kAllGather) {
      block(groups.broadcast, true);
      return each([&](Bytes part) { builder_.send(protocol_, part, {fifos.broadcast[h]}); });
    }
    if (op_ == Op::kReduceScatter) {
      block(groups.reduce, false);
      return each([&](Bytes part) { builder_.recv(protocol_, part, {fifos.reduce[h]}); });
    }
    ConnectionList up{fifos.reduce[h]};
    ConnectionList down{fifos.broadcast[h]};
    if (!nvls_.trees.empty()) {
      for (const std::uint32_t child : tree()[rank].down) {
        if (child == TreeRank::kNone) continue;
        up.push_back(to_parent_[child].up);
        down.push_back(to_parent_[child].down);
      }
    }
    block(groups.reduce, true);
    if (!has_parent(rank)) {
      return each([&](Bytes part) { builder_.recv_send(protocol_, part, up, down); });
    }
    each([&](Bytes part) { builder_.recv_send(protocol_, part, up, {to_parent_[rank].up}); });
    block(groups.broadcast, true);
    each([&](Bytes part) { builder_.recv_send(protocol_, part, {to_parent_[rank].down}, down); });
  }

  /// `body(all, chunk)` for each loop: what all heads' chunks are together, and one. The last loop
  /// of an all-reduce deals out what is left, aligned; its last heads may have less.
  template <class Body>
  void loops(Body&& body) {
    const auto heads = static_cast<std::int64_t>(nvls_.places.size());
    if (op_ != Op::kAllReduce) {  // bytes_: of each rank, a head
      return builder_.in_parts(bytes_, protocol_.chunk,
                               [&](Bytes part) { body(part * heads, part); });
    }
    const Bytes align{nvls_.trees.empty() ? 16'384 : 16};
    const Bytes loop = protocol_.chunk * heads;
    builder_.in_parts(bytes_, loop, [&](Bytes part) {
      if (part == loop) return body(part, protocol_.chunk);
      body(part, align * pieces(Bytes{pieces(part, Bytes{heads})}, align));
    });
  }

  PlanBuilder& builder_;
  const Protocol& protocol_;
  const NvlsHeads& nvls_;
  Op op_;
  std::uint32_t number_;
  Bytes bytes_;
  std::vector<Edge> to_parent_;  // by rank
};

}  // namespace

Protocol make_nvls_protocol(const DeviceParams& devices, const Communicator& communicator,
                            const Schedule& schedule, const Choice& choice, Bytes bytes) {
  Protocol protocol = make_protocol(devices.params(), "Simple", KernelShape::kTree,
                                    ranks_of(schedule, communicator));
  const auto concurrent =
      static_cast<std::int64_t>(choice.channels) * std::ssize(schedule.nvls.places);
  Bytes& chunk = protocol.chunk;
  const Bytes most = devices.params().bytes("nccl.nvls_chunk");
  /// Below `times` chunks for each head and channel no more than `less`.
  const auto at_most = [&](std::int64_t times, Bytes less) {
    if (bytes < chunk * (times * concurrent)) chunk = std::min(chunk, less);
  };
  if (choice.algorithm == Algorithm::kNvls) {
    chunk = std::min(chunk, most);
    at_most(64, Bytes::kib(64));
    at_most(8, Bytes::kib(32));
    at_most(2, Bytes::kib(16));
    return protocol;
  }
  chunk = nodes_of(schedule, communicator) >= 4 ? std::min(most, Bytes::kib(64)) : most;
  at_most(32, Bytes::kib(256));
  at_most(16, Bytes::kib(128));
  at_most(4, Bytes::kib(64));
  at_most(1, Bytes::kib(32));
  return protocol;
}

Plan nvls_plan(const DeviceParams& devices, const Communicator& communicator,
               const Schedule& schedule, Op op, Bytes bytes, const Choice& choice,
               const Stop* stop) {
  PlanBuilder builder(devices, communicator, schedule, op, bytes, choice, stop);
  const Protocol protocol = make_nvls_protocol(devices, communicator, schedule, choice, bytes);
  const std::int64_t parts = op == Op::kAllReduce ? 1 : builder.ranks();
  const Bytes per_channel{pieces(bytes, Bytes{parts * choice.channels})};
  for (std::uint32_t c = 0; c < choice.channels; ++c) {
    NvlsChannel(builder, protocol, schedule.nvls, op, c, per_channel).add();
  }
  return std::move(builder).take(protocol);
}

}  // namespace weft
