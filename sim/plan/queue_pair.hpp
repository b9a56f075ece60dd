#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/id.hpp"
#include "sim/plan/program.hpp"
#include "sim/plan/walk.hpp"

namespace weft {

/// A queue pair of a Plan: two NICs, the memories between which its verbs move data, and the flags
/// that are its completion queues.
///
/// A write or send takes data from `memory` by `nic` and `peer_nic` to `peer_memory`, a read the
/// other way. A CPU stands for its socket's DRAM.
struct QueuePair {
  DeviceId nic;  ///< of whoever posts
  DeviceId peer_nic;
  DeviceId memory;
  DeviceId peer_memory;
  /// Tells connections between the same NICs apart, and queue pairs of one connection: they may
  /// take different ways through the network.
  std::uint32_t connection{0};
  std::uint32_t number{0};
  /// In life so many queue pairs, from `number` on, each with an equal part of every message; 0: as
  /// many as a connection has (wire.qps_per_connection).
  std::uint32_t parts{1};
  // What is posted on it.
  bool writes{false};
  bool sends{false};
  bool reads{false};
  /// Where its buffers begin in both memories, and how far they go: message after message lies
  /// behind the last, and at the begin again after so much. 0: always the same place.
  std::uint64_t address{0};
  std::uint64_t span{0};
  /// Every so many-th request is signalled, and so is the `requests`-th, the last. 0: none.
  std::uint32_t signal_every{0};
  std::uint64_t requests{0};
  /// Gets a token, its tag this queue pair, for each completion that tells of requests; kNoIndex:
  /// nobody looks.
  FlagIndex send_cq{kNoIndex};
  /// The same for each message in `peer_memory`: a write that tells its target, or a send.
  FlagIndex receive_cq{kNoIndex};
  LagIndex send_lag{kNoIndex};     ///< from the completion in memory to the token
  LagIndex receive_lag{kNoIndex};  ///< likewise; of a write, from its data
  /// A GPU whose thread posts by itself: it has written and fenced the elements, rings the doorbell
  /// by a store over PCIe, and finds completions in the GPU's memory. None: a CPU thread posts.
  std::optional<DeviceId> posting_gpu{};
  FlagIndex context{kNoIndex};  ///< the first of its user's own flags (qp_context)
  /// A proxy thread that finds something to do for several at once begins with the lowest.
  std::uint32_t turn{0};
  std::uint32_t copies{1};  ///< it stands for so many, see fold()
  friend bool operator==(const QueuePair&, const QueuePair&) = default;
};

/// The wire's part of its messages, from the poster or back.
inline Leg message_leg(const QueuePair& q, bool back) {
  const DeviceId from = back ? q.peer_nic : q.nic;
  const DeviceId to = back ? q.nic : q.peer_nic;
  return {Leg::Kind::kMessage, Leg::Medium::kWire, from, from, to, q.connection};
}

/// The walk of the data of a write or send, or of a read.
inline Walk data_walk(const QueuePair& q, bool is_read) {
  const Leg message = message_leg(q, is_read);
  const DeviceId source = is_read ? q.peer_memory : q.memory;
  const DeviceId sink = is_read ? q.memory : q.peer_memory;
  return {read_leg(message.source, source), message, write_leg(message.sink, sink)};
}

}  // namespace weft
