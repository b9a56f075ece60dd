#include "models/registry/registry.hpp"

#include <vector>

#include "models/explain/params.hpp"
#include "models/machine/rooms.hpp"
#include "models/nccl/execute/launches.hpp"
#include "models/nccl/execute/protocol.hpp"
#include "models/pcie/link.hpp"
#include "models/pcie/tlp.hpp"
#include "models/perftest/params.hpp"
#include "models/wire/dcqcn.hpp"
#include "models/wire/link.hpp"
#include "models/wire/packets.hpp"

namespace weft {

ParamCatalog make_catalog() {
  // What belongs to no device: links, the network's protocol, NCCL, programs.
  std::vector<std::span<const ParamSpec>> tables{
      kPcieParams,       kPcieFlowControlParams, kWireParams,
      kWirePacketParams, kDcqcnParams,           kStagingParams,
      kNcclParams,       kLaunchParams,          kExplainParams};
  for (const DeviceRoom& room : device_rooms()) {
    tables.insert(tables.end(), room.params.begin(), room.params.end());
  }
  return ParamCatalog{tables};
}

}  // namespace weft
