#pragma once

#include <infiniband/verbs.h>

namespace weft::replay {

/// The functions of libibverbs that a re-run needs, found when they are first asked for: the
/// program starts where there is none. Posting and polling go through pointers of the context.
struct VerbsLibrary {
  decltype(&::ibv_get_device_list) get_device_list;
  decltype(&::ibv_free_device_list) free_device_list;
  decltype(&::ibv_get_device_name) get_device_name;
  decltype(&::ibv_open_device) open_device;
  decltype(&::ibv_close_device) close_device;
  decltype(&::ibv_query_device) query_device;
  decltype(&::ibv_query_port) query_port;
  decltype(&::ibv_query_gid) query_gid;
  decltype(&::ibv_alloc_pd) alloc_pd;
  decltype(&::ibv_dealloc_pd) dealloc_pd;
  decltype(&::ibv_reg_mr) reg_mr;
  decltype(&::ibv_dereg_mr) dereg_mr;
  decltype(&::ibv_create_cq) create_cq;
  decltype(&::ibv_destroy_cq) destroy_cq;
  decltype(&::ibv_create_qp) create_qp;
  decltype(&::ibv_modify_qp) modify_qp;
  decltype(&::ibv_destroy_qp) destroy_qp;
  decltype(&::ibv_reg_dmabuf_mr) reg_dmabuf_mr{nullptr};  ///< since rdma-core 34; else null
};

/// Throws InputError where libibverbs or one of them is missing.
const VerbsLibrary& verbs_library();

}  // namespace weft::replay
