#include "models/nic/nic_dma.hpp"

#include "sim/base/error.hpp"

namespace weft {

void NicDma::on_dma_timeout(std::uint64_t /*tag*/) {
  throw InputError("a NIC's read was never completed: a root complex dropped it");
}

}  // namespace weft
