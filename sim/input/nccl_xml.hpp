#pragma once

#include <string>

#include "sim/base/params.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// The most that is read of an XML file; real ones have some 100 KiB.
inline constexpr std::int64_t kMaxXmlBytes = 16LL << 20;

/// Reads an NCCL or RCCL topology file (what NCCL_TOPO_DUMP_FILE writes, versions 1 and 2, or what
/// people write for NCCL_TOPO_FILE) as one node.
///
/// Names: CPUs "cpu<numaid>", PCIe switches "pcisw0", "pcisw1", ... in the file's order, GPUs
/// "gpu<dev>", NICs by their net's name. Devices are listed CPUs, switches, GPUs by dev, NICs by
/// dev. As NCCL does: all NVLinks that do not lead to a GPU of the file lead to one NVSwitch,
/// "nvswitch"; NVLinks to GPUs that are not in the file and elements it does not know are passed
/// over; all CPUs of a host are joined pairwise.
///
/// Skeletons: where the file has no <gpu> at all, PCI functions of class 0x03 or 0x12 are the GPUs,
/// numbered by bus id, and `nvlinks_unknown` is set; where it has no <net>, those of class 0x02 are
/// the NICs. Ports and functions of one NIC share one PCIe link (`port_of`). A dump of several
/// hosts, which NCCL writes of a multi-node NVLink domain, is one node: names of the second host on
/// end in "-host1", ... A bridge at 2.5 GT/s x1 above faster devices is virtual: its link is as
/// fast as what is below. What was guessed stands in `notes`.
///
/// Not modelled: `pcilink` and the order of `affinity` are not used; host bridges are not in the
/// file, so each device below a CPU gets its own. Refused, saying so: graph files and other XML,
/// fragments without <system> or <cpu>, files that do not say which functions are GPUs, ML
/// partitions.
///
/// Parameters are set only where `catalog` knows them, with origin "measured".
/// Throws InputError: not valid XML (with line and column), entity definitions, more than 64
/// levels, 65,536 elements or a million attributes, and the above.
TopologySpec read_nccl_xml(const std::string& file, const ParamCatalog& catalog);
/// The same from text; `file` is the name that messages use.
TopologySpec parse_nccl_xml(const std::string& text, const std::string& file,
                            const ParamCatalog& catalog);

}  // namespace weft
