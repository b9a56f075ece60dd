#pragma once

#include <string>

#include "sim/base/params.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// The most that is read of an XML file; real ones have some 100 KiB.
inline constexpr std::int64_t kMaxXmlBytes = 16LL << 20;

/// Reads an NCCL topology file (what NCCL_TOPO_DUMP_FILE writes, version 1) as one node.
///
/// Names: CPUs "cpu<numaid>", PCIe switches "pcisw0", "pcisw1", ... in the file's order, GPUs
/// "gpu<dev>", NICs by their net's name. Devices are listed CPUs, switches, GPUs by dev, NICs by
/// dev. As NCCL does: all NVLinks that do not lead to a GPU of the file lead to one NVSwitch,
/// "nvswitch"; NVLinks to GPUs that are not in the file, GPU and NIC functions without a <gpu> or
/// <net>, and elements it does not know are passed over; all CPUs are joined pairwise.
///
/// Not modelled: ports of one NIC become NICs of their own below the same upstream device; C2C
/// bandwidth, `pcilink` and the order of `affinity` are not used; host bridges are not in the file,
/// so each device below a CPU gets its own. Refused for now, saying so: RCCL's version 2, graph
/// files, fragments without <system>, skeletons without <gpu>, files of several machines, ML
/// partitions.
///
/// Parameters are set only where `catalog` knows them, with origin "measured".
/// Throws InputError: not valid XML (with line and column), a document type definition, more than
/// 64 levels or 65,536 elements, and the above.
TopologySpec read_nccl_xml(const std::string& file, const ParamCatalog& catalog);
/// The same from text; `file` is the name that messages use.
TopologySpec parse_nccl_xml(const std::string& text, const std::string& file,
                            const ParamCatalog& catalog);

}  // namespace weft
