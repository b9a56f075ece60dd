#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/plan/queue_pair.hpp"
#include "sim/plan/walk.hpp"

namespace weft {

/// What moving along a walk, or the messages of a queue pair, take of servers that others take too,
/// and a digest of all that is theirs alone: latencies, a cap.
struct Footprint {
  struct Use {
    std::uint32_t server;
    double weight;  ///< of a byte
  };
  /// Of one of a row of servers that serve alike, by the mover's number: its SM.
  struct Own {
    std::uint32_t first;
    std::uint32_t count;
    double weight;

    Use of(std::uint32_t mover) const { return {first + mover % count, weight}; }
  };
  std::vector<Use> uses;
  std::vector<Own> own;
  std::vector<std::uint32_t> in_turn;  ///< of a queue pair: servers that serve one after another
  std::uint64_t alone{0};
};

/// How the machine that a plan runs on is shared. Servers are numbered densely.
class Footprints {
 public:
  virtual std::uint32_t server_count() const = 0;
  /// Equal if two servers serve alike.
  virtual std::uint64_t kind(std::uint32_t server) const = 0;
  /// Whether connections of the same NICs take different ways.
  virtual bool connections_differ() const = 0;
  virtual Footprint of_walk(std::span<const Leg> walk) const = 0;
  virtual Footprint of_queue_pair(const QueuePair& queue_pair) const = 0;

 protected:
  ~Footprints() = default;
};

}  // namespace weft
