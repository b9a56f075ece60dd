#include "models/transport/contraction.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "models/gpu/nvlink.hpp"
#include "models/gpu/sm_copy.hpp"
#include "models/machine/dma_routes.hpp"

namespace weft {
namespace {

bool polls_words(const Leg& leg) {
  return leg.flags == Leg::Flags::kEachWord && leg.kind == Leg::Kind::kRead && !leg.data_only;
}

/// At which an SM moves what a leg does.
Bandwidth sm_rate(const ThreadBlocks& blocks, const Leg& leg) {
  if (polls_words(leg)) return blocks.sm_poll;
  const bool is_local = leg.medium == Leg::Medium::kLocal;
  if (leg.flags == Leg::Flags::kEachWord && leg.data_only && is_local) {
    if (leg.kind == Leg::Kind::kRead) return blocks.sm_word_load;
    return leg.by_bytes ? blocks.sm_byte_store : blocks.sm_word_store;
  }
  const Bandwidth rate = leg.kind == Leg::Kind::kRead ? blocks.sm_load
                         : is_local                   ? blocks.sm_store
                                                      : blocks.sm_peer_store;
  return leg.flags == Leg::Flags::kEachLine ? rate * blocks.sm_line_share : rate;
}

/// Gathers what the legs of one walk ask for.
class Builder {
 public:
  Builder(const Machine& machine, std::uint32_t number)
      : machine_{machine}, fabric_{machine.fabric()}, number_{number} {}

  void add(const Leg& leg) {
    branch_ = leg.branch;
    switch (leg.medium) {
      case Leg::Medium::kLocal:
        add_local(leg);
        return;
      case Leg::Medium::kNvlink:
        add_nvlink(leg);
        return;
      case Leg::Medium::kWire:
        add_wire(leg);
        return;
      case Leg::Medium::kPcie:
        if (leg.by_copy_engine) add_copy(leg);
        if (leg.kind == Leg::Kind::kRead) {
          add_pcie_read(leg);
        } else {
          add_pcie_write(leg);
        }
        return;
    }
  }

  void use(ServerId server, double weight) {
    if (weight > 0.0) out_.uses.push_back({server, weight});
  }

  /// The SM works so many nanoseconds on each byte. Where each word has its flag the warps wait for
  /// each other nowhere: while one waits for its load the others work, so that a trip takes the
  /// longer of the two, and bytes leave evenly. Warps of a block's groups take turns at the SM.
  void work(DeviceId gpu, double ns_per_byte) {
    if (ns_per_byte <= 0) return;
    use(sm_of(machine_, gpu, number_), ns_per_byte);
    if (!steady_ || steady_->flags != Leg::Flags::kEachWord) return;
    const ThreadBlocks& blocks = *model(gpu).blocks;
    const double trip = trip_of(blocks, *steady_).as_double();
    const double works = trip * ns_per_byte * 1e-9;
    const double threads = threads_of(blocks, *steady_);
    const double warp_works = works * kWarp / threads;
    out_.share = threads / blocks.threads;
    const auto takes = [&](Duration load) { return std::max(load.as_s() + warp_works, works); };
    const double misses = steady_->misses / 100.0;
    const double mean = (1 - misses) * takes(blocks.sm_load_latency) +
                        misses * takes(blocks.sm_load_latency + blocks.sm_miss_time);
    cap(Bandwidth::bytes_per_s(trip / mean),
        {"SM loads of GPU memory in flight", fabric_.full_name(gpu)});
  }

  Contraction take() {
    // Each server once, where it is met first.
    std::map<ServerId, std::size_t> place;
    std::size_t kept = 0;
    for (const ServerUse use : out_.uses) {
      const auto [at, is_new] = place.try_emplace(use.server, kept);
      if (is_new) {
        out_.uses[kept++] = use;
      } else {
        out_.uses[at->second].weight += use.weight;
      }
    }
    out_.uses.resize(kept);
    out_.head = longest(heads_);
    out_.tail = longest(tails_);
    return std::move(out_);
  }

