#pragma once

#include <map>
#include <optional>
#include <utility>

#include "models/nccl/execute/protocol.hpp"
#include "models/nccl/schedule.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// One end of a connection.
struct Endpoint {
  std::uint32_t rank;
  std::uint32_t nic{0};  ///< index among its node's NICs; used only between nodes
  /// PXN: the rank of the same node to whose memory this one writes what its NIC then sends.
  std::optional<std::uint32_t> proxy{};
};

/// Puts together a Plan: ranks, connections over the right hops, programs. The references must
/// outlive it.
class PlanBuilder {
 public:
  PlanBuilder(DeviceParams& devices, MemoryPath path, Op op, Bytes bytes, const Choice& choice);

  std::uint32_t ranks() const { return plan_.ranks; }
  std::uint32_t gpus_per_node() const { return gpus_; }
  bool same_node(std::uint32_t a, std::uint32_t b) const { return a / gpus_ == b / gpus_; }

  /// A FIFO between two ranks by the hops of models/nccl/README.md: inside a node NVLink if there
  /// is, else PCIe peer writes up to PXB, else through host memory; between nodes over the two
  /// NICs, with PXN from another GPU's memory. Throws InputError if the ranks cannot reach each
  /// other.
  ConnectionIndex connect(const Protocol& protocol, Endpoint from, Endpoint to,
                          std::uint32_t channel);

  /// A program without loops yet; its kernel reads its own buffer in every step. `threads`: 0 for
  /// the whole thread block.
  Program& add_program(std::uint32_t rank, std::uint32_t channel, std::uint32_t threads = 0);

  /// The step that moves `data` bytes through `protocol`; no data is a step all the same.
  static Step step(const Protocol& protocol, Bytes data, ConnectionList in, ConnectionList out);

  /// Loops that take `data` bytes chunk by chunk: full ones, then what is left, aligned to 8 B.
  /// `per_loop`: chunks that one loop moves. `body(chunk)` makes the steps of one loop.
  template <class Body>
  static std::vector<Loop> chunked(const Protocol& protocol, Bytes data, std::int64_t per_loop,
                                   Body&& body) {
    const Bytes loop = protocol.chunk * per_loop;
    const std::int64_t full = data.count() / loop.count();
    const Bytes rest = data - loop * full;
    std::vector<Loop> loops;
    if (full > 0) loops.push_back({static_cast<std::uint64_t>(full), body(protocol.chunk)});
    if (rest > Bytes{0} || full == 0) {
      constexpr std::int64_t kAlign = 8;
      const Bytes part{pieces(rest, Bytes{per_loop})};
      loops.push_back({1, body(Bytes{pieces(part, Bytes{kAlign}) * kAlign})});
    }
    return loops;
  }

  Plan take(const Protocol& protocol) &&;

 private:
  void connect_inside(Connection& connection, const Protocol& protocol, DeviceId from, DeviceId to);
  void connect_nodes(Connection& connection, const Protocol& protocol, Endpoint from, Endpoint to);
  std::uint32_t handover(const Protocol& protocol, std::optional<DeviceId> to_nic, DeviceId from);

  DeviceParams* devices_;
  MemoryPath path_;
  std::uint32_t gpus_;
  Plan plan_;
  // By network or not, protocol and device of a node: what a handover depends on.
  std::map<std::tuple<bool, std::string_view, std::size_t>, std::uint32_t> handovers_;
};

}  // namespace weft
