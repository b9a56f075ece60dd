// A stand-in for libibverbs.so.1 with one device, "fake0", whose operations are done as soon as
// they are posted: for programs that are recorded where there is no NIC.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include <infiniband/verbs.h>

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

namespace {

struct Context {
  verbs_context verbs{};
};

struct Queue {
  ibv_cq_ex queue{};  // also the ibv_cq
  std::mutex mutex;
  std::deque<ibv_wc> done;
  ibv_wc current{};
};

struct Shared {
  ibv_srq queue{};
  std::deque<std::uint64_t> receives;
};

struct Pair {
  ibv_qp_ex pair{};  // begins with the ibv_qp
  std::uint32_t peer{0};
  std::deque<std::uint64_t> receives;
  std::vector<ibv_send_wr> building;
  std::vector<std::uint32_t> lengths;
};

std::mutex mutex;  // of what follows, and of receives
std::map<std::uint32_t, Pair*> pairs;
std::atomic<std::uint32_t> next_number{17};
std::atomic<std::uint32_t> next_key{0x100};

template <typename T>
T* as(void* object) {
  return static_cast<T*>(object);
}

void complete(ibv_cq* queue, const ibv_wc& completion) {
  auto* const to = as<Queue>(queue);
  const std::lock_guard lock(to->mutex);
  to->done.push_back(completion);
}

ibv_wc_opcode completion_of(ibv_wr_opcode code) {
  switch (code) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    default:
      return IBV_WC_SEND;
  }
}

bool takes_receive(ibv_wr_opcode code) {
  return code == IBV_WR_SEND || code == IBV_WR_RDMA_WRITE_WITH_IMM;
}

void deliver(Pair& to, const ibv_send_wr& request, std::uint32_t bytes) {
  auto* const shared = to.pair.qp_base.srq != nullptr ? as<Shared>(to.pair.qp_base.srq) : nullptr;
  std::deque<std::uint64_t>& receives = shared != nullptr ? shared->receives : to.receives;
  if (receives.empty()) return;
  ibv_wc completion{};
  completion.wr_id = receives.front();
  completion.opcode = request.opcode == IBV_WR_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  completion.wc_flags = request.opcode == IBV_WR_SEND ? 0 : IBV_WC_WITH_IMM;
  completion.byte_len = bytes;
  completion.qp_num = to.pair.qp_base.qp_num;
  receives.pop_front();
  complete(to.pair.qp_base.recv_cq, completion);
}

void carry_out(Pair& pair, const ibv_send_wr& request, std::uint32_t bytes) {
  const std::lock_guard lock(mutex);
  const auto peer = pairs.find(pair.peer);
  const bool is_there = peer != pairs.end();
  if (is_there && takes_receive(request.opcode)) deliver(*peer->second, request, bytes);
  if (is_there && (request.send_flags & IBV_SEND_SIGNALED) == 0) return;
  ibv_wc completion{};
  completion.wr_id = request.wr_id;
  completion.status = is_there ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR;
  completion.opcode = completion_of(request.opcode);
  completion.byte_len = bytes;
  completion.vendor_err = is_there ? 0 : 0x81;
  completion.qp_num = pair.pair.qp_base.qp_num;
  complete(pair.pair.qp_base.send_cq, completion);
}

std::uint32_t length_of(const ibv_send_wr& request) {
  std::uint32_t bytes = 0;
  for (int i = 0; i < request.num_sge; ++i) bytes += request.sg_list[i].length;
  return bytes;
}

// What has four flags or segments too many is refused, and sets errno: the recorder must hand both
// on.
int post_send(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad) {
  for (ibv_send_wr* request = list; request != nullptr; request = request->next) {
    constexpr int kMostSegments = 16;
    const bool is_wrong = request->num_sge < 0 || request->num_sge > kMostSegments;
    if ((request->send_flags & 0xff00) != 0 || is_wrong) {
      *bad = request;
      errno = EBADMSG;
      return EINVAL;
    }
    carry_out(*as<Pair>(qp), *request, length_of(*request));
    request->wr_id = ~request->wr_id;  // as one whose memory was used again at once
  }
  return 0;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr**) {
  const std::lock_guard lock(mutex);
  for (; list != nullptr; list = list->next) as<Pair>(qp)->receives.push_back(list->wr_id);
  return 0;
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* list, ibv_recv_wr**) {
  const std::lock_guard lock(mutex);
  for (; list != nullptr; list = list->next) as<Shared>(srq)->receives.push_back(list->wr_id);
  return 0;
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* out) {
  auto* const queue = as<Queue>(cq);
  const std::lock_guard lock(queue->mutex);
  int got = 0;
  for (; got < count && !queue->done.empty(); ++got) {
    out[got] = queue->done.front();
    queue->done.pop_front();
  }
  return got;
}

