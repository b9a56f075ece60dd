#pragma once

#include <string>
#include <vector>

#include "sim/base/params.hpp"
#include "sim/io/keys.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// Reads weft's own topology form; `topologies/*.yaml` are examples. Throws InputError with file,
/// line, column and what is allowed: unknown or missing keys, unknown parameters, values that do
/// not fit their parameter. What the devices mean together is checked by Fabric's constructor.
///
/// A parameter's plain value has the origin "assumed" and its line as source, unless the file says
/// better: `{value: 16, origin: measured, source: "lspci, 2026-11-02"}`.
TopologySpec read_topology_yaml(const std::string& file, const ParamCatalog& catalog);
/// The same from text; `file` is the name that messages use.
TopologySpec parse_topology_yaml(const std::string& text, const std::string& file,
                                 const ParamCatalog& catalog);

/// Every map of that form with its keys, as the reader takes them.
std::vector<FormatSection> topology_format();

}  // namespace weft
