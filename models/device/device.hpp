#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/params/device_params.hpp"
#include "sim/base/units.hpp"

namespace weft {

/// What the capacity of a server counts.
enum class ServerUnit : std::uint8_t {
  kBytesPerSecond,    ///< it serves bytes, one after the other
  kBytesInFlight,     ///< each byte is held for a time: buffers
  kRequestsInFlight,  ///< each request is held for a time: tags, page walkers
  kPerSecond,         ///< it serves things whatever their bytes, one after the other
  kWork               ///< each byte is worked on for some nanoseconds, of 1e9 a second: an SM
};

/// A limit that several transfers share, as its device declares it: once, for both transports.
struct ServerSpec {
  std::string kind;  ///< as reports name it: "DRAM of a socket"
  ServerUnit unit{ServerUnit::kBytesPerSecond};
  double capacity{0};        ///< more than 0
  bool of_all_hosts{false};  ///< the first host's serves all
  bool of_root_port{false};  ///< that of the root complex above the device
};

/// A server among those of its device.
using ServerNumber = std::uint32_t;

/// Which DMAs a limit on their way is for.
enum class Traffic : std::uint8_t {
  kTranslated,        ///< an IOMMU translates their addresses
  kStrictWrites,      ///< to memory, without relaxed ordering
  kStrictPeerWrites,  ///< to another device, without relaxed ordering
  kPeerWrites,        ///< to another device, through a root complex
  kPeerReads          ///< of another device, through a root complex
};

/// A server that some of the traffic through a device takes.
struct Limit {
  Traffic traffic;
  ServerNumber server;
};

/// The port of a device towards the root of its PCIe tree, and the link above it.
struct PciePort {
  int generation{5};  ///< of the link as it runs now
  int width{16};      ///< its lanes as it runs now
  Bandwidth rate{Bandwidth::gigabytes_per_s(1)};
  std::uint32_t acs{0};     ///< ACS bits of the port above, or acs::kAsSwitch
  std::uint32_t egress{0};  ///< its egress control vector, or kEgressAsSwitch
  /// Of the root port above, where one is: servers of this device's own.
  std::vector<Limit> limits{};
};

/// Memory that other devices reach over PCIe: a socket's DRAM, a GPU's behind BAR1.
struct TargetMemory {
  std::optional<ServerNumber> server{};   ///< of bytes; none: it takes everything at once
  double read_weight{1};                  ///< bytes of the server for a byte that a device reads
  double write_weight{1};                 ///< and for one that it writes
  Duration read_latency{};                ///< from a read request at the device to its completion
  Duration write_latency{};               ///< from a write at the device until it is visible
  std::optional<ServerNumber> answers{};  ///< requests that it answers at a time; none: any number
  double completion_payload{256};         ///< data of a completion
  std::int64_t completion_boundary{128};  ///< PCIe Base 2.3.1.1: 64 or 128 B, endpoints 128 B
  Bytes page{4096};                       ///< by which an IOMMU maps it
};

/// A device that passes packets on.
struct Crossing {
  Duration latency{};                       ///< one way
  bool cut_through{true};                   ///< else it takes each packet whole
  std::vector<Limit> limits{};              ///< of peer traffic through it
  std::uint32_t acs{0};                     ///< ACS bits of the ports below
  bool acs_egress_named{true};              ///< their egress control vectors name every peer port
  std::optional<ServerNumber> doorbells{};  ///< that it lets through; none: all at once
};

enum class IommuMode : std::uint8_t { kOff, kPassthrough, kTranslate };
enum class PeerSupport : std::uint8_t { kNone, kFull, kWritesOnly };

/// A root complex: it turns peer traffic round, and may translate.
struct RootComplex {
  /// What each of its root ports has: declared once, a server for each port.
  struct PortLimit {
    Traffic traffic;
    ServerSpec server;
  };

