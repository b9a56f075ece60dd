#pragma once

#include <string>

#include "sim/base/params.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// Reads a topology file of any form weft knows, told by its first character that is no blank: '<'
/// begins NCCL's XML (nccl_xml.hpp), anything else weft's YAML (topology_yaml.hpp). "-" is standard
/// input. Throws InputError.
TopologySpec read_topology(const std::string& file, const ParamCatalog& catalog);
/// The same from text; `file` is the name that messages use.
TopologySpec parse_topology(const std::string& text, const std::string& file,
                            const ParamCatalog& catalog);

}  // namespace weft
