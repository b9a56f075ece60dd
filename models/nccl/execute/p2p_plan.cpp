#include "models/nccl/execute/p2p_plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <string_view>

#include "models/gpu/sm_copy.hpp"

namespace weft {
namespace {

constexpr std::uint32_t kAtOnce = 8;  // device.h: NCCL_MAX_DEV_WORK_P2P_PER_BATCH
constexpr std::uint32_t kWarps = 20;  // enqueue.cc: 640 threads a block

/// 0, 1, 3, 6, 10, ... modulo the next power of two at or above `count`: each number once; those
/// below `count`.
std::vector<std::uint32_t> quadratic_order(std::uint32_t count) {
  const std::uint32_t all = std::bit_ceil(count);
  std::vector<std::uint32_t> out;
  for (std::uint32_t round = 0, delta = 0; round < all; ++round, delta = (delta + round) % all) {
    if (delta < count) out.push_back(delta);
  }
  return out;
}

/// All rounds of the ranks of some nodes.
class Rounds {
 public:
  Rounds(std::uint32_t nodes, std::uint32_t gpus)
      : nodes_{nodes},
        gpus_{gpus},
        of_nodes_{quadratic_order(nodes)},
        of_gpus_{quadratic_order(gpus)} {}

  std::uint32_t count() const { return nodes_ * gpus_; }
  P2pRound of(std::uint32_t rank, std::uint32_t round) const {
    const std::uint32_t node = rank / gpus_;
    const std::uint32_t gpu = rank % gpus_;
    const std::uint32_t nodes_on = of_nodes_[round / gpus_];
    const std::uint32_t gpus_on = of_gpus_[round % gpus_];
    return {(node + nodes_on) % nodes_ * gpus_ + (gpu + gpus_on) % gpus_,
            (node + nodes_ - nodes_on) % nodes_ * gpus_ + (gpu + gpus_ - gpus_on) % gpus_};
  }

 private:
  std::uint32_t nodes_;
  std::uint32_t gpus_;
  std::vector<std::uint32_t> of_nodes_;
  std::vector<std::uint32_t> of_gpus_;
};

/// A communicator's ranks as nodes of equally many GPUs, as NCCL's rounds have them: place p is GPU
/// p mod gpus of node p / gpus.
class Grid {
 public:
  explicit Grid(const Communicator& communicator)
      : by_node_{communicator.ranks_by_node()}, place_(communicator.ranks()) {
    for (std::uint32_t node = 0; node < nodes(); ++node) {
      if (by_node_[node].size() != gpus()) {
        throw InputError(
            "sends and receives between nodes with unlike numbers of ranks are not "
            "modelled: node " +
            std::to_string(communicator.node(by_node_[node].front())) + " has " +
            std::to_string(by_node_[node].size()) + ", the first has " + std::to_string(gpus()));
      }
      for (std::uint32_t gpu = 0; gpu < gpus(); ++gpu) {
        place_[by_node_[node][gpu]] = node * gpus() + gpu;
      }
    }
  }
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(by_node_.size()); }
  std::uint32_t gpus() const { return static_cast<std::uint32_t>(by_node_.front().size()); }
  std::uint32_t place(std::uint32_t rank) const { return place_[rank]; }
  std::uint32_t rank(std::uint32_t place) const { return by_node_[place / gpus()][place % gpus()]; }