 private:
  const DeviceModel& model(DeviceId device) const { return machine_.model(device); }

  void use_memory(DeviceId device) {
    const TargetMemory& memory = *model(device).memory;
    if (memory.server) use(machine_.server_of(device, *memory.server), memory.read_weight);
  }
  void write_memory(DeviceId device) {
    const TargetMemory& memory = *model(device).memory;
    if (memory.server) use(machine_.server_of(device, *memory.server), memory.write_weight);
  }
  void cap(Bandwidth rate, Cause cause) {
    if (!out_.cap || rate < out_.cap->rate) out_.cap = WalkCap{rate, std::move(cause)};
  }
  void head(std::string_view kind, DeviceId device, Duration time) {
    heads_[branch_].push_back({{std::string(kind), fabric_.full_name(device)}, time});
  }
  void tail(const char* kind, DeviceId device, Duration time) {
    tails_[branch_].push_back({{kind, fabric_.full_name(device)}, time});
  }

  /// Of branches that run side by side the one that takes longest; the first of equals.
  using Branches = std::map<std::uint16_t, std::vector<LatencyPart>>;
  static std::vector<LatencyPart> longest(const Branches& branches) {
    std::vector<LatencyPart> out;
    Duration most;
    for (const auto& [branch, parts] : branches) {
      Duration sum;
      for (const LatencyPart& part : parts) sum += part.time;
      if (out.empty() || sum > most) {
        out = parts;
        most = sum;
      }
    }
    return out;
  }

  /// What the copy engine, the thread block, or the warps of it that move this leg, keep in flight.
  Bytes in_flight(const Leg& leg) const {
    return leg.by_copy_engine ? copy_in_flight(machine_, leg)
                              : sm_in_flight(*model(leg.initiator).blocks, leg);
  }

  template <class Find>
  Route require_route(const Leg& leg, const char* medium, Find&& find) const {
    const std::optional<Route> route = find();
    if (route) return *route;
    throw InputError(fabric_.spec().file + ": no " + medium + " route from " +
                     fabric_.full_name(leg.source) + " to " + fabric_.full_name(leg.sink));
  }

  static Hop reversed(Hop hop) { return {hop.link, !hop.forward}; }

  /// A thread of the CPU copies host memory, or reads it, which takes half as long; where it looks
  /// for the flag of each 128 B, it reads every second cache line.
  void add_memcpy(const Leg& leg) {
    const bool is_copy = leg.kind == Leg::Kind::kWrite;
    use_memory(leg.source);
    if (is_copy) write_memory(leg.sink);
    const double times = is_copy ? 1 : leg.flags == Leg::Flags::kEachLine ? 4 : 2;
    cap(model(leg.initiator).root->memcpy_rate * times,
        {is_copy ? "a thread copies host memory" : "a thread reads host memory",
         fabric_.full_name(leg.initiator)});
  }

  /// The GPU's SMs load from or store to its own memory.
  void add_local(const Leg& leg) {
    if (model(leg.initiator).root) return add_memcpy(leg);
    const double share = data_share(leg);
    const TargetMemory& memory = *model(leg.source).memory;
    const bool is_read = leg.kind == Leg::Kind::kRead;
    use(machine_.server_of(leg.source, *memory.server),
        share * (is_read ? memory.read_weight : memory.write_weight));
    if (!is_read) return;
    const ThreadBlocks& blocks = *model(leg.initiator).blocks;
    own_load_ = blocks.sm_load_latency;
    if (leg.trip == Leg::Trip::kSteady) {
      if (!steady_ || steady_->misses < leg.misses) steady_ = leg;
      return;
    }
    const Duration latency = sm_load_latency(blocks, leg);
    // Where not each word has its flag, the first are loaded while others' data are waited for.
    head("SM load of GPU memory", leg.initiator,
         leg.flags == Leg::Flags::kEachWord ? latency : blocks.sm_load_latency);
    if (latency == Duration{}) return;
    cap(Bandwidth::bytes_per_s(in_flight(leg).as_double() / latency.as_s()),
        {"SM loads of GPU memory in flight", fabric_.full_name(leg.initiator)});
  }