// --- Extended completion queues
// --------------------------------------------------------------------

int next_poll(ibv_cq_ex* cq) {
  auto* const queue = as<Queue>(cq);
  const std::lock_guard lock(queue->mutex);
  if (queue->done.empty()) return ENOENT;
  queue->current = queue->done.front();
  queue->done.pop_front();
  cq->wr_id = queue->current.wr_id;
  cq->status = queue->current.status;
  return 0;
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr*) { return next_poll(cq); }

ibv_cq* made_queue(ibv_context* context, int depth, ibv_comp_channel* channel) {
  auto* const queue = new Queue;
  queue->queue.context = context;
  queue->queue.channel = channel;
  queue->queue.cqe = depth;
  return ibv_cq_ex_to_cq(&queue->queue);
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  ibv_cq_ex& queue =
      as<Queue>(made_queue(context, static_cast<int>(attributes->cqe), attributes->channel))->queue;
  queue.start_poll = start_poll;
  queue.next_poll = next_poll;
  queue.end_poll = [](ibv_cq_ex*) {};
  queue.read_opcode = [](ibv_cq_ex* cq) { return as<Queue>(cq)->current.opcode; };
  queue.read_vendor_err = [](ibv_cq_ex* cq) { return as<Queue>(cq)->current.vendor_err; };
  queue.read_byte_len = [](ibv_cq_ex* cq) { return as<Queue>(cq)->current.byte_len; };
  queue.read_qp_num = [](ibv_cq_ex* cq) { return as<Queue>(cq)->current.qp_num; };
  queue.read_wc_flags = [](ibv_cq_ex* cq) { return as<Queue>(cq)->current.wc_flags; };
  return &queue;
}

// --- ibv_wr_*
// --------------------------------------------------------------------------------------

void begin(ibv_qp_ex* qp, ibv_wr_opcode code) {
  ibv_send_wr request{};
  request.wr_id = qp->wr_id;
  request.send_flags = qp->wr_flags;
  request.opcode = code;
  as<Pair>(qp)->building.push_back(request);
  as<Pair>(qp)->lengths.push_back(0);
}

int wr_complete(ibv_qp_ex* qp) {
  auto* const pair = as<Pair>(qp);
  for (std::size_t i = 0; i < pair->building.size(); ++i) {
    carry_out(*pair, pair->building[i], pair->lengths[i]);
  }
  pair->building.clear();
  pair->lengths.clear();
  return 0;
}

void set_builder(ibv_qp_ex& qp) {
  qp.wr_start = [](ibv_qp_ex*) {};
  qp.wr_complete = wr_complete;
  qp.wr_abort = [](ibv_qp_ex* p) {
    as<Pair>(p)->building.clear();
    as<Pair>(p)->lengths.clear();
  };
  qp.wr_send = [](ibv_qp_ex* p) { begin(p, IBV_WR_SEND); };
  qp.wr_rdma_write = [](ibv_qp_ex* p, std::uint32_t, std::uint64_t) {
    begin(p, IBV_WR_RDMA_WRITE);
  };
  qp.wr_rdma_write_imm = [](ibv_qp_ex* p, std::uint32_t, std::uint64_t, __be32) {
    begin(p, IBV_WR_RDMA_WRITE_WITH_IMM);
  };
  qp.wr_rdma_read = [](ibv_qp_ex* p, std::uint32_t, std::uint64_t) { begin(p, IBV_WR_RDMA_READ); };
  qp.wr_atomic_fetch_add = [](ibv_qp_ex* p, std::uint32_t, std::uint64_t, std::uint64_t) {
    begin(p, IBV_WR_ATOMIC_FETCH_AND_ADD);
  };
  qp.wr_set_sge = [](ibv_qp_ex* p, std::uint32_t, std::uint64_t, std::uint32_t length) {
    as<Pair>(p)->lengths.back() += length;
  };
  qp.wr_set_inline_data = [](ibv_qp_ex* p, void*, std::size_t length) {
    as<Pair>(p)->lengths.back() += static_cast<std::uint32_t>(length);
  };
}

ibv_qp* made_pair(ibv_context* context, ibv_pd* domain, ibv_qp_type type, ibv_cq* send,
                  ibv_cq* receive, ibv_srq* shared) {
  auto* const pair = new Pair;
  ibv_qp& base = pair->pair.qp_base;
  base.context = context;
  base.pd = domain;
  base.send_cq = send;
  base.recv_cq = receive;
  base.srq = shared;
  base.qp_type = type;
  base.qp_num = next_number++;
  const std::lock_guard lock(mutex);
  pairs[base.qp_num] = pair;
  return &base;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* a) {
  ibv_qp* const made = made_pair(context, a->pd, a->qp_type, a->send_cq, a->recv_cq, a->srq);
  set_builder(as<Pair>(made)->pair);
  return made;
}

}  // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  static ibv_device device = [] {
    ibv_device made{};
    std::strcpy(made.name, "fake0");
    return made;
  }();
  if (count != nullptr) *count = 1;
  return new ibv_device* [2] { &device, nullptr };
}