 private:
  std::vector<std::vector<std::uint32_t>> by_node_;
  std::vector<std::uint32_t> place_;  // by rank
};

/// Whether NVLink joins each two GPUs of the communicator that are on one node (NCCL
/// src/graph/paths.cc, ncclTopoPathAllNVLink).
bool all_joined_by_nvlink(const Fabric& fabric, const Communicator& communicator) {
  for (const std::vector<std::uint32_t>& node : communicator.ranks_by_node()) {
    for (auto a = node.begin(); a != node.end(); ++a) {
      const bool joins_all = std::all_of(a + 1, node.end(), [&](std::uint32_t b) {
        return fabric.nvlink_route(communicator.gpu(*a), communicator.gpu(b)).has_value();
      });
      if (!joins_all) return false;
    }
  }
  return true;
}

/// The parameter that says a communicator's chunk (NCCL src/init.cc, p2pChunkSize).
std::string_view chunk_key(const Fabric& fabric, const Communicator& communicator) {
  if (communicator.node_count() > 1) return "nccl.p2p_net_chunk";
  return all_joined_by_nvlink(fabric, communicator) ? "nccl.p2p_nvl_chunk" : "nccl.p2p_pci_chunk";
}

/// The channel where a round's first part goes (NCCL src/include/device.h,
/// ncclP2pChannelBaseForRound).
std::uint32_t channel_base(std::uint32_t nodes, std::uint32_t gpus, std::uint32_t round) {
  if (nodes == 1) return round;
  return round / gpus * ((gpus + kAtOnce - 1) / kAtOnce) + round % gpus / kAtOnce;
}

/// The channel of a part (ncclP2pChannelForPart): parts are spread by their bits in reverse.
std::uint32_t channel_of_part(std::uint32_t channels, std::uint32_t base, std::uint32_t part) {
  std::uint32_t mirrored = 0;
  for (std::uint32_t from = 1, to = channels / 2; to > 0; from *= 2, to /= 2) {
    if ((part & from) != 0) mirrored |= to;
  }
  return (base + mirrored) % channels;
}

/// Warps of a send and of a receive where `works` pairs of them share a block (NCCL
/// src/device/sendrecv.h).
struct Warps {
  std::uint32_t send;
  std::uint32_t receive;
};
Warps warps_of(std::uint32_t works) {
  const std::uint32_t each = kWarps / works;
  if (each <= 4) return {each / 2, each / 2};
  return {(each - 1) / 2 + 1, (each - 1) / 2};
}

/// What one channel's block does in one round: a send, a receive, both, or a copy to itself.
struct Work {
  std::optional<ConnectionIndex> send;
  std::optional<ConnectionIndex> receive;
  const P2pSplit* send_split;
  const P2pSplit* receive_split;
};

class P2pBuilder {
 public:
  P2pBuilder(const DeviceParams& devices, const Communicator& communicator,
             const Schedule& schedule, MemoryPath path, Op op, Bytes bytes, const Choice& choice)
      : schedule_{&schedule},
        builder_{devices, communicator, schedule, path, op, bytes, choice},
        grid_{communicator},
        nodes_{grid_.nodes()},
        all_to_all_{op == Op::kAllToAll},
        rounds_{nodes_, grid_.gpus()},
        to_peer_{all_to_all_ ? Bytes{pieces(bytes, Bytes{builder_.ranks()})} : bytes},
        inside_{p2p_split(devices, communicator, schedule, to_peer_, false)},
        between_{p2p_split(devices, communicator, schedule, to_peer_, true)} {
    for (std::uint32_t k = 0; k < rounds_.count(); ++k) {
      if (is_used(k)) used_.push_back(k);
    }
  }

  Plan build() && {
    const std::uint32_t n = builder_.ranks();
    for (std::uint32_t rank = 0; rank < n; ++rank) add_connections(rank);
    for (std::uint32_t rank = 0; rank < n; ++rank) add_programs(rank);
    Plan plan = std::move(builder_).take(shown().protocol);
    plan.channels = shown().channels;
    return plan;
  }

