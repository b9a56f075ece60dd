#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/plan/walk.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {

/// A named wait that is not data movement: "proxy posts the send".
struct Lag {
  std::string cause;
  Duration time;
  friend auto operator<=>(const Lag&, const Lag&) = default;
};

/// A one-way FIFO between two ranks on one channel: `slots` slices deep.
///
/// The sender's kernel pushes a slice (walk `push`); `after_push` later it is visible: to the
/// receiver, or, where `carry` is set, to the proxy, whose NIC carries it on and makes it visible
/// to the receiver `after_carry` after it has been delivered. The receiver's kernel takes it (walk
/// `pull`, empty where the slice already lies in the GPU's memory); `credit` later the sender may
/// use the slot again.
struct Connection {
  std::uint32_t from{0};  ///< rank
  std::uint32_t to{0};    ///< rank
  std::uint32_t channel{0};
  std::uint32_t slots{1};
  Walk push;
  std::optional<Walk> carry;
  Walk pull;
  Lag after_push;
  Lag after_carry;
  Lag credit;
  friend bool operator==(const Connection&, const Connection&) = default;
};

using ConnectionIndex = std::uint32_t;

/// One step of a program: a primitive of a collective's kernel on `bytes`, done slice by slice.
/// A step with both `in` and `out` receives, combines with local data and sends on in one pass.
struct Step {
  std::optional<ConnectionIndex> in;
  std::optional<ConnectionIndex> out;
  Bytes bytes;              ///< as they cross the connection, flags of LL protocols included
  Bytes slice;              ///< the most that one push or pull moves; at least one byte
  std::uint32_t repeat{1};  ///< that many times in a row
  friend bool operator==(const Step&, const Step&) = default;
};

/// `body`, `repeat` times.
struct Loop {
  std::uint64_t repeat{1};
  std::vector<Step> body;
  friend bool operator==(const Loop&, const Loop&) = default;
};

/// What one rank does on one channel, as data: loops over steps, never a list of every transfer.
struct Program {
  std::uint32_t rank{0};
  std::uint32_t channel{0};
  Walk local;  ///< what the kernel reads of its own buffer in every step
  Lag start;   ///< launch
  std::vector<Loop> loops;
  friend bool operator==(const Program&, const Program&) = default;
};

/// Who sends what to whom, over which path. Immutable once made; comparable.
struct Plan {
  std::string op;     ///< "allreduce"
  std::string algo;   ///< "Ring"
  std::string proto;  ///< "Simple"
  std::uint32_t ranks{0};
  std::uint32_t channels{0};
  Bytes bytes;  ///< of the collective, as nccl-tests counts
  std::vector<DeviceId> gpu_of_rank;
  std::vector<Connection> connections;
  std::vector<Program> programs;
};

/// How many transfers (pushes and pulls of slices, and messages) running the plan takes.
std::uint64_t transfer_count(const Plan& plan);

/// The plan as text, a line a connection and a line a program, for people and for tests.
std::string dump(const Plan& plan, const Fabric& fabric);

}  // namespace weft
