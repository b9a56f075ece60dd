#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/plan/walk_table.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {

/// A named wait that is not data movement: "proxy posts the send".
struct Lag {
  std::string cause;
  Duration time;
  friend auto operator<=>(const Lag&, const Lag&) = default;
};

/// What connections of one kind have in common: how deep their FIFO is, and the waits of handing a
/// slice over (see Connection).
struct Handover {
  std::uint32_t slots{1};
  Lag after_push;
  Lag after_carry;
  Lag credit;
  friend bool operator==(const Handover&, const Handover&) = default;
};

/// A one-way FIFO between two ranks on one channel, a few slices deep.
///
/// The sender's kernel pushes a slice (walk `push`); after_push later it is visible: to the
/// receiver, or, where `carry` is set, to the proxy, whose NIC carries it on and makes it visible
/// to the receiver after_carry after it has been delivered. The receiver's kernel takes it (walk
/// `pull`, empty where the slice already lies in the GPU's memory); credit later the sender may
/// use the slot again. Small, since an all-to-all has as many as pairs of ranks.
struct Connection {
  std::uint32_t from{0};  ///< rank
  std::uint32_t to{0};    ///< rank
  std::uint32_t channel{0};
  std::uint32_t handover{0};  ///< index into Plan::handovers
  WalkIndex push{WalkTable::kEmpty};
  WalkIndex pull{WalkTable::kEmpty};
  std::optional<WalkIndex> carry;
  friend bool operator==(const Connection&, const Connection&) = default;
};
static_assert(sizeof(Connection) == 32);

using ConnectionIndex = std::uint32_t;

/// The connections that a step receives from or sends to: none, one, or a tree's children.
class ConnectionList {
 public:
  static constexpr std::size_t kMost = 3;  ///< NCCL_MAX_TREE_ARITY

  ConnectionList() = default;
  /// Throws std::logic_error if there are more than kMost.
  ConnectionList(std::initializer_list<ConnectionIndex> connections) {
    for (const ConnectionIndex c : connections) add(c);
  }
  void add(ConnectionIndex connection) {
    if (size_ == kMost) throw std::logic_error("ConnectionList: more than a tree's children");
    items_[size_++] = connection;
  }
  const ConnectionIndex* begin() const { return items_.data(); }
  const ConnectionIndex* end() const { return items_.data() + size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  friend bool operator==(const ConnectionList&, const ConnectionList&) = default;

 private:
  std::array<ConnectionIndex, kMost> items_{};  // 0 beyond size_
  std::uint32_t size_{0};
};

/// One step of a program: a primitive of a collective's kernel on `bytes`, done slice by slice. It
/// takes a slice from each of `in`, combines it with local data and sends it to each of `out`, in
/// one pass; with neither it copies inside the GPU's memory.
struct Step {
  ConnectionList in;
  ConnectionList out;
  Bytes bytes;              ///< as they cross a connection, flags of LL protocols included
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

/// What a rank's thread block on one channel does, or a group of its warps that works by itself, as
/// data: loops over steps, never a list of every transfer.
struct Program {
  std::uint32_t rank{0};
  std::uint32_t channel{0};
  std::uint32_t threads{0};            ///< of the group; 0: a whole thread block
  WalkIndex local{WalkTable::kEmpty};  ///< what it reads of its own buffer in every step
  std::vector<Loop> loops;
  /// It stands for so many programs, on channels that do the same (see fold_channels).
  std::uint32_t copies{1};
  friend bool operator==(const Program&, const Program&) = default;
};

/// Who sends what to whom, over which path. Immutable once made; comparable. Memory: linear in
/// connections and programs, whatever the bytes.
struct Plan {
  std::string op;     ///< "allreduce"
  std::string algo;   ///< "Ring"
  std::string proto;  ///< "Simple"
  std::uint32_t ranks{0};
  std::uint32_t channels{0};  ///< of sends: that what goes to one peer is split over
  Bytes bytes;                ///< of the collective, as nccl-tests counts
  Lag start;                  ///< launch, of every program
  std::vector<DeviceId> gpu_of_rank;
  WalkTable walks;
  std::vector<Handover> handovers;
  std::vector<Connection> connections;
  std::vector<Program> programs;
};

/// How many transfers (passes of a kernel over a slice, and messages) running the plan takes.
std::uint64_t transfer_count(const Plan& plan);

/// The plan as text, a line a connection and a line a program, for people and for tests.
std::string dump(const Plan& plan, const Fabric& fabric);

}  // namespace weft
