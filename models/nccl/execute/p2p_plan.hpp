#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "models/nccl/execute/plan_builder.hpp"
#include "sim/base/stop.hpp"

namespace weft {

/// One round of NCCL's order of sends and receives: in round k every rank sends to one peer and
/// receives from one, both the same number of nodes and of GPUs away.
struct P2pRound {
  std::uint32_t send_to;
  std::uint32_t receive_from;
};

/// The rounds of one rank (NCCL src/init.cc): distances in nodes, and for each in GPUs inside the
/// node, by 0, 1, 3, 6, 10, ... modulo the next power of two, those too large left out. Round 0 is
/// the rank itself. Preconditions: ranks = nodes x gpus, rank < ranks.
std::vector<P2pRound> p2p_rounds(std::uint32_t nodes, std::uint32_t gpus, std::uint32_t rank);

/// The distances in nodes of those rounds, in their order, the first of which is 0.
std::vector<std::uint32_t> p2p_node_distances(std::uint32_t nodes);
/// The channel of a part of what is sent in a round (NCCL src/include/device.h,
/// ncclP2pChannelBaseForRound, ncclP2pChannelForPart).
std::uint32_t p2p_channel(const Schedule& schedule, std::uint32_t nodes, std::uint32_t gpus,
                          std::uint32_t round, std::uint32_t part);

/// How a send of `bytes` to one peer of the communicator is split (NCCL src/enqueue.cc,
/// addP2pToPlan). `network`: the peer is on another node.
struct P2pSplit {
  std::uint32_t channels;
  Protocol protocol;
};
P2pSplit p2p_split(const DeviceParams& devices, const Communicator& communicator,
                   const Schedule& schedule, Bytes bytes, bool network);

/// How a rank's blocks put distances in nodes through: a channel's block has eight places, in which
/// one send follows another as soon as the last chunk of that one is in its send buffers; of it the
/// receiver takes no more than its buffers hold before the one before it has arrived.
struct P2pPlaces {
  std::uint32_t at_once;  ///< distances that all places hold; at least 1
  Bytes buffers;          ///< of what one GPU sends another, at either end
};
/// Where each GPU of nodes with so many sends as `split` says.
P2pPlaces p2p_places(const Schedule& schedule, std::uint32_t gpus, const P2pSplit& split);

/// All-to-all and send-recv: each pair of ranks has a connection on each channel that its data is
/// split over. A channel's thread block runs up to 8 sends and 8 receives at once, each by warps of
/// its own, in the order of the rounds.
/// Throws InputError if nodes have unlike numbers of ranks.
Plan p2p_plan(const DeviceParams& devices, const Communicator& communicator,
              const Schedule& schedule, Op op, Bytes bytes, const Choice& choice, const Stop* stop);

/// What one rank sends another, or keeps.
struct PeerSend {
  std::uint32_t from;
  std::uint32_t to;
  Bytes bytes;
};

/// What a plan of any traffic is named: "alltoallv".
inline constexpr std::string_view kTrafficName = "alltoallv";

/// One group of sends and receives of any sizes (ncclGroupStart ... ncclGroupEnd), in the same
/// rounds; what a rank sends itself is copied. The plan's bytes are the most that a rank sends.
/// Throws InputError as p2p_plan. Preconditions: no pair twice, no zeros.
/// Time and memory grow with the ranks and the sends. Throws Stopped once `stop` asks for it.
Plan traffic_plan(const DeviceParams& devices, const Communicator& communicator,
                  const Schedule& schedule, std::span<const PeerSend> sends,
                  const Stop* stop = nullptr);

}  // namespace weft
