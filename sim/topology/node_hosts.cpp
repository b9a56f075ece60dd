#include "sim/topology/node_hosts.hpp"

namespace weft {

NodeHosts::NodeHosts(const NodeSpec& node) {
  for (const DeviceSpec& device : node.devices) count_ += device.kind == DeviceKind::kCpu ? 1 : 0;
  for (const PeerLinkSpec& link : node.links) {
    if (link.kind != LinkKind::kSocket) continue;
    const std::string_view a = first_cpu(link.a);
    const std::string_view b = first_cpu(link.b);
    if (a == b) continue;
    joined_to_.emplace(a, b);
    --count_;
  }
}

std::string_view NodeHosts::first_cpu(std::string_view cpu) const {
  for (auto at = joined_to_.find(cpu); at != joined_to_.end(); at = joined_to_.find(cpu)) {
    cpu = at->second;
  }
  return cpu;
}

}  // namespace weft
