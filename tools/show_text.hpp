#pragma once

#include <string>
#include <vector>

#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"
#include "tools/show_view.hpp"

namespace weft {

/// The node's tree, the matrix that `nvidia-smi topo -m` prints, the NICs that NCCL gives each GPU,
/// the pairs.
std::string show_text(const Machine& machine, const NodeView& node);
/// "schema": "weft.show/1" with `devices`, `links`, `pairs`, and `gpu_nics`: the NICs that NCCL
/// gives each GPU; where they are not known `gpu_nics_unknown` says why.
Json show_json(const Machine& machine, const NodeView& node);
/// Every object of that JSON with its keys.
std::vector<FormatSection> show_format();
/// The node as a Graphviz graph.
std::string show_dot(const Machine& machine);

}  // namespace weft
