#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "models/nccl/execute/by_device.hpp"
#include "models/nccl/execute/protocol.hpp"
#include "models/nccl/schedule.hpp"
#include "sim/base/stop.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// One end of a connection.
struct Endpoint {
  std::uint32_t rank;
  std::uint32_t nic{0};  ///< index among its node's NICs; used only between nodes
  /// PXN: the rank of the same node to whose memory this one writes what its NIC then sends.
  std::optional<std::uint32_t> proxy{};
};

using ConnectionIndex = std::uint32_t;

/// The connections that a step receives from or sends to: none, one, a tree's children.
using ConnectionList = std::vector<ConnectionIndex>;

/// NVLS's FIFOs between the ranks of a node and its heads, at each side what it takes part in. A
/// head takes a slice once all ranks have put theirs in, which the NVSwitch adds up; a rank, once
/// all heads have, of which the NVSwitch gives a copy to each rank.
struct SwitchFifos {
  ConnectionList scatter;    ///< of each rank: to all heads
  ConnectionList reduce;     ///< of each head: from all ranks
  ConnectionList broadcast;  ///< of each head: to all ranks
  ConnectionList gather;     ///< of each rank: from all heads
};

/// Puts together the Plan of a collective: FIFOs between ranks over the right hops, thread blocks
/// that move slices through them, proxy threads that carry slices between nodes. The references
/// must outlive it, and `stop`, unless null: each connection and each block asks it, and throws
/// Stopped; take() does, too.
class PlanBuilder {
 public:
  PlanBuilder(const DeviceParams& devices, const Communicator& communicator,
              const Schedule& schedule, Op op, Bytes bytes, const Choice& choice, const Stop* stop);

  const Communicator& communicator() const { return *communicator_; }
  std::uint32_t ranks() const { return communicator_->ranks(); }
  /// The rank of a node's GPU. Throws InputError if it does not take part.
  std::uint32_t rank_at(std::uint32_t node, std::uint32_t place) const;

  /// A FIFO between two ranks, a few slices deep, by the hops of models/nccl/README.md: inside a
  /// node as Schedule::inside says, by NVLink where it is, else by PCIe; between nodes over the two
  /// NICs, with PXN from another GPU's memory. Throws InputError if the ranks
  /// cannot reach each other. Proxies that have several connections to look after at once begin
  /// with the lowest `turn`; nullopt: its channel.
  ConnectionIndex connect(const Protocol& protocol, Endpoint from, Endpoint to,
                          std::uint32_t channel, std::optional<std::uint32_t> turn = {});

  /// NVLS's FIFOs between `ranks`, all of one node, and the heads among them, `slots` of the
  /// protocol deep. What a rank puts in or takes out, for all heads in one pass, lies in its own
  /// memory; a head reads and writes all of them at once by the NVSwitch. Throws InputError if no
  /// NVSwitch joins them.
  SwitchFifos connect_switch(const Protocol& protocol, std::span<const std::uint32_t> heads,
                             std::span<const std::uint32_t> ranks);

  /// The thread block of a rank and channel, or a group of its warps (`threads`; 0: a whole block),
  /// and its program without instructions yet but for the launch.
  void add_block(const Protocol& protocol, std::uint32_t rank, std::uint32_t channel,
                 std::uint32_t threads = 0);

