#pragma once

namespace weft::record {

/// The recorder's function of this name; nullptr where it has none.
void* replacement(const char* name);

}  // namespace weft::record