  /// The whole latency is that of the leg at a memory: an NVSwitch has none of its own.
  void add_nvlink(const Leg& leg) {
    const Route route =
        require_route(leg, "NVLink", [&] { return fabric_.nvlink_route(leg.source, leg.sink); });
    const DeviceId gpu = nvlink_gpu(machine_, leg);
    const NvlinkPort& port = *model(gpu).nvlink;
    const Bytes line =
        leg.by_copy_engine ? Bytes{model(gpu).copies->request} : model(gpu).blocks->line;
    for (const Hop hop : route) {
      use(machine_.server_of(hop), nvlink_weight(line, port.overhead));
      if (leg.kind != Leg::Kind::kRead || leg.by_copy_engine) continue;
      use(machine_.server_of(reversed(hop)), nvlink_request_weight(line, port.overhead));
    }
    if (leg.by_copy_engine) {
      use_memory(leg.sink);
      return add_nvlink_copy(leg);
    }
    if (leg.kind == Leg::Kind::kRead) {
      if (model(leg.source).memory) use_memory(leg.source);
      if (model(leg.initiator).blocks) add_nvlink_load(leg, port.latency);
    } else if (model(leg.sink).memory) {
      use_memory(leg.sink);
      tail("NVLink latency", leg.source, port.latency);
      // A word's load is done before it leaves, but the block goes on meanwhile.
      if (steady_ && steady_->flags == Leg::Flags::kEachWord) {
        tail("SM load of GPU memory", leg.initiator, sm_load_latency(*model(gpu).blocks, *steady_));
      }
    }
  }

  /// A load's request and its data cross NVLink; the memory beyond answers as an SM's own does. Of
  /// another GPU's memory it is waited for before the block's own is asked, as over PCIe.
  void add_nvlink_load(const Leg& leg, Duration latency) {
    const Duration round_trip = latency * 2 + model(leg.initiator).blocks->sm_load_latency;
    head("SM load over NVLink", leg.initiator, round_trip);
    const Duration loads = round_trip + (model(leg.source).memory ? own_load_ : Duration{});
    if (loads == Duration{}) return;
    cap(Bandwidth::bytes_per_s(in_flight(leg).as_double() / loads.as_s()),
        {"SM loads over NVLink in flight", fabric_.full_name(leg.initiator)});
  }

  /// As over PCIe; requests and answers take a latency each.
  void add_nvlink_copy(const Leg& leg) {
    const DeviceModel& m = model(leg.initiator);
    const bool is_read = leg.kind == Leg::Kind::kRead;
    const Duration round_trip = m.nvlink->latency * 2;
    head("begin of a copy", leg.initiator,
         m.copies->start + (is_read ? Duration{} : m.blocks->load_latency));
    head("flush of a copy", leg.initiator, round_trip);
    if (is_read) head("copy engine reads over NVLink", leg.initiator, round_trip);
  }

  bool is_pcie(Hop hop) const { return fabric_.link(hop.link).kind == LinkKind::kPcie; }
  const PcieCosts& costs(Hop hop) const {
    return machine_.pcie_costs(model(fabric_.link(hop.link).b).port->generation);
  }

  /// `size` on each hop of a route, or what a root complex cuts it to that forwards peer traffic,
  /// on the target's side of it.
  std::vector<double> packet_sizes(const Route& route, double size, bool target_is_at_end) const {
    std::vector<double> sizes(route.size(), size);
    double least = size;
    const auto cut = [&](std::size_t behind) {
      const auto& root = model(end_of(fabric_, route[behind])).root;
      if (root) least = std::min(least, root->peer_payload);
    };
    if (target_is_at_end) {
      for (std::size_t i = 1; i < route.size(); ++i) {
        cut(i - 1);
        sizes[i] = least;
      }
    } else {
      for (std::size_t i = route.size(); i-- > 0;) {
        if (i + 1 < route.size()) cut(i);
        sizes[i] = least;
      }
    }
    return sizes;
  }

