#pragma once

#include <cstdint>

#include "replay/trace/record.hpp"

namespace weft::record {

/// What a pointer that is registered points to: CUDA is asked where the program has loaded it.
trace::MemoryKind kind_of_memory(const void* address);

/// The page size of the mapping at `address`: hugetlbfs's, or the base page; transparent huge pages
/// are not told apart. 0 where nothing is mapped.
std::uint32_t page_bytes_of(const void* address);

}  // namespace weft::record
