#pragma once

#include "sim/input/xml_text.hpp"

namespace weft {

/// The <system> of an NCCL topology file. Throws InputError if it is none of version 1.
pugi::xml_node require_nccl_system(const XmlText& xml);

}  // namespace weft