  DmaRoutes require_dma_routes(const Leg& leg, DeviceId target, bool is_read) const {
    std::optional<DmaRoutes> routes = dma_routes(machine_, leg.initiator, target, is_read);
    if (routes && routes->blocked.empty()) return std::move(*routes);
    throw InputError(fabric_.spec().file + ": no PCIe route from " + fabric_.full_name(leg.source) +
                     " to " + fabric_.full_name(leg.sink) +
                     (routes ? ": " + routes->blocked : std::string()));
  }

  /// What the DMA takes of the devices that it crosses; returns how long a request waits for its
  /// translation.
  Duration use_limits(const Leg& leg, const DmaRoutes& routes, DeviceId target, bool is_read) {
    Duration walk;
    for (const DmaLimit& limit : dma_limits(machine_, leg.initiator, target, is_read, routes)) {
      const bool in_flight = machine_.unit(limit.server) != ServerUnit::kBytesPerSecond;
      use(limit.server, limit.per_byte * (in_flight ? limit.hold.as_s() : 1.0));
      if (limit.traffic != Traffic::kTranslated) continue;
      const double misses = limit.per_byte * model(target).memory->page.as_double();
      walk = Duration::from_ns(model(*routes.translator).root->page_walk.as_s() * 1e9 * misses);
    }
    return walk;
  }

  /// A copy begins once it is asked for and the one before has ended, one that writes with data out
  /// of the GPU's memory. It ends with a flush: a read of the memory beyond, behind its data.
  void add_copy(const Leg& leg) {
    const DeviceModel& m = model(leg.initiator);
    const bool is_write = leg.kind == Leg::Kind::kWrite;
    const DeviceId beyond = is_write ? leg.sink : leg.source;
    const DmaRoutes flush = require_dma_routes(leg, beyond, true);
    head("begin of a copy", leg.initiator,
         m.copies->start + (is_write ? m.blocks->load_latency : Duration{}));
    out_.flush =
        CopyFlush{.gpu = leg.initiator,
                  .alone = {{"flush of a copy", fabric_.full_name(leg.initiator)},
                            round_trip_of(flush, leg.initiator, beyond) + m.copies->read_extra},
                  .is_read = !is_write,
                  .window = in_flight(leg)};
    if (is_write && m.copies->rate && copies_over_pcie(machine_, leg.initiator, beyond)) {
      cap(*m.copies->rate, {"copy engine's writes in flight", fabric_.full_name(leg.initiator)});
    }
  }

  /// Data of so much in each TLP over a route, and what its receivers return.
  template <class Weight>
  void use_links(const Route& route, const std::vector<double>& sizes, Weight&& weight) {
    for (std::size_t i = 0; i < route.size(); ++i) {
      if (!is_pcie(route[i])) continue;
      use(machine_.server_of(route[i]), weight(costs(route[i]), sizes[i]));
      use(machine_.server_of(reversed(route[i])), costs(route[i]).dllp_weight(sizes[i]));
    }
  }
  /// Links whose rate is one of payload: between sockets, C2C.
  void use_carriers(const Route& data) {
    for (const Hop hop : data) {
      if (!is_pcie(hop)) use(machine_.server_of(hop), 1.0);
    }
  }

  void add_pcie_write(const Leg& leg) {
    const DmaRoutes routes = require_dma_routes(leg, leg.sink, false);
    const Route& route = routes.request;
    const double largest =
        std::min(route_mps(machine_, leg.source, route), requester_of(machine_, leg).write_payload);
    use_carriers(route);
    use_links(route, packet_sizes(route, largest, true),
              [](const PcieCosts& c, double size) { return c.write_weight(size); });
    write_memory(leg.sink);
    const Duration walk = use_limits(leg, routes, leg.sink, false);
    if (leg.by_copy_engine) return;  // its flush has waited for that
    const Duration left = model(leg.source).root ? model(leg.source).crossing_time() : Duration{};
    tail("PCIe write latency", leg.source,
         crossing_time(machine_, leg.source, route) - left + walk +
             model(leg.sink).memory->write_latency + requester_of(machine_, leg).write_extra);
  }

