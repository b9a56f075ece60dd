#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/params.hpp"

namespace weft {

/// The kinds of device a fabric is made of. A kind's word is also the scope of its parameters.
enum class DeviceKind : std::uint8_t { kCpu, kSwitch, kGpu, kNic, kNvSwitch, kNetSwitch };
/// "cpu", "switch" (PCIe), "gpu", "nic", "nvswitch", "netswitch".
std::string_view device_kind_name(DeviceKind kind);

/// The kinds of link. PCIe links are not listed in a NodeSpec: each device's `upstream` is one.
enum class LinkKind : std::uint8_t { kPcie, kSocket, kNvlink, kC2c, kWire, kXgmi };
/// "pcie", "socket" (UPI, xGMI, C2C between CPUs), "nvlink", "c2c" (GPU to CPU), "wire", "xgmi"
/// (between AMD GPUs).
std::string_view link_kind_name(LinkKind kind);

/// One device of a node as a topology file states it.
struct DeviceSpec {
  std::string name;  ///< unique in the node, e.g. "gpu0"
  DeviceKind kind{DeviceKind::kCpu};
  std::string model{};      ///< which model of that kind ("virtual-root"); "" means the usual one
  std::string part;         ///< names a file of models/params, e.g. "h100-sxm"; "" if unknown
  std::string upstream;     ///< the device above on the PCIe tree; "" for CPUs and NVSwitches
  std::string host_bridge;  ///< below a CPU: its host bridge; "" means one of its own
  std::string port_of;      ///< NICs: the NIC of which this is a further port, behind its PCIe link
  std::string network;      ///< NICs: the network its port is cabled to; "none" if it is not
  std::string bus_id;       ///< PCI bus id as the source gives it, "" if unknown
  ParamValues settings;     ///< what the file says of this device, by parameter name
  Place place;
  std::string product{};  ///< of a GPU without a part: what its tools call it

  /// The scope of its parameters: the word of its model, else of its kind.
  std::string_view scope() const { return model.empty() ? device_kind_name(kind) : model; }
};

/// A link between two devices of a node that is not part of the PCIe tree.
struct PeerLinkSpec {
  LinkKind kind{LinkKind::kNvlink};
  std::string a;
  std::string b;
  std::uint32_t count{1};  ///< parallel links (18 NVLinks, 4 UPI links)
  Place place;
};

/// One kind of node; every node of a fabric is a copy of it.
struct NodeSpec {
  std::vector<DeviceSpec> devices;
  std::vector<PeerLinkSpec> links;
};

/// What a file says of one tier of a network's switches.
struct NetworkTierSpec {
  std::string part{};      ///< "" means the network's
  ParamValues settings{};  ///< by parameter name, as a device's
  Place place{};
};

/// The tiers of a folded Clos whose switches have others above them, from the lowest up.
inline constexpr std::array<std::string_view, 2> kTiersWithUplinks{"leaf", "spine"};

/// A switch with uplinks: its tier, and its number among the switches of that tier.
struct UplinkedSwitch {
  std::uint32_t tier{0};
  std::uint32_t number{0};

  /// "leaf3", "spine5".
  std::string name() const;
  friend auto operator<=>(const UplinkedSwitch&, const UplinkedSwitch&) = default;
};

/// How many uplinks of switches are down.
using FailedUplinks = std::map<UplinkedSwitch, std::uint32_t>;

/// How nodes are joined: not at all, by one crossbar switch of any size, by a folded Clos of up to
/// three tiers (leaf, spine, core), by groups of switches that are joined to each other (dragonfly)
/// or by rings of switches (torus). What is left out is derived; see FoldedClos, Dragonfly, Torus.
struct NetworkSpec {
  enum class Kind : std::uint8_t {
    kNone,
    kOneSwitch,
    kLeafSpine,      ///< all NICs of a node on one leaf
    kRailOptimised,  ///< the i-th NIC of each node on the leaf of rail i
    kFatTree,        ///< three tiers; all NICs of a node on one leaf
    kDragonfly,      ///< groups of leaves, each joined to each, and each group to each
    kDragonflyPlus,  ///< groups of leaves and spines; spines join each group to each
    kTorus,          ///< rings of leaves in each dimension
  };
  /// Which leaves node after node is cabled to: one filled before the next, or all in turn.
  enum class Placement : std::uint8_t { kPacked, kRoundRobin };
  /// What joins the leaves of a rack besides the tiers above: nothing, a ring, or all to all.
  enum class Inside : std::uint8_t { kTree, kRing, kClique };
  /// Which routes a dragonfly's messages take between groups: over the fewest global links, or over
  /// a third group each (Valiant).
  enum class Paths : std::uint8_t { kMinimal, kValiant };

  Kind kind{Kind::kNone};
  std::string name{};  ///< what NICs name in `network`
  std::string part{};  ///< the switches' part
  Place place{};

  Placement placement{Placement::kPacked};
  std::optional<std::uint32_t> tiers{};      ///< of a rail-optimised network: 1 to 3
  std::optional<std::uint32_t> ports{};      ///< of each switch
  std::optional<std::uint32_t> leaf_down{};  ///< ports of a leaf for NICs
  std::optional<std::uint32_t> leaf_up{};    ///< ports of a leaf for uplinks
  std::optional<double> oversubscription{};  ///< of a leaf: ports down for each port up
  std::optional<std::uint32_t> spines{};     ///< in a network of three tiers: of each pod
  std::optional<std::uint32_t> spine_down{};
  std::optional<std::uint32_t> spine_up{};
  std::optional<double> spine_oversubscription{};
  std::optional<std::uint32_t> cores{};
  std::optional<std::uint32_t> planes{};       ///< networks apart, each with its share of the NICs
  std::optional<std::uint32_t> node_leaves{};  ///< over which a node's NICs are spread
  Inside inside{Inside::kTree};
  std::optional<std::uint32_t> rack_leaves{};   ///< that `inside` joins
  std::optional<std::uint32_t> group_leaves{};  ///< of a dragonfly's group
  std::optional<std::uint32_t> groups{};
  std::optional<std::uint32_t> locals{};   ///< links between two leaves that are joined
  std::optional<std::uint32_t> globals{};  ///< ports for other groups, of a leaf (plus: a spine)
  Paths paths{Paths::kMinimal};
  std::vector<std::uint32_t> dims{};  ///< of a torus: leaves along each dimension
  /// Of a folded Clos: how many uplinks are down, of leaves and, where cores are above, spines.
  FailedUplinks failed_uplinks{};
  NetworkTierSpec leaf{};
  NetworkTierSpec spine{};
  NetworkTierSpec core{};
};

/// "one-switch", "leaf-spine", "rail-optimised", "fat-tree", "dragonfly", "dragonfly-plus",
/// "torus"; "none".
std::string_view network_kind_name(NetworkSpec::Kind kind);

/// A topology file as read: plain data, checked by Fabric's constructor.
struct TopologySpec {
  std::string name;
  std::string source;  ///< where the description comes from
  std::string file;
  std::uint64_t digest{0};          ///< FNV-1a of the text that was read
  std::uint64_t content_digest{0};  ///< of YAML its Yaml::digest(), which comments do not change
  std::uint32_t nodes{1};           ///< how many nodes unless a scenario says otherwise
  NodeSpec node;
  NetworkSpec network;
  ParamValues defaults;            ///< by full key: what the file says for all devices
  bool nvlinks_unknown{false};     ///< the file leaves the GPUs' NVLinks to be found on the machine
  std::vector<std::string> notes;  ///< what the reader had to assume, for the user to see
};

}  // namespace weft
