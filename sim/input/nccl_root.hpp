#pragma once

#include "sim/input/xml_text.hpp"

namespace weft {

/// The <system> of a topology file of NCCL (version 1) or RCCL (version 2). Throws InputError if
/// the file holds none, saying what it is instead where that is known.
pugi::xml_node require_nccl_system(const XmlText& xml);

}  // namespace weft