  PeerSupport peers{PeerSupport::kFull};
  double peer_payload{4096};  ///< data of a TLP that it issues for peer traffic
  std::vector<PortLimit> port_limits{};
  IommuMode iommu{IommuMode::kOff};
  Duration page_walk{};
  std::size_t iotlb_entries{64};  ///< of each root port
  std::size_t page_walkers{1};    ///< of each root port
  Bytes working_set{0};           ///< that devices below one root port access in turn
  Bandwidth socket_rate{Bandwidth::gigabytes_per_s(1)};  ///< of one link to another socket
  Duration socket_latency{};
  Bytes memlock_limit{0};  ///< host memory that a process may register; 0: any
  /// At which one thread copies host memory.
  Bandwidth memcpy_rate{Bandwidth::gigabytes_per_s(1)};

  /// Share of accesses to pages of `page` whose translation is not in the IOTLB.
  double iotlb_miss_share(Bytes page) const;
};

/// A device that begins DMAs, as far as plans have it do so: a NIC, the SMs of a GPU; a CPU, whose
/// threads store to devices.
struct Requester {
  double read_request{512};  ///< data that one read asks for
  /// Data of a write, if less than Max_Payload_Size.
  double write_payload{std::numeric_limits<double>::infinity()};
  std::optional<ServerNumber> tags{};  ///< reads in flight of the whole device; none: of a thread
  std::uint32_t tag_count{0};
  std::optional<ServerNumber> places{};  ///< for what is asked for or here, if these may be too few
  Duration keeps_place{};                ///< what came
  Duration read_extra{};                 ///< of each read, inside the device
  Duration write_extra{};                ///< of each write likewise, one way
  std::string_view read_cause{};         ///< a read's round trip, as reports name it
  bool relaxed_ordering{true};
  bool may_be_strict{false};  ///< its writes take part in strict ordering at a root port
  bool ats{false};
};

/// A GPU's thread blocks, and the streaming multiprocessors (SMs) that run them, one each.
struct ThreadBlocks {
  ServerNumber first_sm{0};
  std::uint32_t sms{1};
  Bandwidth sm_load{Bandwidth::gigabytes_per_s(1)};        ///< of one SM, of its GPU's memory
  Bandwidth sm_store{Bandwidth::gigabytes_per_s(1)};       ///< likewise
  Bandwidth sm_peer_store{Bandwidth::gigabytes_per_s(1)};  ///< beyond its GPU
  Bandwidth sm_poll{Bandwidth::gigabytes_per_s(1)};        ///< of words with flags, flags included
  /// Of a user's buffer word by word, as its flags come with them; elements of 4 B or more, of 1 B.
  Bandwidth sm_word_load{Bandwidth::gigabytes_per_s(1)};
  Bandwidth sm_word_store{Bandwidth::gigabytes_per_s(1)};
  Bandwidth sm_byte_store{Bandwidth::gigabytes_per_s(1)};
  double sm_line_share{1};          ///< of these rates, where each line has its flag
  Duration sm_load_latency{};       ///< until a kernel's first load is there
  Duration sm_miss_time{};          ///< more of one that the L2 cache does not have
  Bytes line{128};                  ///< data of one load or store beyond the GPU
  Bytes bytes_per_thread{64};       ///< that one thread keeps in flight
  Bytes far_bytes_per_thread{128};  ///< likewise, of loads beyond the GPU
  Bytes far_loads{32768};           ///< that one SM keeps in flight of these
  std::uint32_t threads{512};       ///< of a block
  Duration load_latency{};          ///< of the GPU's own memory
  Duration post_time{};             ///< a thread's work for one work queue element
  Duration fence_time{};
  bool send_queues_in_gpu{true};

