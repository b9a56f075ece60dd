#pragma once

#include <cstdint>
#include <string>

#include "models/machine/machine.hpp"
#include "models/nic/registration.hpp"

namespace weft {

/// What a NIC lacks to reach a GPU's memory; both empty if nothing.
struct MemoryLack {
  std::string error;  ///< what registering says; "" if it succeeds and the transfer fails
  std::string why;
};

/// What mapping the GPU's memory for the NIC lacks: an offer of the NIC, a module, what that needs.
MemoryLack peer_memory_lack(const Machine& machine, DeviceId gpu, DeviceId nic);

/// The page by which a NIC's translations name memory: by a peer memory client the GPU's own, by
/// DMA-BUF what the NIC's driver makes of it.
Bytes registered_page(const Machine& machine, DeviceId memory, DeviceId nic);

/// What ibv_reg_mr, or ibv_reg_dmabuf_mr, says to a buffer.
struct Registration {
  Bytes bytes;  ///< with what rounds it up to whole pages
  Bytes page;   ///< of the NIC's translations
  std::int64_t pages{0};
  Duration time;
  Bytes bar1_used;    ///< of a GPU, with this buffer
  std::string error;  ///< "ENOMEM"; "" if it succeeds
  std::string why;    ///< of the error
};

/// Registers a buffer in the memory of a GPU, or of a CPU's socket, with a NIC of its node. The
/// buffer begins at a page.
/// Errors: EFAULT where nobody tells the kernel that the address is a GPU's (no peer memory
/// client), EOPNOTSUPP without DMA-BUF in the GPU's or the NIC's driver, ENOMEM where BAR1 or the
/// limit of locked memory is full.
Registration register_memory(const Machine& machine, DeviceId memory, DeviceId nic, Bytes bytes);

}  // namespace weft