 private:
  P2pRound round_of(std::uint32_t rank, std::uint32_t round) const {
    const P2pRound at = rounds_.of(grid_.place(rank), round);
    return {grid_.rank(at.send_to), grid_.rank(at.receive_from)};
  }
  bool sends(std::uint32_t from, std::uint32_t to) const {
    return all_to_all_ || to == (from + 1) % builder_.ranks();
  }
  /// Whether anybody sends in a round.
  bool is_used(std::uint32_t round) const {
    for (std::uint32_t rank = 0; rank < builder_.ranks(); ++rank) {
      if (sends(rank, round_of(rank, round).send_to)) return true;
    }
    return false;
  }
  const P2pSplit& split(std::uint32_t from, std::uint32_t to) const {
    return builder_.communicator().same_node(from, to) ? inside_ : between_;
  }
  std::uint32_t channel(std::uint32_t round, std::uint32_t part) const {
    return channel_of_part(schedule_->p2p_channels, channel_base(nodes_, grid_.gpus(), round),
                           part);
  }
  std::uint32_t nic(std::uint32_t rank, std::uint32_t channel) const {
    if (schedule_->p2p_nics.empty()) return 0;
    const auto& nics = schedule_->p2p_nics[builder_.communicator().place(rank)];
    return nics[channel % nics.size()];
  }

  /// A rank's sends stand together in the plan, in the order of rounds, then parts.
  void add_connections(std::uint32_t rank) {
    for (const std::uint32_t k : used_) {
      const std::uint32_t to = round_of(rank, k).send_to;
      if (to == rank || !sends(rank, to)) continue;
      const P2pSplit& parts = split(rank, to);
      for (std::uint32_t part = 0; part < parts.channels; ++part) {
        const std::uint32_t c = channel(k, part);
        const ConnectionIndex index =
            builder_.connect(parts.protocol, {rank, nic(rank, c)}, {to, nic(to, c)}, c,
                             k * schedule_->p2p_channels + part);
        if (first_.size() <= rank) first_.push_back(index);
      }
    }
  }

  /// The connection of a part of what `from` sends in a round.
  ConnectionIndex connection(std::uint32_t from, std::uint32_t round, std::uint32_t part) const {
    if (!all_to_all_) return first_[from] + part;
    const std::uint32_t gpus = grid_.gpus();
    const std::uint32_t near = std::min(round, gpus) - 1;  // rounds before, but for the first
    const std::uint32_t far = round - std::min(round, gpus);
    return first_[from] + near * inside_.channels + far * between_.channels + part;
  }

  void add_programs(std::uint32_t rank) {
    std::vector<std::vector<Work>> by_channel(schedule_->p2p_channels);
    for (const std::uint32_t k : used_) {
      const auto [to, from] = round_of(rank, k);
      if (to == rank) {
        for (std::uint32_t p = 0; all_to_all_ && p < inside_.channels; ++p) {
          by_channel[channel(k, p)].push_back({{}, {}, &inside_, &inside_});
        }
        continue;
      }
      const P2pSplit& out = split(rank, to);
      const P2pSplit& in = split(from, rank);
      const std::uint32_t out_parts = sends(rank, to) ? out.channels : 0;
      const std::uint32_t in_parts = sends(from, rank) ? in.channels : 0;
      for (std::uint32_t p = 0; p < std::max(out_parts, in_parts); ++p) {
        Work work{{}, {}, &out, &in};
        if (p < out_parts) work.send = connection(rank, k, p);
        if (p < in_parts) work.receive = connection(from, k, p);
        by_channel[channel(k, p)].push_back(work);
      }
    }
    for (std::uint32_t c = 0; c < by_channel.size(); ++c) add_block(rank, c, by_channel[c]);
  }

  /// The groups of warps of one block; each takes every eighth work.
  void add_block(std::uint32_t rank, std::uint32_t channel, const std::vector<Work>& works) {
    const auto slots = std::min(kAtOnce, static_cast<std::uint32_t>(works.size()));
    const Protocol& launched = shown().protocol;
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      const Warps warps = warps_of(slots);
      const auto each = [&](auto&& add) {
        for (std::size_t w = slot; w < works.size(); w += kAtOnce) add(works[w]);
      };
      bool is_sending = false;
      bool is_receiving = false;
      each([&](const Work& work) {
        is_sending = is_sending || work.send || !work.receive;
        is_receiving = is_receiving || work.receive;
      });
      if (is_sending) {
        builder_.add_block(launched, rank, channel, warps.send * kWarp);
        each([&](const Work& work) {
          const bool copy = !work.send && !work.receive;
          each_chunk(*work.send_split, [&](const Protocol& protocol, Bytes chunk) {
            if (copy) builder_.copy(protocol, chunk);
            if (work.send) builder_.send(protocol, chunk, {*work.send});
          });
        });
      }
      if (is_receiving) {
        builder_.add_block(launched, rank, channel, warps.receive * kWarp);
        each([&](const Work& work) {
          if (!work.receive) return;
          each_chunk(*work.receive_split, [&](const Protocol& protocol, Bytes chunk) {
            builder_.recv(protocol, chunk, {*work.receive});
          });
        });
      }
    }
  }

