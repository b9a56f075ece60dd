#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/id.hpp"
#include "sim/base/units.hpp"

namespace weft {

/// One movement of data from one memory (or NIC) to the next.
///
/// The data flows from `source` to `sink`; `initiator` is the one of the two whose requests make it
/// flow. So a NIC that sends from GPU memory *reads*: initiator and sink are the NIC, source the
/// GPU, and the read requests run against the data. A CPU stands for its socket's DRAM.
///
/// Over NVLink an NVSwitch may be an end. It adds up what legs of one walk bring to it, and gives a
/// copy to each leg that leaves it; on those with its GPUs' memories it is the initiator, as a GPU
/// asks it alone (multimem.ld_reduce, multimem.st).
struct Leg {
  enum class Kind : std::uint8_t {
    kRead,     ///< the sink asks, the source answers; kLocal: an SM of its GPU's memory
    kWrite,    ///< the source pushes; likewise
    kMessage,  ///< one NIC to another over the network
  };
  enum class Medium : std::uint8_t { kLocal, kPcie, kNvlink, kWire };
  /// What a GPU's threads find with the data, so that they need not be told that they are there.
  enum class Flags : std::uint8_t {
    kNone,
    kEachWord,  ///< 8 B for each 8 B of data (NCCL's LL)
    kEachLine,  ///< 8 B for each 120 B of data (NCCL's LL128)
  };

  Kind kind{Kind::kRead};
  Medium medium{Medium::kLocal};
  DeviceId initiator;
  DeviceId source;
  DeviceId sink;
  std::uint32_t connection{0};  ///< messages: tells connections between the same NICs apart
  /// Legs of one branch follow each other; branches part from the kernel that reads several sources
  /// or writes several sinks, and their latencies overlap.
  std::uint16_t branch{0};
  /// Where a GPU's SMs are the initiator: with how many threads; 0: a whole thread block.
  std::uint16_t threads{0};
  Flags flags{Flags::kNone};
  /// The bytes of the walk without their flags are moved: it is a user's buffer.
  bool data_only{false};
  /// Of a user's buffer: its elements are bytes, which a thread stores one by one with kEachWord.
  bool by_bytes{false};
  /// Of a user's buffer: per cent of its loads for which the GPU's L2 cache does not have the data.
  std::uint8_t misses{0};
  /// How much is moved at a time of what the threads load at once.
  enum class Trip : std::uint8_t {
    kMany,   ///< any number: the first loads are waited for, then as many are always under way
    kOne,    ///< at most one trip, whose loads are waited for
    kSteady  ///< a trip of many: its loads are under way while the last one's come
  };
  Trip trip{Trip::kMany};
  /// Where a GPU is the initiator: one of its copy engines, not its SMs.
  bool by_copy_engine{false};
  friend auto operator<=>(const Leg&, const Leg&) = default;
};

/// "read", "write" or "message".
constexpr std::string_view leg_verb(Leg::Kind kind) {
  switch (kind) {
    case Leg::Kind::kRead:
      return "read";
    case Leg::Kind::kWrite:
      return "write";
    case Leg::Kind::kMessage:
      return "message";
  }
  return "?";
}

/// What a device reads from another's memory, or writes into it.
inline Leg read_leg(DeviceId initiator, DeviceId source, Leg::Medium medium = Leg::Medium::kPcie) {
  return {Leg::Kind::kRead, medium, initiator, source, initiator};
}
inline Leg write_leg(DeviceId initiator, DeviceId sink, Leg::Medium medium = Leg::Medium::kPcie) {
  return {Leg::Kind::kWrite, medium, initiator, initiator, sink};
}

/// What a copy engine of `gpu`, one of the two ends, moves.
inline Leg copy_leg(DeviceId gpu, DeviceId source, DeviceId sink,
                    Leg::Medium medium = Leg::Medium::kPcie) {
  Leg leg{gpu == sink ? Leg::Kind::kRead : Leg::Kind::kWrite, medium, gpu, source, sink};
  leg.by_copy_engine = true;
  return leg;
}

/// Data bytes of each byte that is moved with such flags.
constexpr double data_fraction(Leg::Flags flags) {
  switch (flags) {
    case Leg::Flags::kNone:
      return 1;
    case Leg::Flags::kEachWord:
      return 1.0 / 2;
    case Leg::Flags::kEachLine:
      return 120.0 / 128;
  }
  return 1;
}

/// What a thread loads at once of data with such flags, flags included, and waits for: a line of
/// 16 B (NCCL src/device/prims_ll.h), 64 B of its warp's lines (prims_ll128.h); without flags 0.
constexpr Bytes trip_of_thread(Leg::Flags flags) {
  switch (flags) {
    case Leg::Flags::kNone:
      return Bytes{0};
    case Leg::Flags::kEachWord:
      return Bytes{16};
    case Leg::Flags::kEachLine:
      return Bytes{64};
  }
  return Bytes{0};
}

/// Legs that run at once, at one rate: the bytes stream through all of them. Storing the bytes in a
/// buffer ends a walk; whoever empties the buffer begins another.
///   GPUDirect RDMA: [NIC reads GPU memory] [message] [NIC writes GPU memory]
///   host-staged:    [GPU writes DRAM] | [NIC reads DRAM] [message] [NIC writes DRAM] | [GPU reads
///   DRAM]
using Walk = std::vector<Leg>;

}  // namespace weft
