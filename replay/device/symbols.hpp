#pragma once

#include <bit>
#include <dlfcn.h>
#include <string>

#include "sim/base/error.hpp"

namespace weft::replay {

/// Sets `function` to what a loaded library has by that name. Throws InputError: it has none.
template <typename Function>
void find_symbol(void* library, const char* library_name, const char* name, Function& function) {
  void* const found = dlsym(library, name);
  if (found == nullptr) throw InputError(std::string(library_name) + ": it has no " + name);
  function = std::bit_cast<Function>(found);
}

}  // namespace weft::replay
