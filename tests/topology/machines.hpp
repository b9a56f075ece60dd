#pragma once

#include <string>

#include "sim/topology/spec.hpp"

namespace weft::test {

inline DeviceSpec device(std::string name, DeviceKind kind, std::string upstream = "") {
  DeviceSpec spec;
  spec.name = std::move(name);
  spec.kind = kind;
  spec.upstream = std::move(upstream);
  return spec;
}
inline DeviceSpec cpu(std::string name) { return device(std::move(name), DeviceKind::kCpu); }
inline DeviceSpec pcie_switch(std::string name, std::string upstream) {
  return device(std::move(name), DeviceKind::kSwitch, std::move(upstream));
}
inline DeviceSpec gpu(std::string name, std::string upstream) {
  return device(std::move(name), DeviceKind::kGpu, std::move(upstream));
}
inline DeviceSpec nic(std::string name, std::string upstream, std::string network = "fabric") {
  DeviceSpec spec = device(std::move(name), DeviceKind::kNic, std::move(upstream));
  spec.network = std::move(network);
  return spec;
}
inline PeerLinkSpec peer(LinkKind kind, std::string a, std::string b, std::uint32_t count = 1) {
  return {kind, std::move(a), std::move(b), count, {}};
}

/// Gives every device and link a line of its own, as if read from "f.yaml".
inline TopologySpec placed(TopologySpec spec) {
  spec.file = "f.yaml";
  int line = 0;
  for (DeviceSpec& each : spec.node.devices) each.place = {"f.yaml", ++line, 5};
  for (PeerLinkSpec& each : spec.node.links) each.place = {"f.yaml", ++line, 7};
  return spec;
}

/// Two sockets, three PCIe switches, three GPUs, three NICs:
///
///     cpu0 - sw0 - gpu0, nic0               cpu1 - gpu2
///          - sw1 - nic1
///                - sw2 - gpu1, nic2
///
/// NVLink: gpu0-gpu1 direct (2); gpu0 (4) and gpu1 (3) to an NVSwitch; gpu2 has none.
inline TopologySpec small_machine() {
  TopologySpec spec;
  spec.name = "small";
  spec.node.devices = {cpu("cpu0"),
                       cpu("cpu1"),
                       pcie_switch("sw0", "cpu0"),
                       pcie_switch("sw1", "cpu0"),
                       pcie_switch("sw2", "sw1"),
                       gpu("gpu0", "sw0"),
                       gpu("gpu1", "sw2"),
                       gpu("gpu2", "cpu1"),
                       nic("nic0", "sw0"),
                       nic("nic1", "sw1"),
                       nic("nic2", "sw2", "none"),
                       device("nvs", DeviceKind::kNvSwitch)};
  spec.node.links = {
      peer(LinkKind::kSocket, "cpu0", "cpu1", 3), peer(LinkKind::kNvlink, "gpu0", "nvs", 4),
      peer(LinkKind::kNvlink, "nvs", "gpu1", 3), peer(LinkKind::kNvlink, "gpu0", "gpu1", 2)};
  spec.network = {NetworkSpec::Kind::kOneSwitch, "fabric", "quantum-2", {"f.yaml", 20, 3}};
  return placed(spec);
}

}  // namespace weft::test