  void add_pcie_read(const Leg& leg) {
    if (model(leg.initiator).root) {
      throw InputError("loads of " + fabric_.full_name(leg.source) + "'s memory by " +
                       fabric_.full_name(leg.initiator) + " are not modelled");
    }
    const DmaRoutes routes = require_dma_routes(leg, leg.source, true);
    const Requester requester = requester_of(machine_, leg);
    const double request = requester.read_request;
    const double largest =
        std::min(request, completion_payload(machine_, leg.source, routes.completion));
    use_carriers(routes.completion);
    use_links(routes.completion, packet_sizes(routes.completion, largest, false),
              [](const PcieCosts& c, double size) { return c.completion_weight(size); });
    // A root complex that takes the completions has asked for them itself, in its own sizes.
    const std::vector<double> asked = through_root(machine_, routes.completion)
                                          ? packet_sizes(routes.request, request, true)
                                          : std::vector<double>(routes.request.size(), request);
    use_links(routes.request, asked,
              [](const PcieCosts& c, double size) { return c.request_weight(size); });
    use_memory(leg.source);
    const TargetMemory& memory = *model(leg.source).memory;
    if (memory.answers && memory.read_latency > Duration{}) {
      use(machine_.server_of(leg.source, *memory.answers),
          memory.read_latency.as_s() / asked.back());
    }
    const Duration round_trip = round_trip_of(routes, leg.initiator, leg.source) +
                                use_limits(leg, routes, leg.source, true) + requester.read_extra;
    if (requester.tags) {
      use(machine_.server_of(leg.initiator, *requester.tags), round_trip.as_s() / request);
      if (requester.places) {
        use(machine_.server_of(leg.initiator, *requester.places),
            (round_trip + requester.keeps_place).as_s() / request);
      }
    } else if (leg.by_copy_engine) {
      cap(Bandwidth::bytes_per_s(in_flight(leg).as_double() / round_trip.as_s()),
          {"copy engine's reads in flight", fabric_.full_name(leg.initiator)});
    } else {
      use_sm_loads(leg, round_trip + own_load_);
    }
    if (leg.trip == Leg::Trip::kSteady) return;
    // One trip's threads ask for their own memory's once these have come.
    head(requester.read_cause, leg.initiator,
         leg.trip == Leg::Trip::kOne ? round_trip + own_load_ : round_trip);
  }

  /// `loads`: for how long one is under way, with those before it that the same threads wait for.
  void use_sm_loads(const Leg& leg, Duration loads) {
    const ThreadBlocks& blocks = *model(leg.initiator).blocks;
    if (leg.trip != Leg::Trip::kOne) {
      cap(Bandwidth::bytes_per_s(in_flight(leg).as_double() / loads.as_s()),
          {"SM loads of host memory in flight", fabric_.full_name(leg.initiator)});
    }
    if (leg.flags != Leg::Flags::kNone) return;
    use(sm_loads_of(machine_, leg.initiator, number_),
        1e9 * loads.as_s() / blocks.far_loads.as_double());
  }

  Duration round_trip_of(const DmaRoutes& routes, DeviceId initiator, DeviceId target) const {
    return crossing_time(machine_, initiator, routes.request) +
           crossing_time(machine_, target, routes.completion) + model(target).memory->read_latency;
  }

  /// A work queue element that does not come with its doorbell is read from host memory.
  void head_wqe_fetch(DeviceId nic) {
    const DeviceId cpu = fabric_.root_cpu(nic);
    const std::optional<DmaRoutes> routes = dma_routes(machine_, nic, cpu, true);
    if (routes) head("WQE fetch", nic, round_trip_of(*routes, nic, cpu));
  }

