// The functions of libibverbs and libmlx5 that make, change and destroy what is recorded, in the
// place of their own: each calls the true one and records what came of it.
#include "replay/record/exports.hpp"

#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string_view>
#include <unistd.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "replay/record/hooks.hpp"
#include "replay/record/true_symbols.hpp"

// The header makes macros of what the library exports.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace weft::record {
namespace {

/// The true function, of the library by its usual name or of whoever else stands behind this one; a
/// program that calls one that nobody has ends as the dynamic linker would have ended it.
template <typename Function>
Function* must(const char* library, const char* name) {
  if (auto* const function = true_function<Function>(library, name)) return function;
  if (void* const next = dynamic_linker().dlsym(RTLD_NEXT, name)) {
    return std::bit_cast<Function*>(next);
  }
  std::fprintf(stderr, "weft record: symbol lookup error: %s: undefined symbol: %s\n", library,
               name);
  _exit(127);
}

template <typename Object>
int destroyed(Object* object, int (*destroy)(Object*), Ending& ending) {
  const int result = destroy(object);
  ending.finish(result == 0);
  return result;
}

RegionFacts facts_of(void* memory, std::size_t length, std::uint64_t address, unsigned access) {
  return {.address = address, .length = length, .access = access, .memory = memory};
}

RegionFacts dmabuf_facts(std::size_t length, std::uint64_t address, int access) {
  return {.address = address,
          .length = length,
          .access = static_cast<unsigned>(access),
          .is_dmabuf = true};
}

/// What `flags` do not name stays as it was.
RegionFacts registered_anew(const ibv_mr& region, int flags, int access, std::uint64_t address,
                            std::uint64_t extra) {
  RegionFacts facts = kept_facts(region, address, extra);
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) facts.access = static_cast<unsigned>(access);
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    facts.address = std::bit_cast<std::uint64_t>(region.addr);
    facts.is_dmabuf = false;
  }
  return facts;
}

ibv_mr* added(ibv_mr* region, const RegionFacts& facts) {
  if (region != nullptr) add_region(region, facts);
  return region;
}

struct End {
  ~End() { Recorder::end_all(); }
};
// Its destructor runs when the program ends by itself.
const End kEnd;

}  // namespace
}  // namespace weft::record

using namespace weft::record;
using weft::trace::ObjectKind;

