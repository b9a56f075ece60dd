#pragma once

#include <cstdint>
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
enum class LinkKind : std::uint8_t { kPcie, kSocket, kNvlink, kC2c, kWire };
/// "pcie", "socket" (UPI, xGMI, C2C between CPUs), "nvlink", "c2c" (GPU to CPU), "wire".
std::string_view link_kind_name(LinkKind kind);

/// One device of a node as a topology file states it.
struct DeviceSpec {
  std::string name;  ///< unique in the node, e.g. "gpu0"
  DeviceKind kind{DeviceKind::kCpu};
  std::string part;         ///< names a file of models/params, e.g. "h100-sxm"; "" if unknown
  std::string upstream;     ///< the device above on the PCIe tree; "" for CPUs and NVSwitches
  std::string host_bridge;  ///< below a CPU: its host bridge; "" means one of its own
  std::string network;      ///< NICs: the network its port is cabled to; "none" if it is not
  std::string bus_id;       ///< PCI bus id as the source gives it, "" if unknown
  ParamValues settings;     ///< what the file says of this device, by parameter name
  Place place;
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

/// How nodes are joined. One crossbar switch for now; leaf-spine and others build on this.
struct NetworkSpec {
  enum class Kind { kNone, kOneSwitch };
  Kind kind{Kind::kNone};
  std::string name;  ///< what NICs name in `network`
  std::string part;  ///< the switch's part
  Place place;
};

/// A topology file as read: plain data, checked by Fabric's constructor.
struct TopologySpec {
  std::string name;
  std::string source;  ///< where the description comes from
  std::string file;
  std::uint64_t digest{0};  ///< FNV-1a of the text that was read
  std::uint32_t nodes{1};   ///< how many nodes unless a scenario says otherwise
  NodeSpec node;
  NetworkSpec network;
  ParamValues defaults;  ///< by full key: what the file says for all devices
};

}  // namespace weft