  /// Of an emulated NIC's message, which is two legs: the sender's is paced by all links but the
  /// last, the receiver's by that one. Its data have no headers; its latency lies between the two.
  static Route paced_by(const Leg& leg, Route route) {
    if (leg.initiator == leg.source) {
      route.pop_back();
      return route;
    }
    return {route.back()};
  }

  /// Over how many routes a message is laid: its queue pairs', or all where the load is spread.
  std::uint64_t routes_of(const Leg& leg) const {
    constexpr std::uint64_t kMostRoutes = 4096;
    if (!machine_.routing().spread()) return machine_.routing().queue_pairs();
    const std::uint64_t ways = fabric_.wire_ways(leg.source, leg.sink);
    if (ways > kMostRoutes) {
      const NetworkSpec& network = fabric_.spec().network;
      throw InputError(network.place, network.name + ": " + std::to_string(ways) +
                                          " routes between two NICs are too many to spread a "
                                          "message over; wire.routing=ecmp picks one of them");
    }
    return std::max<std::uint64_t>(ways, 1);  // no route is refused below
  }

  /// The latency is the mean of the routes': in a folded Clos they are alike.
  void add_wire(const Leg& leg) {
    const Adapter& adapter = *model(leg.source).adapter;
    const Routing& routing = machine_.routing();
    const double data = adapter.is_emulated ? 1 : machine_.wire().data_weight();
    const std::uint64_t routes = routes_of(leg);
    const double part = 1.0 / static_cast<double>(routes);
    Duration latency;
    for (std::uint64_t i = 0; i < routes; ++i) {
      const std::uint64_t pick = routing.route_of_part(leg.source, leg.sink, leg.connection, i);
      const Route route = require_route(
          leg, "network", [&] { return fabric_.wire_route(leg.source, leg.sink, pick); });
      for (const Hop hop : adapter.is_emulated ? paced_by(leg, route) : route) {
        use(machine_.server_of(hop), part * data);
        if (adapter.is_emulated) continue;
        use(machine_.server_of(reversed(hop)), part * machine_.wire().ack_weight());
        latency += machine_.wire_latency(hop.link) + model(end_of(fabric_, hop)).crossing_time();
      }
    }
    if (adapter.is_emulated) return;
    head("doorbell", leg.source, adapter.doorbell_latency);
    if (!adapter.blueflame) head_wqe_fetch(leg.source);
    tail("NIC processing", leg.source, adapter.latency + model(leg.sink).adapter->latency);
    tail("wire and switch latency", leg.source,
         Duration::ps(latency.count_ps() / static_cast<std::int64_t>(routes)));
  }

