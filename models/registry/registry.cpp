#include "models/registry/registry.hpp"

#include <array>

#include "models/gpu/bar1.hpp"
#include "models/gpu/copy_engine.hpp"
#include "models/gpu/memory.hpp"
#include "models/gpu/nvlink.hpp"
#include "models/gpu/sm_copy.hpp"
#include "models/gpu/sm_post.hpp"
#include "models/host/dram.hpp"
#include "models/host/iommu.hpp"
#include "models/host/root_complex.hpp"
#include "models/host/socket_link.hpp"
#include "models/nccl/execute/protocol.hpp"
#include "models/nic/dma.hpp"
#include "models/nic/icm.hpp"
#include "models/nic/rdma_params.hpp"
#include "models/nic/registration.hpp"
#include "models/pcie/link.hpp"
#include "models/pcie/switch.hpp"
#include "models/pcie/tlp.hpp"
#include "models/perftest/params.hpp"
#include "models/wire/dcqcn.hpp"
#include "models/wire/link.hpp"
#include "models/wire/packets.hpp"

namespace weft {

ParamCatalog make_catalog() {
  using Table = std::span<const ParamSpec>;
  const std::array tables{Table{kPcieParams},         Table{kPcieFlowControlParams},
                          Table{kPcieSwitchParams},   Table{kDramParams},
                          Table{kRootComplexParams},  Table{kSocketLinkParams},
                          Table{kGpuMemoryParams},    Table{kBar1Params},
                          Table{kCopyEngineParams},   Table{kIommuParams},
                          Table{kNvlinkParams},       Table{kSmCopyParams},
                          Table{kSmPostParams},       Table{kNicParams},
                          Table{kNicPacketParams},    Table{kIcmParams},
                          Table{kRegistrationParams}, Table{kWireParams},
                          Table{kWirePacketParams},   Table{kDcqcnParams},
                          Table{kStagingParams},      Table{kNcclParams}};
  return ParamCatalog{tables};
}

}  // namespace weft
