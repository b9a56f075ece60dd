#include "tests/engine/allocation_count.hpp"

#include <cstdlib>
#include <new>

namespace {
// A mutable global, as operator new has no other place to count in.
std::size_t allocations = 0;
}  // namespace

std::size_t weft::allocation_count() { return allocations; }

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
