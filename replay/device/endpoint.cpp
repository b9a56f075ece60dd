#include "replay/device/endpoint.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "replay/device/verbs_library.hpp"
#include "sim/base/error.hpp"

namespace weft::replay {
namespace {

constexpr std::uint32_t kMostDepth = 1024;
constexpr std::uint8_t kPort = 1;
constexpr std::size_t kPage = 4096;  ///< bytes; programs' buffers begin with one
constexpr unsigned kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

void check(bool holds, const char* what) {
  if (!holds) throw InputError(fmt::format("{}: {}", what, std::strerror(errno)));
}

/// RoCE v2 on IPv4: ::ffff:a.b.c.d.
bool is_ipv4(const ibv_gid& gid) {
  constexpr std::array<std::uint8_t, 12> kPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kPrefix.data(), kPrefix.size()) == 0;
}

}  // namespace

Endpoint::Endpoint(const std::string& device, std::size_t bytes, std::size_t pairs,
                   std::optional<unsigned> gpu) {
  try {
    make(device, bytes, pairs, gpu);
  } catch (...) {
    release();
    throw;
  }
}

Endpoint::~Endpoint() { release(); }

void Endpoint::make(const std::string& device, std::size_t bytes, std::size_t pairs,
                    std::optional<unsigned> gpu) {
  open(device);
  find_address();
  const std::size_t at_least_one = std::max<std::size_t>(bytes, 1);
  if (gpu) {
    gpu_memory_.emplace(*gpu, at_least_one);
  } else {
    host_memory_.resize(at_least_one + kPage - 1);
  }
  domain_ = verbs_library().alloc_pd(context_);
  check(domain_ != nullptr, "ibv_alloc_pd");
  register_memory();
  make_pairs(pairs);
}

void Endpoint::register_memory() {
  const VerbsLibrary& verbs = verbs_library();
  const int access = static_cast<int>(kAccess);
  if (!gpu_memory_) {
    region_ = verbs.reg_mr(domain_, host_memory_.data(), host_memory_.size(), access);
    return check(region_ != nullptr, "ibv_reg_mr");
  }
  if (verbs.reg_dmabuf_mr == nullptr) {
    throw InputError("--gpu-memory: this libibverbs has no ibv_reg_dmabuf_mr (rdma-core 34)");
  }
  region_ = verbs.reg_dmabuf_mr(domain_, 0, gpu_memory_->bytes(), gpu_memory_->address(),
                                gpu_memory_->file(), access);
  check(region_ != nullptr, "--gpu-memory: ibv_reg_dmabuf_mr");
}

std::uint64_t Endpoint::memory() const {
  if (gpu_memory_) return gpu_memory_->address();
  const auto allocated = std::bit_cast<std::uint64_t>(host_memory_.data());
  return (allocated + kPage - 1) / kPage * kPage;
}

/// The region goes before the memory that it is of.
void Endpoint::release() {
  if (context_ == nullptr) return;
  const VerbsLibrary& verbs = verbs_library();
  for (ibv_qp* const pair : pairs_) verbs.destroy_qp(pair);
  if (queue_ != nullptr) verbs.destroy_cq(queue_);
  if (region_ != nullptr) verbs.dereg_mr(region_);
  if (domain_ != nullptr) verbs.dealloc_pd(domain_);
  verbs.close_device(context_);
}

void Endpoint::open(const std::string& device) {
  const VerbsLibrary& verbs = verbs_library();
  int count = 0;
  ibv_device** const list = verbs.get_device_list(&count);
  std::vector<std::string> names;
  for (int i = 0; list != nullptr && i < count; ++i) {
    names.emplace_back(verbs.get_device_name(list[i]));
    if (names.back() == device) context_ = verbs.open_device(list[i]);
  }
  if (list != nullptr) verbs.free_device_list(list);
  if (std::find(names.begin(), names.end(), device) == names.end()) {
    throw InputError("--device " + device + ": not here" + did_you_mean(device, names) +
                     "; there are: " + (names.empty() ? "none" : known_names(names)));
  }
  check(context_ != nullptr, "ibv_open_device");
}