  /// The chunks of one part. `body(protocol, chunk)` adds one.
  template <class Body>
  void each_chunk(const P2pSplit& split, Body&& body) {
    builder_.in_parts(Bytes{pieces(to_peer_, Bytes{split.channels})}, split.protocol.chunk,
                      [&](Bytes chunk) { body(split.protocol, chunk); });
  }

  /// What the plan is named and launched by.
  const P2pSplit& shown() const { return nodes_ > 1 ? between_ : inside_; }

  const Schedule* schedule_;
  PlanBuilder builder_;
  Grid grid_;
  std::uint32_t nodes_;
  bool all_to_all_;
  Rounds rounds_;
  std::vector<std::uint32_t> used_;  // rounds
  Bytes to_peer_;
  P2pSplit inside_;
  P2pSplit between_;
  std::vector<ConnectionIndex> first_;  // by rank
};

}  // namespace

std::vector<P2pRound> p2p_rounds(std::uint32_t nodes, std::uint32_t gpus, std::uint32_t rank) {
  const Rounds rounds(nodes, gpus);
  std::vector<P2pRound> out;
  for (std::uint32_t round = 0; round < rounds.count(); ++round) {
    out.push_back(rounds.of(rank, round));
  }
  return out;
}

P2pSplit p2p_split(const DeviceParams& devices, const Communicator& communicator,
                   const Schedule& schedule, Bytes bytes, bool network) {
  const Params& params = devices.params();
  const bool nodes = communicator.node_count() > 1;
  const std::int64_t ranks = communicator.ranks();
  const std::int64_t step =
      params.bytes("nccl.buffer_size").count() / std::llround(params.number("nccl.steps"));
  const Bytes least{std::max<std::int64_t>(1, nodes ? step / 2 : step / 8)};
  const Bytes most{nodes ? step : step * 32};
  std::int64_t channels = schedule.p2p_channels_per_peer;
  while (channels * ranks > schedule.p2p_channels && channels > 1) channels /= 2;
  channels = std::clamp<std::int64_t>(pieces(bytes, least), 1, channels);
  Bytes part = std::max(least, Bytes{pieces(bytes, Bytes{channels})});
  while (part > most && channels <= schedule.p2p_channels_per_peer / 2) {
    channels *= 2;
    part = Bytes{pieces(bytes, Bytes{channels})};
  }
  const Bytes whole =
      std::min(Bytes{step}, params.bytes(chunk_key(devices.fabric(), communicator)));
  P2pSplit out{static_cast<std::uint32_t>(channels), {}};
  out.protocol = make_p2p_protocol(params, bytes, out.channels, whole, network);
  if (!network) return out;
  if (bytes < whole) {
    out.protocol.chunk = std::max(Bytes{1}, Bytes{out.protocol.chunk.count() / 4});
  } else if (bytes < whole * 8) {
    out.protocol.chunk = std::max(Bytes{1}, Bytes{out.protocol.chunk.count() / 2});
  }
  return out;
}

Plan p2p_plan(const DeviceParams& devices, const Communicator& communicator,
              const Schedule& schedule, Op op, Bytes bytes, MemoryPath path, const Choice& choice) {
  return P2pBuilder(devices, communicator, schedule, path, op, bytes, choice).build();
}

}  // namespace weft