void ibv_free_device_list(ibv_device** list) { delete[] list; }
const char* ibv_get_device_name(ibv_device* device) { return device->name; }
__be64 ibv_get_device_guid(ibv_device*) { return 0x0123456789abcdef; }

ibv_context* ibv_open_device(ibv_device* device) {
  auto* const opened = new Context;
  verbs_context& verbs = opened->verbs;
  verbs.sz = sizeof verbs;
  verbs.create_qp_ex = create_qp_ex;
  verbs.create_cq_ex = create_cq_ex;
  ibv_context& context = verbs.context;
  context.device = device;
  context.abi_compat = std::bit_cast<void*>(~std::uintptr_t{0});
  context.ops.post_send = post_send;
  context.ops.post_recv = post_recv;
  context.ops.post_srq_recv = post_srq_recv;
  context.ops.poll_cq = poll_cq;
  return &context;
}

int ibv_close_device(ibv_context*) { return 0; }

int ibv_query_device(ibv_context*, ibv_device_attr* out) {
  *out = {};
  out->vendor_id = 0x15b3;
  out->max_qp = 1000;
  out->max_qp_wr = 8192;
  out->phys_port_cnt = 1;
  return 0;
}

int ibv_query_port(ibv_context*, std::uint8_t, _compat_ibv_port_attr* out) {
  ibv_port_attr port{};
  port.state = IBV_PORT_ACTIVE;
  port.active_mtu = port.max_mtu = IBV_MTU_4096;
  port.lid = 7;
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  // The first edition of the structure ends before port_cap_flags2.
  std::memcpy(static_cast<void*>(out), &port, offsetof(ibv_port_attr, port_cap_flags2));
  return 0;
}

int ibv_query_gid(ibv_context*, std::uint8_t, int, ibv_gid* gid) {
  *gid = {};
  return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) { return new ibv_pd{.context = context, .handle = 0}; }
int ibv_dealloc_pd(ibv_pd* domain) {
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* memory, std::size_t length, std::uint64_t,
                         unsigned) {
  auto* const made = new ibv_mr{};
  made->context = domain->context;
  made->pd = domain;
  made->addr = memory;
  made->length = length;
  made->lkey = made->rkey = next_key++;
  return made;
}

// As libibverbs does it: through its own exported function, which another may have replaced.
ibv_mr* ibv_reg_mr(ibv_pd* domain, void* memory, std::size_t length, int access) {
  return ibv_reg_mr_iova2(domain, memory, length, std::bit_cast<std::uint64_t>(memory),
                          static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, std::uint64_t, std::size_t length, std::uint64_t address,
                          int, int access) {
  return ibv_reg_mr_iova2(domain, nullptr, length, address, static_cast<unsigned>(access));
}

// Of one byte less than a page it succeeds, but for what fork() is told of the old memory.
int ibv_rereg_mr(ibv_mr* region, int flags, ibv_pd*, void* memory, std::size_t length, int) {
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    region->addr = memory;
    region->length = length;
  }
  region->lkey = region->rkey = next_key++;
  return length == 4095 ? IBV_REREG_MR_ERR_DO_FORK_OLD : 0;
}

// EBUSY for a region of one byte: what can't be destroyed must live on.
int ibv_dereg_mr(ibv_mr* region) {
  if (region->length == 1) return EBUSY;
  delete region;
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int depth, void*, ibv_comp_channel* channel, int) {
  return made_queue(context, depth, channel);
}

int ibv_destroy_cq(ibv_cq* queue) {
  delete as<Queue>(queue);
  return 0;
}

ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr*) {
  auto* const made = new Shared;
  made->queue.context = domain->context;
  made->queue.pd = domain;
  return &made->queue;
}

int ibv_destroy_srq(ibv_srq* queue) {
  delete as<Shared>(queue);
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* a) {
  return made_pair(domain->context, domain, a->qp_type, a->send_cq, a->recv_cq, a->srq);
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  const std::lock_guard lock(mutex);
  if ((mask & IBV_QP_DEST_QPN) != 0) as<Pair>(qp)->peer = attributes->dest_qp_num;
  return 0;
}

int ibv_destroy_qp(ibv_qp* qp) {
  const std::lock_guard lock(mutex);
  pairs.erase(qp->qp_num);
  delete as<Pair>(qp);
  return 0;
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) { return &as<Pair>(qp)->pair; }

}  // extern "C"
