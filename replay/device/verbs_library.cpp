#include "replay/device/verbs_library.hpp"

#include <bit>
#include <dlfcn.h>
#include <string>

#include "sim/base/error.hpp"

namespace weft::replay {
namespace {

constexpr const char* kLibrary = "libibverbs.so.1";

template <typename Function>
void find(void* library, const char* name, Function& out) {
  void* const found = dlsym(library, name);
  if (found == nullptr) throw InputError(std::string(kLibrary) + ": it has no " + name);
  out = std::bit_cast<Function>(found);
}

VerbsLibrary loaded() {
  void* const library = dlopen(kLibrary, RTLD_NOW);
  if (library == nullptr) {
    throw InputError("--device: libibverbs is not installed here (Debian: libibverbs1)");
  }
  VerbsLibrary out{};
  find(library, "ibv_get_device_list", out.get_device_list);
  find(library, "ibv_free_device_list", out.free_device_list);
  find(library, "ibv_get_device_name", out.get_device_name);
  find(library, "ibv_open_device", out.open_device);
  find(library, "ibv_close_device", out.close_device);
  find(library, "ibv_query_device", out.query_device);
  find(library, "ibv_query_port", out.query_port);
  find(library, "ibv_query_gid", out.query_gid);
  find(library, "ibv_alloc_pd", out.alloc_pd);
  find(library, "ibv_dealloc_pd", out.dealloc_pd);
  find(library, "ibv_reg_mr", out.reg_mr);
  find(library, "ibv_dereg_mr", out.dereg_mr);
  find(library, "ibv_create_cq", out.create_cq);
  find(library, "ibv_destroy_cq", out.destroy_cq);
  find(library, "ibv_create_qp", out.create_qp);
  find(library, "ibv_modify_qp", out.modify_qp);
  find(library, "ibv_destroy_qp", out.destroy_qp);
  return out;
}

}  // namespace

const VerbsLibrary& verbs_library() {
  static const VerbsLibrary kLoaded = loaded();
  return kLoaded;
}

}  // namespace weft::replay
