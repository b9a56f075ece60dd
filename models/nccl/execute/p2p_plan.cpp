#include "models/nccl/execute/p2p_plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

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

/// All rounds of the ranks of some nodes. Where fewer are `here`, which stand for all, a peer on
/// another node is on another one here.
class Rounds {
 public:
  Rounds(std::uint32_t nodes, std::uint32_t here, std::uint32_t gpus)
      : nodes_{nodes},
        here_{here},
        gpus_{gpus},
        of_nodes_{quadratic_order(nodes)},
        of_gpus_{quadratic_order(gpus)} {}

  std::uint32_t count() const { return nodes_ * gpus_; }
  /// Distances in nodes, and in GPUs, in their order.
  const std::vector<std::uint32_t>& of_nodes() const { return of_nodes_; }
  const std::vector<std::uint32_t>& of_gpus() const { return of_gpus_; }
  P2pRound of(std::uint32_t rank, std::uint32_t round) const {
    const std::uint32_t node = rank / gpus_;
    const std::uint32_t gpu = rank % gpus_;
    const std::uint32_t nodes_on = here(of_nodes_[round / gpus_]);
    const std::uint32_t gpus_on = of_gpus_[round % gpus_];
    return {(node + nodes_on) % here_ * gpus_ + (gpu + gpus_on) % gpus_,
            (node + here_ - nodes_on) % here_ * gpus_ + (gpu + gpus_ - gpus_on) % gpus_};
  }

 private:
  /// How many nodes away one so many nodes away is.
  std::uint32_t here(std::uint32_t away) const {
    return away < here_ ? away : 1 + (away - 1) % (here_ - 1);
  }

  std::uint32_t nodes_;
  std::uint32_t here_;
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

/// What one rank sends another in one round, and the connections that its parts go over, which
/// follow each other.
struct Sent {
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t round;
  Bytes bytes;
  const P2pSplit* split{nullptr};
  ConnectionIndex first{0};

  bool is_copy() const { return to == from; }
};
/// A part of it.
struct HalfWork {
  const Sent* of;
  std::uint32_t part;

  ConnectionIndex connection() const { return of->first + part; }
};
/// What one channel's block does in one round: a send, a receive, both, or a copy to itself.
struct Work {
  std::optional<HalfWork> send{};
  std::optional<HalfWork> receive{};
  std::optional<HalfWork> copy{};
};

/// Numbers in the order in which `numbers` has them.
std::vector<std::uint32_t> places(const std::vector<std::uint32_t>& numbers) {
  std::vector<std::uint32_t> out(numbers.size());
  for (std::uint32_t at = 0; at < numbers.size(); ++at) out[numbers[at]] = at;
  return out;
}

/// Makes a plan of what is sent.
class P2pBuilder {
 public:
  P2pBuilder(const DeviceParams& devices, const Communicator& communicator,
             const Schedule& schedule, PlanBuilder builder)
      : devices_{&devices},
        schedule_{&schedule},
        builder_{std::move(builder)},
        grid_{communicator},
        nodes_{nodes_of(schedule, communicator)},
        rounds_{nodes_, grid_.nodes(), grid_.gpus()} {}

  /// Each rank sends in each round `bytes(from, to)`, if that is not zero.
  template <class Of>
  void send_in_all_rounds(Of bytes) {
    for (std::uint32_t from = 0; from < builder_.ranks(); ++from) {
      for (std::uint32_t round = 0; round < rounds_.count(); ++round) {
        const std::uint32_t to = grid_.rank(rounds_.of(grid_.place(from), round).send_to);
        if (const Bytes sent = bytes(from, to); sent > Bytes{0}) {
          sends_.push_back({from, to, round, sent});
        }
      }
    }
  }
  /// Where all nodes are here: each pair at most once.
  void send(std::span<const PeerSend> sends) {
    const std::vector<std::uint32_t> nodes_at = places(rounds_.of_nodes());
    const std::vector<std::uint32_t> gpus_at = places(rounds_.of_gpus());
    const std::uint32_t gpus = grid_.gpus();
    for (const auto& [from, to, bytes] : sends) {
      const std::uint32_t a = grid_.place(from);
      const std::uint32_t b = grid_.place(to);
      const std::uint32_t nodes_on = (b / gpus + nodes_ - a / gpus) % nodes_;
      const std::uint32_t gpus_on = (b % gpus + gpus - a % gpus) % gpus;
      sends_.push_back({from, to, nodes_at[nodes_on] * gpus + gpus_at[gpus_on], bytes});
    }
    const auto place = [](const Sent& s) { return std::pair{s.from, s.round}; };
    std::ranges::sort(sends_, {}, place);
    if (std::ranges::adjacent_find(sends_, {}, place) != sends_.end()) {
      throw std::logic_error("p2p_plan: a pair sends twice");
    }
  }

