#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/params/device_params.hpp"
#include "sim/input/nccl_tree.hpp"

namespace weft {

/// A node of a fabric in NCCL's own terms, and what had to be made up for it.
struct FabricAsNccl {
  NcclTree tree;
  std::vector<std::string> notes;
};

/// Why weft cannot say what NCCL decides on a node of this fabric: GPUs that are not NVIDIA's,
/// whose part does not say its compute capability, or more of them than the search is made for. "":
/// it can.
std::string why_not_decided(const Fabric& fabric);

/// The tree that NCCL would find on a node of this fabric: CPUs as NUMA nodes, PCIe switches, GPUs
/// with their NVLinks and C2C links, NICs with their ports, link rates from the parameters. Below
/// each device GPUs stand before NICs, as NCCL adds them. Host bridges are not in NCCL's form.
/// Devices without bus id get one that does not exist in the machine; NUMA affinity is left out,
/// NCCL then reads the system's. NICs that are cabled to nothing are left out.
/// A node whose CPUs no link joins is several hosts of one NVLink domain: each CPU then says which
/// (host_hash), and GPUs and NICs are numbered by host.
/// `gpu_numbers`: what NVML calls each GPU, in their order, where it has others beside those of
/// the fabric; none: their places. Throws InputError at a GPU that why_not_decided() names.
FabricAsNccl nccl_tree_of(const DeviceParams& devices,
                          const std::vector<std::uint32_t>& gpu_numbers = {});

/// What NVML calls each GPU of a node: its number among those of its host.
std::vector<std::uint32_t> gpu_numbers_of(const DeviceParams& devices);

/// The file's text in the strict form that NCCL's own reader accepts: no declaration, comment, tab,
/// entity or line break in a tag. Attributes that NCCL's format does not have are written as they
/// are; elements that it does not have are left out. Throws InputError for values that the reader
/// would not take: more than 255 characters, 16 attributes or 640 children, quotes, < and >.
std::string nccl_tree_text(const NcclTree& tree);

}  // namespace weft