  const Machine& machine_;
  const Fabric& fabric_;
  std::uint32_t number_;
  Contraction out_;
  std::uint16_t branch_{0};      // of the leg being added
  Duration own_load_{};          // of the GPU's own memory, before those of the host's
  std::optional<Leg> steady_{};  // the loads of the GPU's own memory go trip by trip
  Branches heads_;
  Branches tails_;
};

}  // namespace

DeviceId nvlink_gpu(const Machine& machine, const Leg& leg) {
  return machine.model(leg.source).nvlink ? leg.source : leg.sink;
}

Requester requester_of(const Machine& machine, const Leg& leg) {
  const DeviceModel& m = machine.model(leg.initiator);
  Requester out = *m.requester;
  if (!leg.by_copy_engine) return out;
  const CopyEngine& engine = *m.copies;
  out.read_request = static_cast<double>(engine.request);
  out.write_payload = Requester{}.write_payload;
  out.read_extra = engine.read_extra;
  out.read_cause = "copy engine reads host memory";
  return out;
}

Contraction contract(const Machine& machine, const Walk& walk, std::uint32_t number) {
  Builder builder(machine, number);
  for (const Leg& leg : walk) builder.add(leg);
  const double work = sm_ns_per_byte(machine, walk);
  builder.work(walk.front().initiator, work);
  return builder.take();
}

bool is_far_load(const Leg& leg) {
  return leg.kind == Leg::Kind::kRead && leg.medium == Leg::Medium::kPcie && !leg.by_copy_engine;
}

std::uint32_t threads_of(const ThreadBlocks& blocks, const Leg& leg) {
  return leg.threads != 0 ? leg.threads : blocks.threads;
}

Bytes trip_of(const ThreadBlocks& blocks, const Leg& leg) {
  return trip_of_thread(leg.flags) * threads_of(blocks, leg);
}

Duration sm_load_latency(const ThreadBlocks& blocks, const Leg& leg) {
  return blocks.sm_load_latency + Duration::ps(blocks.sm_miss_time.count_ps() * leg.misses / 100);
}

Bytes sm_in_flight(const ThreadBlocks& blocks, const Leg& leg) {
  if (!is_far_load(leg)) return blocks.in_flight(leg.threads);
  if (leg.flags != Leg::Flags::kNone) return trip_of(blocks, leg);
  return blocks.far_bytes_per_thread * threads_of(blocks, leg);
}

bool copies_over_pcie(const Machine& machine, DeviceId gpu, DeviceId memory) {
  const std::optional<DmaRoutes> routes = dma_routes(machine, gpu, memory, true);
  return !routes ||
         std::any_of(routes->request.begin(), routes->request.end(), [&machine](Hop hop) {
           return machine.fabric().link(hop.link).kind == LinkKind::kPcie;
         });
}

std::uint32_t copy_requests(const Machine& machine, DeviceId gpu, DeviceId memory) {
  const CopyEngine& engine = *machine.model(gpu).copies;
  return copies_over_pcie(machine, gpu, memory) ? engine.tags : engine.c2c_requests;
}

Bytes copy_in_flight(const Machine& machine, const Leg& leg) {
  const DeviceId memory = leg.kind == Leg::Kind::kRead ? leg.source : leg.sink;
  return Bytes{machine.model(leg.initiator).copies->request *
               copy_requests(machine, leg.initiator, memory)};
}

double data_share(const Leg& leg) { return leg.data_only ? data_fraction(leg.flags) : 1; }

double sm_ns_per_byte(const Machine& machine, const Walk& walk) {
  double sum = 0;
  double waits = 0;
  for (const Leg& leg : walk) {
    const auto& blocks = machine.model(leg.initiator).blocks;
    if (!blocks || leg.by_copy_engine) continue;
    // The round trip is the poll: what was waited for is there when it comes back.
    if (is_far_load(leg) && leg.flags != Leg::Flags::kNone) continue;
    sum += 1e9 * data_share(leg) / sm_rate(*blocks, leg).as_bytes_per_s();
    if (leg.trip == Leg::Trip::kSteady && leg.flags == Leg::Flags::kEachLine &&
        leg.medium == Leg::Medium::kLocal) {
      waits = 1e9 * blocks->sm_load_latency.as_s() / trip_of(*blocks, leg).as_double();
    }
  }
  return sum + waits;
}

ServerId sm_of(const Machine& machine, DeviceId gpu, std::uint32_t number) {
  const ThreadBlocks& blocks = *machine.model(gpu).blocks;
  return machine.server_of(gpu, blocks.first_sm + number % blocks.sms);
}

ServerId sm_loads_of(const Machine& machine, DeviceId gpu, std::uint32_t number) {
  const ThreadBlocks& blocks = *machine.model(gpu).blocks;
  return machine.server_of(gpu, blocks.first_sm + blocks.sms + number % blocks.sms);
}

WalkCap solo_limit(const Machine& machine, const Contraction& contraction) {
  std::optional<WalkCap> limit = contraction.cap;
  std::optional<ServerId> first;
  for (const ServerUse& use : contraction.uses) {
    const Bandwidth fill = Bandwidth::bytes_per_s(machine.capacity(use.server) / use.weight);
    if (limit && limit->rate <= fill) continue;
    limit = {fill, {}};
    first = use.server;
  }
  if (!limit) throw std::logic_error("solo_limit: a walk without limits");
  if (first) limit->cause = machine.cause(*first);
  return *limit;
}

}  // namespace weft