  /// Bytes that so many threads keep in flight; 0 threads: a whole block.
  Bytes in_flight(std::uint32_t of_threads) const {
    return bytes_per_thread * (of_threads != 0 ? of_threads : threads);
  }
};

/// One copy engine of a GPU; there is one for each memory beyond it and direction.
struct CopyEngine {
  std::optional<Bandwidth> rate{};  ///< of writes; none: its link is the limit
  std::int64_t request{256};
  std::uint32_t tags{768};           ///< of PCIe
  std::uint32_t c2c_requests{4096};  ///< likewise in flight where no PCIe link is crossed
  Duration start{};
  Duration read_extra{};
};

/// How a GPU joins NVLink, NVLink-C2C and xGMI.
struct NvlinkPort {
  Bandwidth nvlink_rate{Bandwidth::gigabytes_per_s(1)};  ///< of one link, one way
  Bandwidth c2c_rate{Bandwidth::gigabytes_per_s(1)};
  Bandwidth xgmi_rate{Bandwidth::gigabytes_per_s(1)};
  Bytes overhead{32};   ///< of one packet
  Duration latency{};   ///< a store until the peer sees it
  Bytes buffer{16384};  ///< that receives, of one link
};

enum class PeerMapping : std::uint8_t { kNone, kNvidiaPeermem, kDmaBuf, kNvPeerMem };

/// The window through which PCIe peers reach a GPU's memory.
struct Bar1 {
  Bytes size{0};
  Bytes used{0};
  PeerMapping mapping{PeerMapping::kNone};
  std::string_view mapping_word{};
  bool open_modules{true};
  Duration pin_time{};
};

/// A NIC: from a doorbell to a completion, and what registering memory with it takes.
struct Adapter {
  Bandwidth rate{Bandwidth::gigabytes_per_s(1)};
  Duration latency{};
  Duration doorbell_latency{};
  Duration completion_latency{};
  ServerNumber elements{0};  ///< work queue elements of all its queue pairs
  Duration qp_wqe_time{};    ///< between two elements of one queue pair
  Bytes wqe_bytes{64};
  Bytes cqe_bytes{64};
  bool blueflame{true};
  Bytes inline_max{0};
  Bytes send_buffer{0};
  std::uint32_t max_reads{16};
  Bytes icm_cache{0};
  Bytes qp_context{0};
  std::uint32_t icm_fetches{16};
  Duration post_time{};
  Duration doorbell_time{};
  Duration cqe_time{};
  Duration receive_time{};
  Duration poll_time{};
  bool is_emulated{false};
  double cable_loss{0};
  Duration flap_at{};
  Duration flap_time{};
  bool gdr{true};
  bool peer_memory_api{true};
  bool dma_buf{true};
  Bytes host_page{4096};
  Bytes dma_buf_page{4096};
  Duration register_time{};
  Duration register_page_time{};
};

/// A switch of the network.
struct NetworkSwitch {
  Duration uplink_latency{};               ///< one way over a link to the tier above
  std::optional<Bandwidth> uplink_rate{};  ///< none: as the fastest NIC's link
  Bandwidth capacity{Bandwidth::gigabytes_per_s(1)};
  Duration local_latency{};               ///< one way over a link to a switch beside it
  std::optional<Bandwidth> local_rate{};  ///< none: as the fastest NIC's link
};

/// What a device is, resolved once and then constant: the facets that it has. Transports look at
/// facets, never at kinds, so a new kind of device is nothing new to them.
struct DeviceModel {
  std::string_view word;  ///< as reports call its kind: "GPU"
  double mps{4096};       ///< Max_Payload_Size as set; of a root complex: of its ports
  std::optional<PciePort> port{};
  std::optional<TargetMemory> memory{};
  std::optional<Crossing> crossing{};
  std::optional<RootComplex> root{};
  std::optional<Requester> requester{};
  std::optional<ThreadBlocks> blocks{};
  std::optional<CopyEngine> copies{};
  std::optional<NvlinkPort> nvlink{};
  std::optional<Bar1> bar1{};
  std::optional<Adapter> adapter{};
  std::optional<NetworkSwitch> network{};
  std::vector<ServerSpec> servers{};

  ServerNumber add_server(ServerSpec server) {
    servers.push_back(std::move(server));
    return static_cast<ServerNumber>(servers.size() - 1);
  }
  /// Time to cross it; none if it is not crossed.
  Duration crossing_time() const { return crossing ? crossing->latency : Duration{}; }
};

/// A kind of device: everything that weft knows of it is behind this one row of the registry.
struct DeviceRoom {
  std::string_view kind;  ///< its word in topology files and the scope of its parameters
  DeviceKind place;       ///< what it is in a Fabric
  std::vector<std::span<const ParamSpec>> params;
  /// What one device is by its parameters. Throws InputError: values that cannot be together.
  DeviceModel (*resolve)(const DeviceParams& params, DeviceId device);
};

}  // namespace weft
