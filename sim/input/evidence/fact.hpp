#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"

namespace weft {

/// One thing that a piece of evidence says, and where.
struct Fact {
  std::string host;     ///< "" where the evidence names none
  std::string subject;  ///< whom it is said of, in one of the forms below
  std::string what;     ///< one of namespace fact, or one of its prefixes with a name behind it
  std::string value;
  Place place;
};

/// What is said. Subjects are a PCI function ("0000:18:00.0"), a GPU by nvidia-smi's number
/// ("gpu0"), a NIC by its verbs name ("mlx5_0"), a NIC by topo -m's number ("nic0"), a CPU by its
/// NUMA node ("numa0"), a switch or adapter of a network by its GUID, or "host", "nccl".
namespace fact {

// PCI functions.
inline constexpr std::string_view kClass = "class";   ///< four hexadecimal digits: "0302"
inline constexpr std::string_view kPciId = "PCI id";  ///< "10de:2330"
inline constexpr std::string_view kProduct = "product";
inline constexpr std::string_view kNumberAlone = "number alone";  ///< yes: lspci -tv has no name
inline constexpr std::string_view kPort = "port";  ///< root, upstream, downstream, switch, bridge
inline constexpr std::string_view kParent = "parent";  ///< the bridge above
inline constexpr std::string_view kRootBus = "root bus";
inline constexpr std::string_view kBusAlone = "bus alone";  ///< its domain and device are assumed
inline constexpr std::string_view kNuma = "NUMA node";
inline constexpr std::string_view kProcessors = "CPU affinity";  ///< "0-47,96-143"
inline constexpr std::string_view kGen = "PCIe generation";      ///< what it can do
inline constexpr std::string_view kWidth = "PCIe lanes";
inline constexpr std::string_view kTrainedGen = "trained generation";
inline constexpr std::string_view kTrainedWidth = "trained lanes";
inline constexpr std::string_view kMps = "MaxPayload";           ///< bytes, as set
inline constexpr std::string_view kMpsAble = "MaxPayload able";  ///< bytes, what it can do
inline constexpr std::string_view kMrrs = "MaxReadReq";
inline constexpr std::string_view kRelaxedOrdering = "relaxed ordering";  ///< on, off
inline constexpr std::string_view kExtendedTags = "extended tags";
inline constexpr std::string_view kAcs = "ACS";    ///< "SV+RR+CR+UF", "none"
inline constexpr std::string_view kBar1 = "BAR1";  ///< bytes
inline constexpr std::string_view kBar1Used = "BAR1 used";
inline constexpr std::string_view kDriver = "driver";
inline constexpr std::string_view kLinkRate = "link GB/s";         ///< hwloc's, of the link above
inline constexpr std::string_view kNcclPcie = "NCCL's PCIe GB/s";  ///< of the link above
inline constexpr std::string_view kNcclNvlink = "NCCL's NVLink GB/s to ";  ///< + a device
inline constexpr std::string_view kDenied = "capabilities denied";         ///< lspci without root

// GPUs and NICs by name.
inline constexpr std::string_view kBusId = "bus id";
inline constexpr std::string_view kNvlinks = "NVLinks";
inline constexpr std::string_view kRate = "rate";                ///< Gb/s
inline constexpr std::string_view kLinkLayer = "link layer";     ///< InfiniBand, Ethernet
inline constexpr std::string_view kState = "state";              ///< up, down
inline constexpr std::string_view kPhysical = "physical state";  ///< ibstat's: LinkUp, Polling
inline constexpr std::string_view kMtu = "MTU";                  ///< bytes
inline constexpr std::string_view kGdr = "GPUDirect RDMA";       ///< on, off
inline constexpr std::string_view kCollnet = "CollNet";          ///< on, off
inline constexpr std::string_view kDmaBuf = "DMA-BUF";           ///< on
inline constexpr std::string_view kNetIndex = "NCCL net";        ///< NCCL's number of it
inline constexpr std::string_view kPath = "path to ";            ///< + a device: topo -m's class
inline constexpr std::string_view kNcclPath = "NCCL path to ";   ///< + a device: NCCL's type
inline constexpr std::string_view kMst = "MST device";           ///< "/dev/mst/mt4129_pciconf0"
inline constexpr std::string_view kMstFolder = "/dev/mst/";      ///< what all of them begin with
inline constexpr std::string_view kCounter = "counter ";         ///< + its name
inline constexpr std::string_view kLink = "NVLink to ";          ///< + a device: how many

// The host.
inline constexpr std::string_view kEnv = "env ";               ///< + the variable
inline constexpr std::string_view kModule = "module ";         ///< + its name: loaded
inline constexpr std::string_view kVersion = "version ";       ///< + of what
inline constexpr std::string_view kIommu = "IOMMU";            ///< off, passthrough, translate
inline constexpr std::string_view kCpu = "CPU model";          ///< "GenuineIntel 6 143"
inline constexpr std::string_view kHypervisor = "hypervisor";  ///< of a guest: "KVM"
inline constexpr std::string_view kBoot = "boot ";             ///< + an option of the kernel
inline constexpr std::string_view kKernelModules = "kernel modules";  ///< open, proprietary
inline constexpr std::string_view kNodes = "nodes";
inline constexpr std::string_view kSockets = "sockets";       ///< as lscpu counts them
inline constexpr std::string_view kNumaNodes = "NUMA nodes";  ///< the same: with processors
inline constexpr std::string_view kRanks = "ranks";           ///< of one of NCCL's communicators
inline constexpr std::string_view kLog = "log ";       ///< + what NCCL decided, as it says it
inline constexpr std::string_view kAlert = "alert";    ///< what the kernel complains of, or NCCL:
inline constexpr std::string_view kOfNccl = "NCCL: ";  ///< what its warnings begin with

// Networks.
inline constexpr std::string_view kNode = "node";  ///< "switch 40", "adapter 1": and its ports
inline constexpr std::string_view kName = "name";
inline constexpr std::string_view kCable = "cable ";  ///< + own port: "GUID port"

}  // namespace fact

/// The most facts that are taken of one import: bounds memory.
inline constexpr std::size_t kMostFacts = 1U << 20;

/// The facts of some evidence, in its order. What is said twice in the same words counts once.
class Facts {
 public:
  /// Throws InputError beyond kMostFacts.
  void add(Fact fact);
  const std::vector<Fact>& all() const { return all_; }
  /// Gives what is said of a MST device to the NIC that it is of, where a fact kMst tells.
  void name_mst_devices();
  /// How often something was said, again or not.
  std::size_t times_said() const { return times_said_; }

