#pragma once

#include <bit>

namespace weft::record {

inline constexpr const char* kVerbsLibrary = "libibverbs.so.1";
inline constexpr const char* kMlx5Library = "libmlx5.so.1";

/// glibc's own dlsym and dlvsym, whoever interposes them.
using Dlsym = void* (*)(void*, const char*);
using Dlvsym = void* (*)(void*, const char*, const char*);
struct DynamicLinker {
  Dlsym dlsym;
  Dlvsym dlvsym;
};
const DynamicLinker& dynamic_linker();

/// What a loaded library says a name is; nullptr where it is not loaded or lacks it.
void* true_symbol(const char* library, const char* name);

template <typename Function>
Function* true_function(const char* library, const char* name) {
  return std::bit_cast<Function*>(true_symbol(library, name));
}

}  // namespace weft::record