  Plan build() && {
    Bytes most;
    for (const Sent& sent : sends_) most = std::max(most, sent.bytes);
    const P2pSplit& shown = split(most, nodes_ > 1);
    shown_ = &shown.protocol;
    for (Sent& sent : sends_) add_connections(sent);
    std::vector<const Sent*> received;
    for (const Sent& sent : sends_) {
      if (!sent.is_copy()) received.push_back(&sent);
    }
    std::ranges::sort(received, {}, [](const Sent* s) { return std::pair{s->to, s->round}; });
    auto out = sends_.begin();
    auto in = received.begin();
    for (std::uint32_t rank = 0; rank < builder_.ranks(); ++rank) {
      const auto out_end =
          std::find_if(out, sends_.end(), [&](const Sent& s) { return s.from != rank; });
      const auto in_end =
          std::find_if(in, received.end(), [&](const Sent* s) { return s->to != rank; });
      add_programs(rank, {out, out_end}, {in, in_end});
      out = out_end;
      in = in_end;
    }
    Plan plan = std::move(builder_).take(shown.protocol);
    plan.channels = shown.channels;
    return plan;
  }

 private:
  const P2pSplit& split(Bytes bytes, bool network) {
    const auto [at, is_new] = splits_.try_emplace({bytes, network});
    if (is_new) {
      at->second = p2p_split(*devices_, builder_.communicator(), *schedule_, bytes, network);
    }
    return at->second;
  }
  std::uint32_t channel(std::uint32_t round, std::uint32_t part) const {
    return p2p_channel(*schedule_, nodes_, grid_.gpus(), round, part);
  }
  /// The ends of a send in a channel.
  std::pair<Endpoint, Endpoint> ends(const Sent& sent, std::uint32_t channel) const {
    const Communicator& all = builder_.communicator();
    if (all.same_node(sent.from, sent.to)) return {{sent.from}, {sent.to}};
    const std::uint32_t from = all.place(sent.from);
    const std::uint32_t to = all.place(sent.to);
    const P2pExit exit = p2p_exit(*schedule_, from, to, channel);
    Endpoint sender{sent.from, exit.nic};
    if (exit.gpu != from) sender.proxy = builder_.rank_at(all.node(sent.from), exit.gpu);
    return {sender, {sent.to, p2p_entry(*schedule_, to, channel)}};
  }

  /// A rank's sends stand together in the plan, in the order of rounds, then parts.
  void add_connections(Sent& sent) {
    const auto& [from, to, round, bytes, of, first] = sent;
    sent.split = &split(bytes, !builder_.communicator().same_node(from, to));
    if (sent.is_copy()) return;
    for (std::uint32_t part = 0; part < sent.split->channels; ++part) {
      const std::uint32_t c = channel(round, part);
      const auto [sender, receiver] = ends(sent, c);
      const ConnectionIndex index = builder_.connect(sent.split->protocol, sender, receiver, c,
                                                     round * schedule_->p2p_channels + part);
      if (part == 0) sent.first = index;
    }
  }

  /// Both in the order of rounds.
  void add_programs(std::uint32_t rank, std::span<const Sent> out,
                    std::span<const Sent* const> in) {
    std::vector<std::vector<Work>> by_channel(schedule_->p2p_channels);
    while (!out.empty() || !in.empty()) {
      const bool sends = !out.empty() && (in.empty() || out.front().round <= in.front()->round);
      const bool receives = !in.empty() && (!sends || in.front()->round == out.front().round);
      const std::uint32_t round = sends ? out.front().round : in.front()->round;
      const std::uint32_t out_parts = sends ? out.front().split->channels : 0;
      const std::uint32_t in_parts = receives ? in.front()->split->channels : 0;
      for (std::uint32_t p = 0; p < std::max(out_parts, in_parts); ++p) {
        Work work;
        if (p < out_parts) {
          (out.front().is_copy() ? work.copy : work.send) = HalfWork{&out.front(), p};
        }
        if (p < in_parts) work.receive = HalfWork{in.front(), p};
        by_channel[channel(round, p)].push_back(work);
      }
      if (sends) out = out.subspan(1);
      if (receives) in = in.subspan(1);
    }
    for (std::uint32_t c = 0; c < by_channel.size(); ++c) add_block(rank, c, by_channel[c]);
  }

