#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/input/xml_text.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// What an NVLink of NCCL's dump leads to, by the PCI class of its end ("tclass"); 0 if none is
/// given.
enum class NvlinkEnd : std::uint8_t { kGpu, kCpu, kSwitch };
NvlinkEnd nvlink_end(std::int64_t target_class);

/// A <gpu> of an NCCL file and what has been made of it.
struct GpuElement {
  std::string name;
  std::string bus_id;
  std::string root_cpu;
  std::size_t host;  ///< 0 but in files of several
  pugi::xml_node gpu;
};

/// The name of the one NVSwitch that stands for all of a node's.
inline constexpr const char* kNcclNvSwitchName = "nvswitch";

/// The NVLink, xGMI and C2C links that the GPUs list: first those to the NVSwitch and the CPU, in
/// the GPUs' order, then the direct ones between GPUs, each once. Throws InputError for a link
/// without a sound count.
std::vector<PeerLinkSpec> read_gpu_links(const XmlText& xml, std::span<const GpuElement> gpus);

}  // namespace weft
