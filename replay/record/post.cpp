#include <bit>

#include "replay/record/batch.hpp"
#include "replay/record/hooks.hpp"

namespace weft::record {
namespace {

bool names_remote(ibv_wr_opcode code) {
  return code == IBV_WR_RDMA_WRITE || code == IBV_WR_RDMA_WRITE_WITH_IMM ||
         code == IBV_WR_RDMA_READ || code == IBV_WR_ATOMIC_WRITE;
}

bool is_atomic(ibv_wr_opcode code) {
  return code == IBV_WR_ATOMIC_CMP_AND_SWP || code == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

void add_send(Batch& batch, const Named& pair, const ibv_send_wr& request) {
  trace::Post post{};
  post.id = request.wr_id;
  post.queue = pair.name;
  post.remote_region = trace::kNone;
  post.opcode = opcode_of(request.opcode);
  post.flags = flags_of(request.send_flags);
  const Salt& salt = pair.context->recorder->salt();
  // Atomics have their key elsewhere.
  if (names_remote(request.opcode)) {
    set_remote(post, salt, request.wr.rdma.remote_addr, request.wr.rdma.rkey);
  } else if (is_atomic(request.opcode)) {
    set_remote(post, salt, request.wr.atomic.remote_addr, request.wr.atomic.rkey);
  }
  batch.add_post(*pair.context, post, &request, request.sg_list, request.num_sge);
}

void add_receive(Batch& batch, const Named& queue, std::uint8_t flags, const ibv_recv_wr& request) {
  trace::Post post{};
  post.id = request.wr_id;
  post.queue = queue.name;
  post.remote_region = trace::kNone;
  post.opcode = trace::Opcode::kReceive;
  post.flags = flags;
  batch.add_post(*queue.context, post, &request, request.sg_list, request.num_sge);
}

// What came of a list. A provider that refuses sets `bad`; of one that does not, all counts as
// refused.
template <typename Request>
const void* refused_of(int result, const Request* list, Request* const* bad) {
  if (result == 0) return nullptr;
  for (const Request* request = list; request != nullptr; request = request->next) {
    if (request == *bad) return request;
  }
  return Batch::kAllRefused;
}

template <typename Queue, typename Request, typename Call>
int post_receives(const Named& named, Call call, Queue* queue, Request* list, Request** bad,
                  std::uint8_t flags) {
  Batch batch(*named.context);
  if (!batch.is_recording()) return call(queue, list, bad);
  for (const Request* request = list; request != nullptr; request = request->next) {
    add_receive(batch, named, flags, *request);
  }
  const std::uint64_t begin_ns = now_ns();
  const int result = call(queue, list, bad);
  batch.finish_posts(begin_ns, refused_of(result, list, bad));
  return result;
}

}  // namespace

int hooked_post_send(ibv_qp* pair, ibv_send_wr* list, ibv_send_wr** bad) {
  const Named named = pair_of(pair);
  Batch batch(*named.context);
  if (!batch.is_recording()) return named.context->ops.post_send(pair, list, bad);
  for (const ibv_send_wr* request = list; request != nullptr; request = request->next) {
    add_send(batch, named, *request);
  }
  const std::uint64_t begin_ns = now_ns();
  const int result = named.context->ops.post_send(pair, list, bad);
  batch.finish_posts(begin_ns, refused_of(result, list, bad));
  return result;
}

int hooked_post_recv(ibv_qp* pair, ibv_recv_wr* list, ibv_recv_wr** bad) {
  const Named named = pair_of(pair);
  return post_receives(named, named.context->ops.post_recv, pair, list, bad, 0);
}

int hooked_post_srq_recv(ibv_srq* queue, ibv_recv_wr* list, ibv_recv_wr** bad) {
  const Named named = shared_of(queue);
  return post_receives(named, named.context->ops.post_srq_recv, queue, list, bad, trace::kShared);
}

}  // namespace weft::record
