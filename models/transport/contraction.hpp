#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/machine/machine.hpp"
#include "sim/plan/walk.hpp"
#include "sim/run/transport.hpp"

namespace weft {

/// How much of a server one byte of a walk takes.
struct ServerUse {
  ServerId server;
  /// For each payload byte, by the server's unit: bytes; of what is in flight, bytes or requests
  /// times the seconds for which they are held (Little's law).
  double weight;
};

/// A limit that only this walk can meet: what one thread block keeps in flight over a round trip.
struct WalkCap {
  Bandwidth rate;
  Cause cause;
};

/// A named part of a latency.
struct LatencyPart {
  Cause cause;
  Duration time;
};

/// How a copy over PCIe waits for the other copies of its GPU. It ends with a small read of the
/// memory beyond, by the GPU's one unit for it.
struct CopyFlush {
  DeviceId gpu;
  LatencyPart alone;
  bool is_read{false};  ///< the copy reads
  Bytes window{};       ///< of the copy, what is on its way at most: asked for, or not acknowledged
};

/// What a walk comes to in the fluid picture: weights on servers, a cap, and the latencies before
/// the first byte moves (`head`) and after the last byte has left until it is visible (`tail`).
struct Contraction {
  std::vector<ServerUse> uses;  ///< each server once, in the order in which the bytes meet them
  std::optional<WalkCap> cap;   ///< the tightest
  std::vector<LatencyPart> head;
  std::vector<LatencyPart> tail;
  /// Of what it competes for, where others get 1: where the warps of a block's groups mix, as many
  /// of the block's as move it.
  double share{1};
  std::optional<CopyFlush> flush{};  ///< after the last byte has left, before the tail
};

/// The devices' fluid contraction of a walk that an actor of that number moves. Equations:
/// models/transport/README.md. Throws InputError if the fabric has no route for a leg.
Contraction contract(const Machine& machine, const Walk& walk, std::uint32_t number = 0);

/// The threads that move a leg.
std::uint32_t threads_of(const ThreadBlocks& blocks, const Leg& leg);
/// Until a leg's loads of the GPU's own memory are there.
Duration sm_load_latency(const ThreadBlocks& blocks, const Leg& leg);
/// Bytes that the threads of a leg move in one trip, where flags come with the data.
Bytes trip_of(const ThreadBlocks& blocks, const Leg& leg);
/// Whether an SM (or a NIC) reads over PCIe.
bool is_far_load(const Leg& leg);
/// Bytes that the threads of a leg keep in flight: as many loads as NCCL unrolls, or where flags
/// come with the data one trip (trip_of_thread()), as all wait for its flags. Loads of the GPU's
/// own memory are so quick that what NCCL unrolls stands for them all.
Bytes sm_in_flight(const ThreadBlocks& blocks, const Leg& leg);

/// Whether a GPU's copies to or from a memory cross a PCIe link; NVLink-C2C and links between
/// sockets are none.
bool copies_over_pcie(const Machine& machine, DeviceId gpu, DeviceId memory);
/// Requests that a copy engine keeps in flight to a memory: as many as PCIe's tags, or where no
/// PCIe link is crossed as NVLink-C2C's.
std::uint32_t copy_requests(const Machine& machine, DeviceId gpu, DeviceId memory);
/// Their bytes. Precondition: a leg by a copy engine over PCIe or NVLink-C2C.
Bytes copy_in_flight(const Machine& machine, const Leg& leg);

/// Bytes of a leg for each that crosses the walk's connections: of a user's buffer without flags.
double data_share(const Leg& leg);
/// For how many nanoseconds an SM works on each byte of a walk; 0 of walks that no SM moves. Where
/// each line has its flag, a trip of many keeps it while its loads come, too: the groups of a block
/// take turns.
double sm_ns_per_byte(const Machine& machine, const Walk& walk);
/// The SM that runs a GPU's thread block of a number.
ServerId sm_of(const Machine& machine, DeviceId gpu, std::uint32_t number);
/// What holds the loads beyond the GPU of that SM.
ServerId sm_loads_of(const Machine& machine, DeviceId gpu, std::uint32_t number);

/// The GPU of a leg over NVLink whose port and lines its packets have: the source, unless that is
/// an NVSwitch.
DeviceId nvlink_gpu(const Machine& machine, const Leg& leg);

/// Whoever makes the requests of a leg over PCIe: a NIC, a GPU's SMs, its copy engines, or a CPU's
/// stores, which leave its root complex when its program says so.
Requester requester_of(const Machine& machine, const Leg& leg);

/// What limits a walk that has the machine to itself, to what payload rate: its cap, or the server
/// that fills first.
WalkCap solo_limit(const Machine& machine, const Contraction& contraction);
inline Bandwidth solo_rate(const Machine& machine, const Contraction& contraction) {
  return solo_limit(machine, contraction).rate;
}

}  // namespace weft
