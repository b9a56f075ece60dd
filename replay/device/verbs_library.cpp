#include "replay/device/verbs_library.hpp"

#include <bit>
#include <dlfcn.h>

#include "replay/device/symbols.hpp"
#include "sim/base/error.hpp"

namespace weft::replay {
namespace {

constexpr const char* kLibrary = "libibverbs.so.1";

VerbsLibrary loaded() {
  void* const library = dlopen(kLibrary, RTLD_NOW);
  if (library == nullptr) {
    throw InputError("--device: libibverbs is not installed here (Debian: libibverbs1)");
  }
  VerbsLibrary out{};
  const auto find = [&](const char* name, auto& function) {
    find_symbol(library, kLibrary, name, function);
  };
  find("ibv_get_device_list", out.get_device_list);
  find("ibv_free_device_list", out.free_device_list);
  find("ibv_get_device_name", out.get_device_name);
  find("ibv_open_device", out.open_device);
  find("ibv_close_device", out.close_device);
  find("ibv_query_device", out.query_device);
  find("ibv_query_port", out.query_port);
  find("ibv_query_gid", out.query_gid);
  find("ibv_alloc_pd", out.alloc_pd);
  find("ibv_dealloc_pd", out.dealloc_pd);
  find("ibv_reg_mr", out.reg_mr);
  find("ibv_dereg_mr", out.dereg_mr);
  find("ibv_create_cq", out.create_cq);
  find("ibv_destroy_cq", out.destroy_cq);
  find("ibv_create_qp", out.create_qp);
  find("ibv_modify_qp", out.modify_qp);
  find("ibv_destroy_qp", out.destroy_qp);
  void* const reg_dmabuf_mr = dlsym(library, "ibv_reg_dmabuf_mr");
  if (reg_dmabuf_mr != nullptr) {
    out.reg_dmabuf_mr = std::bit_cast<decltype(out.reg_dmabuf_mr)>(reg_dmabuf_mr);
  }
  return out;
}

}  // namespace

const VerbsLibrary& verbs_library() {
  static const VerbsLibrary kLoaded = loaded();
  return kLoaded;
}

}  // namespace weft::replay