#define WEFT_VERBS(name) \
  static const auto kTrue = must<decltype(::name)>(weft::record::kVerbsLibrary, #name)
#define WEFT_MLX5(name) \
  static const auto kTrue = must<decltype(::name)>(weft::record::kMlx5Library, #name)

extern "C" {

ibv_context* ibv_open_device(ibv_device* device) {
  WEFT_VERBS(ibv_open_device);
  ibv_context* const opened = kTrue(device);
  if (opened != nullptr) open_context(opened);
  return opened;
}

ibv_context* ibv_import_device(int command_fd) {
  WEFT_VERBS(ibv_import_device);
  ibv_context* const opened = kTrue(command_fd);
  if (opened != nullptr) open_context(opened);
  return opened;
}

int ibv_close_device(ibv_context* context) {
  WEFT_VERBS(ibv_close_device);
  Ending ending(context, ObjectKind::kDevice);
  return destroyed(context, kTrue, ending);
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  WEFT_VERBS(ibv_alloc_pd);
  ibv_pd* const made = kTrue(context);
  if (made != nullptr) add_domain(made);
  return made;
}

int ibv_dealloc_pd(ibv_pd* domain) {
  WEFT_VERBS(ibv_dealloc_pd);
  Ending ending(domain, ObjectKind::kProtectionDomain);
  return destroyed(domain, kTrue, ending);
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* memory, std::size_t length, int access) {
  WEFT_VERBS(ibv_reg_mr);
  return added(kTrue(domain, memory, length, access),
               facts_of(memory, length, std::bit_cast<std::uint64_t>(memory),
                        static_cast<unsigned>(access)));
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* domain, void* memory, std::size_t length, std::uint64_t address,
                        int access) {
  WEFT_VERBS(ibv_reg_mr_iova);
  return added(kTrue(domain, memory, length, address, access),
               facts_of(memory, length, address, static_cast<unsigned>(access)));
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* memory, std::size_t length, std::uint64_t address,
                         unsigned access) {
  WEFT_VERBS(ibv_reg_mr_iova2);
  return added(kTrue(domain, memory, length, address, access),
               facts_of(memory, length, address, access));
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, std::uint64_t offset, std::size_t length,
                          std::uint64_t address, int fd, int access) {
  WEFT_VERBS(ibv_reg_dmabuf_mr);
  return added(kTrue(domain, offset, length, address, fd, access),
               dmabuf_facts(length, address, access));
}

int ibv_rereg_mr(ibv_mr* region, int flags, ibv_pd* domain, void* memory, std::size_t length,
                 int access) {
  WEFT_VERBS(ibv_rereg_mr);
  Ending ending(region, ObjectKind::kRegion);
  const std::uint64_t address =
      ending.context() != nullptr ? ending.forget(region_key(*ending.context(), region->lkey)) : 0;
  const std::uint64_t extra = ending.forget(extra_key(region));
  const int result = kTrue(region, flags, domain, memory, length, access);
  // Where only the old memory's mark for fork() failed it is registered anew all the same.
  const bool is_done = result == 0 || result == IBV_REREG_MR_ERR_DO_FORK_OLD;
  ending.finish(is_done);
  if (is_done) added(region, registered_anew(*region, flags, access, address, extra));
  return result;
}

int ibv_dereg_mr(ibv_mr* region) {
  WEFT_VERBS(ibv_dereg_mr);
  Ending ending(region, ObjectKind::kRegion);
  if (ending.context() != nullptr) ending.forget(region_key(*ending.context(), region->lkey));
  ending.forget(extra_key(region));
  return destroyed(region, kTrue, ending);
}

ibv_cq* ibv_create_cq(ibv_context* context, int depth, void* user, ibv_comp_channel* channel,
                      int vector) {
  WEFT_VERBS(ibv_create_cq);
  ibv_cq* const made = kTrue(context, depth, user, channel, vector);
  if (made != nullptr) add_queue(made, false);
  return made;
}

int ibv_destroy_cq(ibv_cq* queue) {
  WEFT_VERBS(ibv_destroy_cq);
  Ending ending(queue, ObjectKind::kCompletionQueue);
  const std::uint64_t extended = ending.forget(extra_key(queue));
  const int result = destroyed(queue, kTrue, ending);
  if (result == 0 && extended != 0) free_extended(extended);
  return result;
}

ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr* attributes) {
  WEFT_VERBS(ibv_create_srq);
  ibv_srq* const made = kTrue(domain, attributes);
  if (made != nullptr) add_shared(made, attributes->attr.max_wr, attributes->attr.max_sge);
  return made;
}

int ibv_destroy_srq(ibv_srq* queue) {
  WEFT_VERBS(ibv_destroy_srq);
  Ending ending(queue, ObjectKind::kSharedReceiveQueue);
  return destroyed(queue, kTrue, ending);
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* attributes) {
  WEFT_VERBS(ibv_create_qp);
  ibv_qp* const made = kTrue(domain, attributes);
  if (made != nullptr) add_pair(made, &attributes->cap, attributes->sq_sig_all != 0);
  return made;
}

int ibv_modify_qp(ibv_qp* pair, ibv_qp_attr* attributes, int mask) {
  WEFT_VERBS(ibv_modify_qp);
  const int result = kTrue(pair, attributes, mask);
  if (result == 0) add_state(pair, *attributes, mask);
  return result;
}

int ibv_destroy_qp(ibv_qp* pair) {
  WEFT_VERBS(ibv_destroy_qp);
  Ending ending(pair, ObjectKind::kQueuePair);
  if (ending.context() != nullptr) ending.forget(number_key(*ending.context(), pair->qp_num));
  const std::uint64_t builder = ending.forget(extra_key(pair));
  const int result = destroyed(pair, kTrue, ending);
  if (result == 0 && builder != 0) free_builder(builder);
  return result;
}

ibv_mr* mlx5dv_reg_dmabuf_mr(ibv_pd* domain, std::uint64_t offset, std::size_t length,
                             std::uint64_t address, int fd, int access, int mlx5_access) {
  // Of a newer libmlx5 than the headers here may know.
  static const auto kTrue =
      must<ibv_mr*(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int, int)>(
          weft::record::kMlx5Library, "mlx5dv_reg_dmabuf_mr");
  return added(kTrue(domain, offset, length, address, fd, access, mlx5_access),
               dmabuf_facts(length, address, access));
}

ibv_qp* mlx5dv_create_qp(ibv_context* context, ibv_qp_init_attr_ex* attributes,
                         mlx5dv_qp_init_attr* mlx5_attributes) {
  WEFT_MLX5(mlx5dv_create_qp);
  ibv_qp* const made = kTrue(context, attributes, mlx5_attributes);
  if (made != nullptr) add_extended_pair(made, *attributes);
  return made;
}

ibv_cq_ex* mlx5dv_create_cq(ibv_context* context, ibv_cq_init_attr_ex* attributes,
                            mlx5dv_cq_init_attr* mlx5_attributes) {
  WEFT_MLX5(mlx5dv_create_cq);
  ibv_cq_ex* const made = kTrue(context, attributes, mlx5_attributes);
  if (made == nullptr) return nullptr;
  add_queue(ibv_cq_ex_to_cq(made), true);
  hook_extended_queue(made);
  return made;
}

// Who asks for a queue pair's rings writes elements there by itself, or has a GPU write them.
int mlx5dv_init_obj(mlx5dv_obj* object, std::uint64_t type) {
  WEFT_MLX5(mlx5dv_init_obj);
  const int result = kTrue(object, type);
  if (result == 0 && (type & MLX5DV_OBJ_QP) != 0) set_unseen(object->qp.in);
  return result;
}

// Commands to the device itself: of those only a queue pair's making is looked at. Its number
// stands in the low 24 bits of the answer's third word (big-endian, as the command's opcode).
mlx5dv_devx_obj* mlx5dv_devx_obj_create(ibv_context* context, const void* in, std::size_t in_bytes,
                                        void* out, std::size_t out_bytes) {
  WEFT_MLX5(mlx5dv_devx_obj_create);
  mlx5dv_devx_obj* const made = kTrue(context, in, in_bytes, out, out_bytes);
  if (made == nullptr || in_bytes < 2 || out_bytes < 12) return made;
  const auto* const command = static_cast<const std::uint8_t*>(in);
  const auto* const answer = static_cast<const std::uint8_t*>(out);
  constexpr unsigned kCreateQueuePair = 0x500;
  if ((unsigned{command[0]} << 8 | command[1]) == kCreateQueuePair) {
    add_unseen_pair(context_of(context),
                    std::uint32_t{answer[9]} << 16 | std::uint32_t{answer[10]} << 8 | answer[11]);
  }
  return made;
}

}  // extern "C"

namespace weft::record {

void* replacement(const char* name) {
  struct Entry {
    std::string_view name;
    void* ours;
  };
#define WEFT_ENTRY(function) \
  Entry { #function, std::bit_cast < void*>(&::function) }
  static const std::array kEntries{WEFT_ENTRY(ibv_open_device),       WEFT_ENTRY(ibv_import_device),
                                   WEFT_ENTRY(ibv_close_device),      WEFT_ENTRY(ibv_alloc_pd),
                                   WEFT_ENTRY(ibv_dealloc_pd),        WEFT_ENTRY(ibv_reg_mr),
                                   WEFT_ENTRY(ibv_reg_mr_iova),       WEFT_ENTRY(ibv_reg_mr_iova2),
                                   WEFT_ENTRY(ibv_reg_dmabuf_mr),     WEFT_ENTRY(ibv_rereg_mr),
                                   WEFT_ENTRY(ibv_dereg_mr),          WEFT_ENTRY(ibv_create_cq),
                                   WEFT_ENTRY(ibv_destroy_cq),        WEFT_ENTRY(ibv_create_srq),
                                   WEFT_ENTRY(ibv_destroy_srq),       WEFT_ENTRY(ibv_create_qp),
                                   WEFT_ENTRY(ibv_modify_qp),         WEFT_ENTRY(ibv_destroy_qp),
                                   WEFT_ENTRY(mlx5dv_reg_dmabuf_mr),  WEFT_ENTRY(mlx5dv_create_qp),
                                   WEFT_ENTRY(mlx5dv_create_cq),      WEFT_ENTRY(mlx5dv_init_obj),
                                   WEFT_ENTRY(mlx5dv_devx_obj_create)};
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.ours;
  }
  return nullptr;
}

}  // namespace weft::record
