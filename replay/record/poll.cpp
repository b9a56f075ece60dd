#include <bit>
#include <span>

#include "replay/record/batch.hpp"
#include "replay/record/hooks.hpp"

namespace weft::record {
namespace {

trace::Opcode opcode_of(ibv_wc_opcode code) {
  using trace::Opcode;
  switch (code) {
    case IBV_WC_SEND:
      return Opcode::kSend;
    case IBV_WC_RDMA_WRITE:
      return Opcode::kWrite;
    case IBV_WC_RDMA_READ:
      return Opcode::kRead;
    case IBV_WC_COMP_SWAP:
      return Opcode::kCompareAndSwap;
    case IBV_WC_FETCH_ADD:
      return Opcode::kFetchAndAdd;
    case IBV_WC_BIND_MW:
      return Opcode::kBind;
    case IBV_WC_LOCAL_INV:
      return Opcode::kInvalidate;
    case IBV_WC_RECV:
    case IBV_WC_RECV_RDMA_WITH_IMM:
      return Opcode::kReceive;
    default:
      return Opcode::kOther;
  }
}

trace::Completion completion_of(const Named& queue, std::uint64_t id, ibv_wc_status status) {
  trace::Completion out{};
  out.id = id;
  out.queue = queue.name;
  out.pair = trace::kNone;
  out.status = static_cast<std::uint8_t>(status);
  out.opcode = trace::Opcode::kOther;
  return out;
}

void set_success(trace::Completion& completion, ibv_wc_opcode code, std::uint32_t bytes,
                 unsigned flags) {
  const bool has_immediate = (flags & IBV_WC_WITH_IMM) != 0 || code == IBV_WC_RECV_RDMA_WITH_IMM;
  completion.has_immediate = has_immediate ? 1 : 0;
  completion.opcode = opcode_of(code);
  completion.bytes = bytes;
}

/// An extended completion queue: the functions that it had.
struct Extended {
  Named queue;
  decltype(ibv_cq_ex::start_poll) start_poll{nullptr};
  decltype(ibv_cq_ex::next_poll) next_poll{nullptr};
};

Extended& extended_of(ibv_cq_ex* queue) {
  Table::Value found;
  objects_table().find(extra_key(queue), found);
  return *std::bit_cast<Extended*>(found.second);
}

// What the queue's cursor stands on.
void record_current(const Named& named, ibv_cq_ex* queue) {
  Batch batch(*named.context);
  if (!batch.is_recording()) return;
  trace::Completion completion = completion_of(named, queue->wr_id, queue->status);
  completion.head.time_ns = now_ns();
  if (queue->status != IBV_WC_SUCCESS) {
    if (queue->read_vendor_err != nullptr) completion.vendor_error = queue->read_vendor_err(queue);
  } else {
    set_success(completion, queue->read_opcode(queue),
                queue->read_byte_len != nullptr ? queue->read_byte_len(queue) : 0,
                queue->read_wc_flags != nullptr ? queue->read_wc_flags(queue) : 0);
  }
  if (queue->read_qp_num != nullptr) {
    completion.pair = pair_numbered(*named.context, queue->read_qp_num(queue));
  }
  batch.add_completion(completion);
  batch.finish_completions(completion.head.time_ns);
}

int hooked_start_poll(ibv_cq_ex* queue, ibv_poll_cq_attr* attributes) {
  const Extended& extended = extended_of(queue);
  const int result = extended.start_poll(queue, attributes);
  if (result == 0) record_current(extended.queue, queue);
  return result;
}

int hooked_next_poll(ibv_cq_ex* queue) {
  const Extended& extended = extended_of(queue);
  const int result = extended.next_poll(queue);
  if (result == 0) record_current(extended.queue, queue);
  return result;
}

}  // namespace

int hooked_poll_cq(ibv_cq* queue, int count, ibv_wc* completions) {
  const Named named = queue_of(queue);
  const int got = named.context->ops.poll_cq(queue, count, completions);
  if (got <= 0) return got;
  Batch batch(*named.context);
  if (!batch.is_recording()) return got;
  const std::uint64_t time_ns = now_ns();
  for (const ibv_wc& from : std::span(completions, static_cast<std::size_t>(got))) {
    trace::Completion completion = completion_of(named, from.wr_id, from.status);
    completion.head.time_ns = time_ns;
    completion.pair = pair_numbered(*named.context, from.qp_num);
    if (from.status == IBV_WC_SUCCESS) {
      set_success(completion, from.opcode, from.byte_len, from.wc_flags);
    } else {
      completion.vendor_error = from.vendor_err;
    }
    batch.add_completion(completion);
  }
  batch.finish_completions(time_ns);
  return got;
}

void hook_extended_queue(ibv_cq_ex* queue) {
  if (queue->start_poll == nullptr || queue->start_poll == hooked_start_poll) return;
  auto* const extended =
      new Extended{queue_of(ibv_cq_ex_to_cq(queue)), queue->start_poll, queue->next_poll};
  objects_table().put(extra_key(queue), {0, std::bit_cast<std::uint64_t>(extended)});
  queue->start_poll = hooked_start_poll;
  if (queue->next_poll != nullptr) queue->next_poll = hooked_next_poll;
}

void free_extended(std::uint64_t extended) { delete std::bit_cast<Extended*>(extended); }

}  // namespace weft::record
