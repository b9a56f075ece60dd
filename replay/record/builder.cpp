// The second way to post (ibv_wr_*): a request is begun by wr_<operation>, given its memory by
// wr_set_*, and all of them are posted by wr_complete. Between wr_start and wr_complete the
// provider holds the queue pair's lock, so a builder has one user at a time.
#include <bit>
#include <cstring>
#include <vector>

#include "replay/record/batch.hpp"
#include "replay/record/hooks.hpp"

namespace weft::record {
namespace {

struct Builder {
  ibv_qp_ex real{};  // the functions that it had
  Named pair;
  std::uint64_t begin_ns{0};
  std::vector<std::byte> requests;  // Post records of this call, with their segments
  std::size_t last{0};              // where the last begins
};

Builder& builder_of(ibv_qp_ex* pair) {
  Table::Value found;
  objects_table().find(extra_key(pair), found);
  return *std::bit_cast<Builder*>(found.second);
}

trace::Post& last_of(Builder& builder, trace::Post& copy) {
  std::memcpy(&copy, builder.requests.data() + builder.last, sizeof copy);
  return copy;
}

void put_back(Builder& builder, const trace::Post& post) {
  std::memcpy(builder.requests.data() + builder.last, &post, sizeof post);
}

trace::Post begun(const Builder& builder, const ibv_qp_ex* pair, trace::Opcode opcode) {
  trace::Post post{};
  post.head.type = trace::RecordType::kPost;
  post.head.bytes = sizeof post;
  post.id = pair->wr_id;
  post.queue = builder.pair.name;
  post.remote_region = trace::kNone;
  post.opcode = opcode;
  post.flags = static_cast<std::uint8_t>(flags_of(pair->wr_flags) | trace::kBuilder);
  return post;
}

void append(Builder& builder, const trace::Post& post) {
  if (!builder.pair.context->is_recorded()) return;
  builder.last = builder.requests.size();
  builder.requests.resize(builder.last + sizeof post);
  put_back(builder, post);
}

void begin(Builder& builder, const ibv_qp_ex* pair, trace::Opcode opcode) {
  append(builder, begun(builder, pair, opcode));
}

void begin(Builder& builder, const ibv_qp_ex* pair, trace::Opcode opcode, std::uint32_t key,
           std::uint64_t address) {
  trace::Post post = begun(builder, pair, opcode);
  set_remote(post, builder.pair.context->recorder->salt(), address, key);
  append(builder, post);
}

void add_segment(Builder& builder, std::uint64_t address, std::uint64_t length, std::uint32_t key,
                 bool is_inline) {
  if (builder.requests.empty()) return;
  trace::Post copy{};
  trace::Post& post = last_of(builder, copy);
  post.bytes += length;
  if (is_inline) post.flags |= trace::kInline;
  if (post.head.bytes + sizeof(trace::Segment) <= trace::kMaxRecordBytes) {
    const trace::Segment segment = segment_of(*builder.pair.context, address,
                                              static_cast<std::uint32_t>(length), key, is_inline);
    const std::size_t at = builder.requests.size();
    builder.requests.resize(at + sizeof segment);
    std::memcpy(builder.requests.data() + at, &segment, sizeof segment);
    post.head.bytes = static_cast<std::uint16_t>(post.head.bytes + sizeof segment);
    ++post.segments;
  }
  put_back(builder, post);
}

// --- In place of the provider's, one for one -------------------------------------------------

void wr_start(ibv_qp_ex* pair) {
  Builder& builder = builder_of(pair);
  const std::uint64_t begin_ns = now_ns();
  builder.real.wr_start(pair);
  builder.begin_ns = begin_ns;
  builder.requests.clear();
}

void wr_abort(ibv_qp_ex* pair) {
  Builder& builder = builder_of(pair);
  builder.requests.clear();
  builder.real.wr_abort(pair);
}

int wr_complete(ibv_qp_ex* pair) {
  Builder& builder = builder_of(pair);
  Batch batch(*builder.pair.context);
  if (!batch.is_recording()) return builder.real.wr_complete(pair);
  std::span<const std::byte> rest = builder.requests;
  while (!rest.empty()) {
    trace::RecordHead head{};
    std::memcpy(&head, rest.data(), sizeof head);
    batch.add_whole(rest.first(head.bytes));
    rest = rest.subspan(head.bytes);
  }
  // From here on another thread may have the builder.
  const std::uint64_t begin_ns = builder.begin_ns;
  const int result = builder.real.wr_complete(pair);
  batch.finish_posts(begin_ns, result == 0 ? nullptr : Batch::kAllRefused);
  return result;
}

void wr_send(ibv_qp_ex* pair) {
  Builder& builder = builder_of(pair);
  begin(builder, pair, trace::Opcode::kSend);
  builder.real.wr_send(pair);
}

void wr_send_imm(ibv_qp_ex* pair, __be32 immediate) {
  Builder& builder = builder_of(pair);
  begin(builder, pair, trace::Opcode::kSendWithImmediate);
  builder.real.wr_send_imm(pair, immediate);
}

void wr_send_inv(ibv_qp_ex* pair, std::uint32_t key) {
  Builder& builder = builder_of(pair);
  begin(builder, pair, trace::Opcode::kSendWithInvalidate);
  builder.real.wr_send_inv(pair, key);
}

void wr_send_tso(ibv_qp_ex* pair, void* header, std::uint16_t bytes, std::uint16_t mss) {
  Builder& builder = builder_of(pair);
  begin(builder, pair, trace::Opcode::kOther);
  builder.real.wr_send_tso(pair, header, bytes, mss);
}

void wr_rdma_write(ibv_qp_ex* pair, std::uint32_t key, std::uint64_t address) {
  Builder& builder = builder_of(pair);
  begin(builder, pair, trace::Opcode::kWrite, key, address);
  builder.real.wr_rdma_write(pair, key, address);
}

void wr_rdma_write_imm(ibv_qp_ex* pair, std::uint32_t key, std::uint64_t address,
                       __be32 immediate) {
  Builder& builder = builder_of(pair);
  begin(builder, pair, trace::Opcode::kWriteWithImmediate, key, address);
  builder.real.wr_rdma_write_imm(pair, key, address, immediate);
}

void wr_rdma_read(ibv_qp_ex* pair, std::uint32_t key, std::uint64_t address) {
  Builder& builder = builder_of(pair);
  begin(builder, pair, trace::Opcode::kRead, key, address);
  builder.real.wr_rdma_read(pair, key, address);
}

void wr_atomic_cmp_swp(ibv_qp_ex* pair, std::uint32_t key, std::uint64_t address,
                       std::uint64_t compare, std::uint64_t swap) {
  Builder& builder = builder_of(pair);
  begin(builder, pair, trace::Opcode::kCompareAndSwap, key, address);
  builder.real.wr_atomic_cmp_swp(pair, key, address, compare, swap);
}

void wr_atomic_fetch_add(ibv_qp_ex* pair, std::uint32_t key, std::uint64_t address,
                         std::uint64_t add) {
  Builder& builder = builder_of(pair);
  begin(builder, pair, trace::Opcode::kFetchAndAdd, key, address);
  builder.real.wr_atomic_fetch_add(pair, key, address, add);
}

void wr_atomic_write(ibv_qp_ex* pair, std::uint32_t key, std::uint64_t address, const void* value) {
  Builder& builder = builder_of(pair);
  begin(builder, pair, trace::Opcode::kOther, key, address);
  builder.real.wr_atomic_write(pair, key, address, value);
}

void wr_bind_mw(ibv_qp_ex* pair, ibv_mw* window, std::uint32_t key, const ibv_mw_bind_info* info) {
  Builder& builder = builder_of(pair);
  begin(builder, pair, trace::Opcode::kBind);
  builder.real.wr_bind_mw(pair, window, key, info);
}

void wr_local_inv(ibv_qp_ex* pair, std::uint32_t key) {
  Builder& builder = builder_of(pair);
  begin(builder, pair, trace::Opcode::kInvalidate);
  builder.real.wr_local_inv(pair, key);
}

void wr_set_sge(ibv_qp_ex* pair, std::uint32_t key, std::uint64_t address, std::uint32_t length) {
  Builder& builder = builder_of(pair);
  add_segment(builder, address, length, key, false);
  builder.real.wr_set_sge(pair, key, address, length);
}

void wr_set_sge_list(ibv_qp_ex* pair, std::size_t count, const ibv_sge* list) {
  Builder& builder = builder_of(pair);
  for (const ibv_sge& part : std::span(list, count)) {
    add_segment(builder, part.addr, part.length, part.lkey, false);
  }
  builder.real.wr_set_sge_list(pair, count, list);
}

void wr_set_inline_data(ibv_qp_ex* pair, void* data, std::size_t length) {
  Builder& builder = builder_of(pair);
  add_segment(builder, std::bit_cast<std::uint64_t>(data), length, 0, true);
  builder.real.wr_set_inline_data(pair, data, length);
}

void wr_set_inline_data_list(ibv_qp_ex* pair, std::size_t count, const ibv_data_buf* list) {
  Builder& builder = builder_of(pair);
  for (const ibv_data_buf& part : std::span(list, count)) {
    add_segment(builder, std::bit_cast<std::uint64_t>(part.addr), part.length, 0, true);
  }
  builder.real.wr_set_inline_data_list(pair, count, list);
}

template <typename Function>
void replace(Function*& there, Function* by) {
  if (there != nullptr) there = by;  // what a queue pair was not made for stays nullptr
}

}  // namespace

void hook_builder(ibv_qp* pair, ibv_qp_ex* extended, std::uint64_t operations) {
  if (extended == nullptr || extended->wr_start == nullptr || extended->wr_start == wr_start)
    return;
  auto* const builder = new Builder;
  builder->real = *extended;
  builder->pair = pair_of(pair);
  objects_table().put(extra_key(extended), {0, std::bit_cast<std::uint64_t>(builder)});
  replace(extended->wr_start, wr_start);
  replace(extended->wr_abort, wr_abort);
  replace(extended->wr_complete, wr_complete);
  replace(extended->wr_send, wr_send);
  replace(extended->wr_send_imm, wr_send_imm);
  replace(extended->wr_send_inv, wr_send_inv);
  replace(extended->wr_send_tso, wr_send_tso);
  replace(extended->wr_rdma_write, wr_rdma_write);
  replace(extended->wr_rdma_write_imm, wr_rdma_write_imm);
  replace(extended->wr_rdma_read, wr_rdma_read);
  replace(extended->wr_atomic_cmp_swp, wr_atomic_cmp_swp);
  replace(extended->wr_atomic_fetch_add, wr_atomic_fetch_add);
  replace(extended->wr_bind_mw, wr_bind_mw);
  replace(extended->wr_local_inv, wr_local_inv);
  replace(extended->wr_set_sge, wr_set_sge);
  replace(extended->wr_set_sge_list, wr_set_sge_list);
  replace(extended->wr_set_inline_data, wr_set_inline_data);
  replace(extended->wr_set_inline_data_list, wr_set_inline_data_list);
  // The structure grows at its end: an older provider's has no wr_atomic_write.
  if ((operations & IBV_QP_EX_WITH_ATOMIC_WRITE) != 0) {
    replace(extended->wr_atomic_write, wr_atomic_write);
  }
}

void free_builder(std::uint64_t builder) { delete std::bit_cast<Builder*>(builder); }

}  // namespace weft::record
