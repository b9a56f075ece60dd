#pragma once

#include <string>

#include "sim/base/params.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// A topology in weft's own form (topology_yaml.hpp), which reads back as the same. `head` stands
/// before it, each line a comment; devices have the place that names them behind them as one. What
/// holds for one tier of a network only is not written.
std::string topology_yaml(const TopologySpec& spec, const ParamCatalog& catalog,
                          const std::string& head);

}  // namespace weft
