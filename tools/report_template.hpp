#pragma once

#include <vector>

#include "sim/io/embedded_file.hpp"

namespace weft {

/// tools/report_page/page.html alone, as built into the program.
std::vector<EmbeddedFile> report_template();

}  // namespace weft