void Endpoint::find_address() {
  const VerbsLibrary& verbs = verbs_library();
  ibv_port_attr port{};
  // The exported function fills the structure's first edition: all that is read here.
  void* const first_edition = &port;
  check(verbs.query_port(context_, kPort, static_cast<_compat_ibv_port_attr*>(first_edition)) == 0,
        "ibv_query_port");
  own_.lid = port.lid;
  own_.mtu = static_cast<std::uint32_t>(port.active_mtu);
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    ibv_gid gid{};
    if (verbs.query_gid(context_, kPort, i, &gid) != 0 || (i != 0 && !is_ipv4(gid))) continue;
    own_.gid = gid;
    gid_index_ = static_cast<std::uint8_t>(i);
    if (is_ipv4(gid)) break;
  }
}

void Endpoint::make_pairs(std::size_t count) {
  const VerbsLibrary& verbs = verbs_library();
  ibv_device_attr device{};
  check(verbs.query_device(context_, &device) == 0, "ibv_query_device");
  depth_ = std::min(kMostDepth, static_cast<std::uint32_t>(device.max_qp_wr));
  reads_ = static_cast<std::uint8_t>(std::clamp(device.max_qp_rd_atom, 1, 16));
  const auto completions = static_cast<int>(std::min<std::size_t>(
      std::size_t{2} * depth_ * count, static_cast<std::size_t>(device.max_cqe)));
  queue_ = verbs.create_cq(context_, completions, nullptr, nullptr, 0);
  check(queue_ != nullptr, "ibv_create_cq");
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = queue_;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {.max_send_wr = depth_,
                .max_recv_wr = depth_,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
  for (std::size_t i = 0; i < count; ++i) {
    ibv_qp* const pair = verbs.create_qp(domain_, &wanted);
    check(pair != nullptr, "ibv_create_qp");
    pairs_.push_back(pair);
  }
}

Address Endpoint::address(std::size_t pair) const {
  Address out = own_;
  out.memory = memory();
  out.key = region_->rkey;
  out.number = pairs_[pair]->qp_num;
  return out;
}

void Endpoint::change(ibv_qp* pair, ibv_qp_attr& to, int mask, const char* state) {
  const int error = verbs_library().modify_qp(pair, &to, mask);
  if (error != 0) {
    throw InputError(fmt::format("ibv_modify_qp to {}: {}", state, std::strerror(error)));
  }
}

void Endpoint::connect(std::size_t index, const Address& peer) {
  ibv_qp* const pair = pairs_[index];
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.port_num = kPort;
  to.qp_access_flags = kAccess;
  change(pair, to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
  to = {};
  to.qp_state = IBV_QPS_RTR;
  to.path_mtu = static_cast<ibv_mtu>(std::min(own_.mtu, peer.mtu));
  to.dest_qp_num = peer.number;
  to.max_dest_rd_atomic = reads_;
  to.min_rnr_timer = 12;
  to.ah_attr.port_num = kPort;
  to.ah_attr.dlid = peer.lid;
  to.ah_attr.is_global = peer.lid == 0 ? 1 : 0;  // RoCE has no LIDs
  to.ah_attr.grh = {.dgid = peer.gid,
                    .flow_label = 0,
                    .sgid_index = gid_index_,
                    .hop_limit = 64,
                    .traffic_class = 0};
  change(pair, to,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
         "RTR");
  to = {};
  to.qp_state = IBV_QPS_RTS;
  to.max_rd_atomic = reads_;
  to.retry_cnt = 7;
  to.rnr_retry = 7;
  to.timeout = 18;  // 1.07 s: a shaped link may queue that long
  change(pair, to,
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "RTS");
}

ibv_sge Endpoint::segment(std::uint64_t bytes) const {
  return {.addr = memory(), .length = static_cast<std::uint32_t>(bytes), .lkey = region_->lkey};
}

}  // namespace weft::replay