  // What the last block does then: NCCL's primitives (src/device/prims_simple.h), see pass().
  void send(const Protocol& p, Bytes data, const ConnectionList& out) {
    pass(p, data, {}, out, {.loads = true, .stores = false});
  }
  void copy_send(const Protocol& p, Bytes data, const ConnectionList& out) {
    pass(p, data, {}, out, {.loads = true, .stores = true});
  }
  void recv(const Protocol& p, Bytes data, const ConnectionList& in) {
    pass(p, data, in, {}, {.loads = false, .stores = true});
  }
  void recv_reduce_copy(const Protocol& p, Bytes data, const ConnectionList& in) {
    pass(p, data, in, {}, {.loads = true, .stores = true});
  }
  void recv_reduce_send(const Protocol& p, Bytes data, const ConnectionList& in,
                        const ConnectionList& out) {
    pass(p, data, in, out, {.loads = true, .stores = false});
  }
  void recv_copy_send(const Protocol& p, Bytes data, const ConnectionList& in,
                      const ConnectionList& out) {
    pass(p, data, in, out, {.loads = false, .stores = true});
  }
  void recv_send(const Protocol& p, Bytes data, const ConnectionList& in,
                 const ConnectionList& out) {
    pass(p, data, in, out, {.loads = false, .stores = false});
  }
  void recv_reduce_copy_send(const Protocol& p, Bytes data, const ConnectionList& in,
                             const ConnectionList& out) {
    pass(p, data, in, out, {.loads = true, .stores = true});
  }
  void copy(const Protocol& p, Bytes data) {
    pass(p, data, {}, {}, {.loads = true, .stores = true});
  }
  /// To all of so many heads a part of the data, and from all, one after another.
  void scatter(const Protocol& p, Bytes data, ConnectionIndex out, std::size_t heads) {
    pass(p, data, {}, {out}, {.loads = true, .stores = false, .peers = heads});
  }
  void gather(const Protocol& p, Bytes data, ConnectionIndex in, std::size_t heads) {
    pass(p, data, {in}, {}, {.loads = false, .stores = true, .peers = heads});
  }
  /// Slices of connections at both sides of a pass.
  struct Slices {
    ConnectionList in;
    ConnectionList out;
  };
  /// One of NCCL's primitives: takes data from each connection that comes in and from the user's
  /// buffer if it `loads`, combines them, and gives the result to each that goes out and to the
  /// user's buffer if it `stores`, in one pass.
  struct Primitive {
    bool loads;
    bool stores;
    std::size_t peers{1};  ///< whose parts follow each other, with a first load each
    /// It combines them with what the first that goes out holds already; without one, the user's
    /// buffer for the result.
    bool adds{false};
  };
  /// A pass in which `data` bytes are moved that are parts of slices. It waits for those that it is
  /// the `first` to use and hands over or gives back those that it is the `last` to use; `moved`
  /// are the connections that all of the bytes pass. Its barriers come `rounds` times.
  void pass_within(const Protocol& p, Bytes data, const Slices& first, const Slices& last,
                   const Slices& moved, Primitive primitive, std::int64_t rounds);
  /// What `body()` adds, so many times.
  template <class Body>
  void repeat(std::uint64_t times, Body&& body) {
    plan_.programs[block_].repeat(times, std::forward<Body>(body));
  }
  /// Takes `all` bytes by as many as `most`: full parts, then what is left. No bytes are a part all
  /// the same. `body(part)` adds one.
  template <class Body>
  void in_parts(Bytes all, Bytes most, Body&& body) {
    const std::int64_t full = all.count() / most.count();
    const Bytes rest = all - most * full;
    repeat(static_cast<std::uint64_t>(full), [&] { body(most); });
    if (rest > Bytes{0} || full == 0) body(rest);
  }
  /// Takes `data` bytes chunk by chunk: full ones, then what is left, aligned to 8 B. `per_loop`:
  /// chunks that one loop moves. `body(chunk)` adds one loop.
  template <class Body>
  void chunked(const Protocol& protocol, Bytes data, std::int64_t per_loop, Body&& body) {
    const Bytes loop = protocol.chunk * per_loop;
    in_parts(data, loop, [&](Bytes part) {
      if (part == loop) return body(protocol.chunk);
      constexpr std::int64_t kAlign = 8;
      const Bytes of_chunk{pieces(part, Bytes{per_loop})};
      body(Bytes{pieces(of_chunk, Bytes{kAlign}) * kAlign});
    });
  }

  /// The plan; `protocol` is the one that it is named by.
  Plan take(const Protocol& protocol) &&;

 private:
  /// A FIFO: the sender's block pushes a slice, which raises `pushed`; the receiver's waits for
  /// `ready`, takes it (`pull`, where it does not lie in the GPU's memory already) and signals
  /// `taken`; the sender may use the slot again when `free` says so. NVLS's are one end of a FIFO
  /// each, which joins tie to the others: a rank's or a head's (connect_switch()).
  struct Connection {
    /// How the sender's block stores a slice and the receiver's loads it; nullopt: in its own
    /// memory.
    std::optional<Walk> push{};
    std::optional<Walk> pull{};
    FlagIndex ready{kNoIndex};
    FlagIndex free{kNoIndex};
    FlagIndex pushed{kNoIndex};
    FlagIndex taken{kNoIndex};
    LagIndex after_push{kNoIndex};
    LagIndex after_take{kNoIndex};
    std::uint32_t tag{0};
    bool between_nodes{false};
    /// What is there is seen in trips of so much, without a wait for the slice. 0: slice by slice.
    Bytes trip{0};
  };
  /// A connection between nodes as the proxies at its two ends have it, for which one operation
  /// follows another: what add_operations() makes programs of.
  struct Operations {
    FlagIndex pushed;             ///< slices that the sender's block has put into its FIFO
    FlagIndex cleared;            ///< slices that the receiver's FIFO has room for: clear to send
    FlagIndex sends;              ///< gets a token of `tag` for each slice that is both
    FlagIndex sent;               ///< slices that the sender's proxy knows to have been sent
    FlagIndex taken;              ///< slices that the receiver's proxy knows to have been taken
    std::uint32_t tag{kNoIndex};  ///< the queue pair, if there is one
    FlagIndex takes{kNoIndex};    ///< raised by the receiver's block, if no other connection's is
    std::uint32_t slots;          ///< of each FIFO
    LagIndex clearing{kNoIndex};  ///< from one proxy to the other
    DeviceId cpu;                 ///< of the sending proxy
    DeviceId peer_cpu;            ///< of the receiving one
    ActorIndex sender;            ///< the proxies
    ActorIndex receiver;
    Duration look;  ///< of a proxy, each round
  };
  /// What the programs of blocks do with such a connection.
  struct Uses {
    std::uint64_t slices{0};
    std::uint64_t taken{0};
    std::uint32_t sender{kNoIndex};  ///< the first program that sends
    std::uint32_t receiver{kNoIndex};
  };
  struct InsideLags {
    LagIndex after_push;
    LagIndex after_take;
  };

