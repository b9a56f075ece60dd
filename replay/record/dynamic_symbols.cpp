// dlsym and dlvsym in the place of glibc's: a program that, as NCCL, loads libibverbs by dlopen and
// asks for its functions by name would pass by any that are interposed by name.
#include <cstring>
#include <dlfcn.h>

#include "replay/record/exports.hpp"
#include "replay/record/true_symbols.hpp"

namespace weft::record {
namespace {

// What a look-up answers: the recorder's function where the true answer is the one that it would
// call. So optional functions stay absent, and other editions and other libraries' functions of
// that name (a wrapper's of somebody else) are theirs.
void* ours_for(const char* name, void* answer) {
  if (answer == nullptr) return nullptr;
  const bool is_mlx5 = std::strncmp(name, "mlx5dv_", 7) == 0;
  return answer == true_symbol(is_mlx5 ? kMlx5Library : kVerbsLibrary, name) ? replacement(name)
                                                                             : nullptr;
}

bool may_be_ours(void* handle, const char* name) {
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) return false;
  return (std::strncmp(name, "ibv_", 4) == 0 || std::strncmp(name, "mlx5dv_", 7) == 0) &&
         replacement(name) != nullptr;
}

void* ours(void* handle, const char* name, const char* version) {
  if (!may_be_ours(handle, name)) return nullptr;
  const DynamicLinker& linker = dynamic_linker();
  return ours_for(
      name, version == nullptr ? linker.dlsym(handle, name) : linker.dlvsym(handle, name, version));
}

}  // namespace
}  // namespace weft::record

// RTLD_NEXT means "behind who calls", and glibc looks at the address that it returns to: the true
// function is reached by a jump that leaves that address alone. This file is compiled so that a
// call in tail position is one (-foptimize-sibling-calls); a test holds it to that.
extern "C" {

void* dlsym(void* handle, const char* name) noexcept {
  if (void* const answer = weft::record::ours(handle, name, nullptr)) return answer;
  return weft::record::dynamic_linker().dlsym(handle, name);
}

void* dlvsym(void* handle, const char* name, const char* version) noexcept {
  if (void* const answer = weft::record::ours(handle, name, version)) return answer;
  return weft::record::dynamic_linker().dlvsym(handle, name, version);
}

}  // extern "C"