  /// The groups of warps of one block; each takes every eighth work.
  void add_block(std::uint32_t rank, std::uint32_t channel, const std::vector<Work>& works) {
    const auto slots = std::min(kAtOnce, static_cast<std::uint32_t>(works.size()));
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      const Warps warps = warps_of(slots);
      const auto each = [&](auto&& add) {
        for (std::size_t w = slot; w < works.size(); w += kAtOnce) add(works[w]);
      };
      bool is_sending = false;
      bool is_receiving = false;
      each([&](const Work& work) {
        is_sending = is_sending || work.send || work.copy;
        is_receiving = is_receiving || work.receive;
      });
      if (is_sending) {
        builder_.add_block(*shown_, rank, channel, warps.send * kWarp);
        each([&](const Work& work) {
          each_chunk(work.copy, [&](const Protocol& protocol, Bytes chunk) {
            builder_.copy(protocol, chunk);
          });
          each_chunk(work.send, [&](const Protocol& protocol, Bytes chunk) {
            builder_.send(protocol, chunk, {work.send->connection()});
          });
        });
      }
      if (is_receiving) {
        builder_.add_block(*shown_, rank, channel, warps.receive * kWarp);
        each([&](const Work& work) {
          each_chunk(work.receive, [&](const Protocol& protocol, Bytes chunk) {
            builder_.recv(protocol, chunk, {work.receive->connection()});
          });
        });
      }
    }
  }

  /// The chunks of one part. `body(protocol, chunk)` adds one.
  template <class Body>
  void each_chunk(const std::optional<HalfWork>& work, Body&& body) {
    if (!work) return;
    const P2pSplit& split = *work->of->split;
    builder_.in_parts(Bytes{pieces(work->of->bytes, Bytes{split.channels})}, split.protocol.chunk,
                      [&](Bytes chunk) { body(split.protocol, chunk); });
  }

  const DeviceParams* devices_;
  const Schedule* schedule_;
  PlanBuilder builder_;
  Grid grid_;
  std::uint32_t nodes_;
  Rounds rounds_;
  std::map<std::pair<Bytes, bool>, P2pSplit> splits_;  // by bytes, and whether over the network
  const Protocol* shown_{nullptr};  ///< of the largest send: what the plan is named and launched by
  std::vector<Sent> sends_;         // by rank, then round
};

}  // namespace

std::uint32_t p2p_channel(const Schedule& schedule, std::uint32_t nodes, std::uint32_t gpus,
                          std::uint32_t round, std::uint32_t part) {
  return channel_of_part(schedule.p2p_channels, channel_base(nodes, gpus, round), part);
}

std::vector<std::uint32_t> p2p_node_distances(std::uint32_t nodes) {
  return quadratic_order(nodes);
}

P2pPlaces p2p_places(const Schedule& schedule, std::uint32_t gpus, const P2pSplit& split) {
  const Protocol& protocol = split.protocol;
  return {std::max(1U, schedule.p2p_channels * kAtOnce / (gpus * split.channels)),
          protocol.chunk * (std::int64_t{protocol.slots} * split.channels)};
}

std::vector<P2pRound> p2p_rounds(std::uint32_t nodes, std::uint32_t gpus, std::uint32_t rank) {
  const Rounds rounds(nodes, nodes, gpus);
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
  const std::int64_t ranks = ranks_of(schedule, communicator);
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
              const Schedule& schedule, Op op, Bytes bytes, const Choice& choice,
              const Stop* stop) {
  const std::uint32_t ranks = communicator.ranks();
  const Bytes to_peer =
      op == Op::kAllToAll ? Bytes{pieces(bytes, Bytes{ranks_of(schedule, communicator)})} : bytes;
  P2pBuilder builder(devices, communicator, schedule,
                     {devices, communicator, schedule, op, bytes, choice, stop});
  builder.send_in_all_rounds([&](std::uint32_t from, std::uint32_t to) {
    return op == Op::kAllToAll || to == (from + 1) % ranks ? to_peer : Bytes{0};
  });
  return std::move(builder).build();
}

Plan traffic_plan(const DeviceParams& devices, const Communicator& communicator,
                  const Schedule& schedule, std::span<const PeerSend> sends, const Stop* stop) {
  std::vector<Bytes> of_rank(communicator.ranks());
  for (const PeerSend& send : sends) of_rank[send.from] += send.bytes;
  const Bytes most = std::ranges::max(of_rank);
  const Choice choice = schedule.choose(Op::kAllToAll, most);
  P2pBuilder builder(devices, communicator, schedule,
                     {devices, communicator, schedule, Op::kAllToAll, most, choice, stop});
  builder.send(sends);
  Plan plan = std::move(builder).build();
  plan.op = kTrafficName;
  return plan;
}

}  // namespace weft