  /// All that is said of it on a host, in order.
  std::vector<const Fact*> find(const std::string& host, const std::string& subject,
                                std::string_view what) const;
  /// The first, or nullptr.
  const Fact* first(const std::string& host, const std::string& subject,
                    std::string_view what) const;
  /// Facts of a host whose `what` begins so, by subject.
  std::vector<const Fact*> beginning(const std::string& host, std::string_view what) const;
  /// The hosts, sorted.
  std::vector<std::string> hosts() const;

 private:
  using Key = std::pair<std::string, std::string>;  // host, subject
  std::size_t times_said_{0};
  std::vector<Fact> all_;
  std::map<Key, std::map<std::string, std::vector<std::size_t>, std::less<>>> index_;
};

/// "0000:18:00.0" of what tools write: "18:00.0", "00000000:18:00.0", "0000:18:00.0" in either
/// case; "" if it is none.
std::string bus_id_of(std::string_view text);
/// The function that a name says by its place, as the kernel's netdevs and rdma-core's devices are
/// called: "enp179s0f0np0", "rocep179s0f0", "ibP2p3s0"; "" of others, and of virtual functions'.
std::string bus_id_of_name(std::string_view name);
/// The same of NCCL's number: 0x18000 is 0000:18:00.0.
std::string bus_id_of_number(std::uint64_t number);

}  // namespace weft