  /// Moves `data` bytes through `protocol`, slice by slice. No data is a slice all the same.
  void pass(const Protocol& protocol, Bytes data, const ConnectionList& in,
            const ConnectionList& out, Primitive primitive);
  DeviceId switch_of(std::span<const std::uint32_t> ranks) const;
  Walk by_switch(Leg::Kind kind, DeviceId nvswitch, DeviceId head,
                 std::span<const std::uint32_t> ranks) const;
  void connect_inside(Connection& connection, const Protocol& protocol, std::uint32_t from_rank,
                      std::uint32_t to_rank, std::uint32_t channel);
  void connect_nodes(Connection& connection, const Protocol& protocol, Endpoint from, Endpoint to,
                     std::uint32_t channel, std::uint32_t turn);
  /// The two NICs of a connection, and the memories between which they move data.
  struct Between {
    DeviceId from_nic;
    DeviceId to_nic;
    DeviceId memory;
    DeviceId peer_memory;
    DeviceId from_gpu;  ///< whose proxy sends
    DeviceId to_gpu;
    Duration wire;  ///< of the network between the NICs, one way
    bool flushes;   ///< before the kernel is told
  };
  void connect_queue_pair(Connection& connection, Operations& operations, const Protocol& protocol,
                          const Between& between, std::uint32_t channel, std::uint32_t number);
  void connect_emulated(Connection& connection, Operations& operations, const Protocol& protocol,
                        const Between& between, std::uint32_t channel);
  FlagIndex told_of_arrivals(const Between& between, std::uint32_t channel, FlagIndex told);
  Duration wire_time(const Route& route) const;
  Duration control_time(const Between& between) const;
  /// What a flag, or a flush, is read by.
  static constexpr Bytes kWord{8};
  void add_operations();
  void add_operation(const Operations& o, const Uses& uses);
  ActorIndex actor(const Actor& of_host);
  /// One that does one thing after another without taking time.
  ActorIndex order_at(DeviceId cpu) {
    return actor({Actor::Kind::kHostThread, cpu, threads_of_hosts_++});
  }
  ActorIndex proxy_of(DeviceId gpu);
  FlagIndex sends_of(DeviceId gpu);
  FlagIndex sent_by(DeviceId gpu, DeviceId nic);
  FlagIndex landed_at(DeviceId gpu);
  FlagIndex taken_at(DeviceId gpu, bool was_told);
  /// For each token of the flag the actor works, and then does what `body` adds.
  template <class Body>
  static Program served(FlagIndex flag, ActorIndex actor, LagIndex work, Body&& body) {
    Program program;
    program.actor = actor;
    program.serves = flag;
    if (work != kNoIndex) program.compute(work);
    body(program);
    return program;
  }
  template <class Body>
  void serve(FlagIndex flag, ActorIndex actor, LagIndex work, Body&& body) {
    plan_.programs.push_back(served(flag, actor, work, std::forward<Body>(body)));
  }
  /// Likewise, of a new flag.
  template <class Body>
  FlagIndex serve(ActorIndex actor, LagIndex work, Body&& body) {
    const FlagIndex flag = add_flag(0);
    serve(flag, actor, work, std::forward<Body>(body));
    return flag;
  }
  /// What a GPU's proxy does for the connections of its queue pairs, in the order in which NCCL's
  /// has them: what is received stands before what is sent (src/proxy.cc, ncclProxySaveOp).
  enum class Errand : std::uint8_t { kTaken, kLanded, kSend, kSent };
  /// serve() for the GPU's proxy, among its programs by its errand.
  template <class Body>
  FlagIndex serve_proxy(Errand errand, DeviceId gpu, LagIndex work, Body&& body) {
    const FlagIndex flag = add_flag(0);
    errands_[static_cast<std::size_t>(errand)].push_back(
        served(flag, proxy_of(gpu), work, std::forward<Body>(body)));
    return flag;
  }
  FlagIndex add_flag(std::uint32_t tokens);
  /// `cause` must outlive the builder.
  LagIndex lag(std::string_view cause, Duration time);
  /// How a slice is moved: `checked`, if there is one, is moved before. NCCL's LL128 loads a line
  /// again once it has seen its flags (src/device/prims_ll128.h, recvReduceSendCopy).
  struct Moves {
    std::optional<WalkIndex> checked;
    WalkIndex through;
  };
  /// What a slice is handed over by: trips of the connections, or the slice.
  struct Trips {
    Bytes least{0};
    bool all_alike{true};
  };
  Trips trips_of(const ConnectionList& in, const ConnectionList& out) const;
  /// Of a slice of `of` bytes those that one move moves.
  struct Part {
    Bytes begin;
    Bytes end;
    Bytes of;
    Bytes bytes() const { return end - begin; }
    /// How many trips of so much begin, or end, within it; a slice without bytes is one. 0: the
    /// part is the slice.
    std::int64_t begun(Bytes trip) const {
      if (trip == Bytes{0}) return 1;
      return std::max<std::int64_t>(pieces(end, trip), 1) - pieces(begin, trip);
    }
    std::int64_t ended(Bytes trip) const {
      if (trip == Bytes{0}) return 1;
      const auto whole = [&](Bytes upto) {
        return upto == of ? std::max<std::int64_t>(pieces(of, trip), 1)
                          : upto.count() / trip.count();
      };
      return whole(end) - (begin == Bytes{0} ? 0 : whole(begin));
    }
  };
  void empty_slice(std::span<const LagIndex> work, const ConnectionList& in,
                   const ConnectionList& out);
  void slice(const Part& part, const Moves& moves, std::span<const LagIndex> work,
             const ConnectionList& in, const ConnectionList& out);
  /// Waits for those of `first`, tells those of `last`.
  void slice(const Part& part, const Moves& moves, std::span<const LagIndex> work,
             const Slices& first, const Slices& last);
  std::optional<Walk> held_by(const Connection& connection) const;
  /// How loads of the GPU's own memory and of the host's are waited for.
  struct LoadTrips {
    Leg::Trip own{Leg::Trip::kMany};
    Leg::Trip far{Leg::Trip::kMany};
  };
  Moves moves(const Protocol& protocol, const ConnectionList& in, const ConnectionList& out,
              Primitive primitive, LoadTrips trips);
  void after_load(FlagIndex flag, DeviceId gpu, DeviceId memory, std::uint32_t channel,
                  FlagIndex next, LagIndex lag);

