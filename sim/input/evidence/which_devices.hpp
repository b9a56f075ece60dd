#pragma once

#include <string>

#include "sim/input/evidence/host_view.hpp"

namespace weft {

/// Whether a PCI function is a GPU: a display or accelerator function of NVIDIA or AMD, or one that
/// evidence numbers as a GPU; lspci -tv prints no classes, there its PCI id or name decides, else
/// its vendor and place. The VGA of most management controllers is of neither.
bool is_gpu(const HostView& view, const std::string& function, bool is_numbered);

/// Whether a PCI function is a NIC: of a network, and does RDMA, as a verbs device is it or by what
/// it is. Of other vendors' network controllers most are a host's Ethernet, and so is Amazon's
/// Elastic Network Adapter.
bool is_nic(const HostView& view, const std::string& function, bool is_verbs_device);

/// Whether it is a GPU or NIC by its vendor and place alone: lspci -tv has its number, and neither
/// that nor anything else says what it is.
bool is_by_number(const HostView& view, const std::string& function);

/// Whether it is one of SR-IOV's by what lspci calls it.
bool is_virtual_function(const HostView& view, const std::string& function);

}  // namespace weft
