// ibv_create_qp_ex, ibv_create_cq_ex and ibv_create_srq_ex are no exported functions but calls
// through pointers of the context.
#include "replay/record/hooks.hpp"
#include "replay/record/true_symbols.hpp"

namespace weft::record {

void add_extended_pair(ibv_qp* pair, const ibv_qp_init_attr_ex& attributes) {
  add_pair(pair, &attributes.cap, attributes.sq_sig_all != 0);
  if ((attributes.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) == 0) return;
  auto* const extended = true_function<decltype(ibv_qp_to_qp_ex)>(kVerbsLibrary, "ibv_qp_to_qp_ex");
  if (extended != nullptr) hook_builder(pair, extended(pair), attributes.send_ops_flags);
}

ibv_qp* hooked_create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  ibv_qp* const made = context_of(context).create_qp_ex(context, attributes);
  if (made != nullptr) add_extended_pair(made, *attributes);
  return made;
}

ibv_cq_ex* hooked_create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  ibv_cq_ex* const made = context_of(context).create_cq_ex(context, attributes);
  if (made == nullptr) return nullptr;
  add_queue(ibv_cq_ex_to_cq(made), true);
  hook_extended_queue(made);
  return made;
}

ibv_srq* hooked_create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes) {
  ibv_srq* const made = context_of(context).create_srq_ex(context, attributes);
  if (made != nullptr) add_shared(made, attributes->attr.max_wr, attributes->attr.max_sge);
  return made;
}

}  // namespace weft::record