  /// What takes a kernel so long on the GPU of the fit takes as many cycles of this one.
  Duration cycles(Duration fitted, DeviceId gpu) const {
    return Duration::from_ns(fitted.as_ns() * cycle_[gpu]);
  }

  const DeviceParams* devices_;
  const Communicator* communicator_;
  const Schedule* schedule_;
  const Stop* stop_;
  bool is_by_bytes_;
  bool is_nvls_;
  Duration proxy_poll_;
  Duration proxy_look_;
  ByDevice<Duration> nvlink_latency_;
  ByDevice<Duration> load_latency_;  // of SMs, of the GPU's own memory
  ByDevice<std::uint8_t> misses_;    // per cent of loads of the user's buffers
  ByDevice<double> cycle_;           // in cycles of those that were fitted
  ByDevice<Duration> nic_latency_;
  ByDevice<Duration> doorbell_latency_;
  ByDevice<Duration> completion_latency_;
  ByDevice<bool> is_emulated_;
  /// Of a network switch: over a link up from it, over one to a switch beside it, and through it.
  struct Tier {
    Duration uplink;
    Duration local;
    Duration crossing;
  };
  std::vector<Tier> tiers_;
  Duration cable_;  // of a NIC
  Plan plan_;
  std::vector<Connection> connections_;
  std::map<std::pair<std::string_view, Duration>, LagIndex> lags_;
  std::map<std::tuple<Actor::Kind, DeviceId, std::uint32_t>, ActorIndex> actors_;  // of hosts
  std::uint32_t threads_of_hosts_{0};
  std::vector<Operations> operations_;
  // What a GPU's proxy serves for many connections, by GPU.
  std::map<DeviceId, FlagIndex> sends_;
  std::map<std::pair<DeviceId, DeviceId>, FlagIndex> sent_;  // and NIC
  std::map<DeviceId, FlagIndex> landed_;
  std::map<std::pair<DeviceId, bool>, FlagIndex> taken_;
  std::array<std::vector<Program>, 4> errands_;                         // programs of proxies
  std::vector<bool> is_taken_;                                          // by flag: one of those
  std::map<std::pair<std::string_view, DeviceId>, InsideLags> inside_;  // by protocol and GPU
  // The last block.
  std::size_t block_{0};
  DeviceId gpu_;
  std::uint32_t threads_{0};
};

}  // namespace weft
