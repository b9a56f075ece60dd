// What a program makes: devices, regions, queues. All of it is slow already, and takes a lock.
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "replay/record/hooks.hpp"
#include "replay/record/memory.hpp"
#include "replay/record/true_symbols.hpp"

namespace weft::record {
namespace {

using trace::RecordType;

/// What a queue pair's later records repeat.
struct PairFacts {
  trace::QueuePair pair{};
  trace::QueuePairState state{};
};

struct Store {
  Table table;
  std::mutex mutex;
  std::deque<Context> contexts;  // stay: a closed one's hooks may still run
  std::unordered_map<std::uint32_t, PairFacts> pairs;
};

// Never destroyed: threads may post while the program ends.
Store& store() {
  static Store& made = *new Store;
  return made;
}

constexpr std::uint64_t kRegionKey = 1ULL << 63;
constexpr std::uint64_t kNumberKey = 1ULL << 62;
constexpr std::uint32_t kDeviceBits = 0x3fffffff;

bool known(const void* object, Named& out) {
  Table::Value found;
  if (!store().table.find(address_key(object), found)) return false;
  out = {std::bit_cast<Context*>(found.second), static_cast<std::uint32_t>(found.first)};
  return true;
}

std::uint32_t name_object(const void* object, Context& context) {
  const std::uint32_t name = context.recorder->new_name();
  store().table.put(address_key(object), {name, std::bit_cast<std::uint64_t>(&context)});
  return name;
}

// Of a region what a later registration may keep.
constexpr std::uint64_t kDmabufBit = 1ULL << 32;
std::uint64_t packed(const RegionFacts& facts) {
  return facts.access | (facts.is_dmabuf ? kDmabufBit : 0);
}

bool is_known(const void* object) {
  Named out;
  return known(object, out);
}

void add_port(const Context& context, std::uint8_t number) {
  auto* const query = true_function<decltype(ibv_query_port)>(kVerbsLibrary, "ibv_query_port");
  ibv_port_attr attributes{};
  // The exported function fills the structure's first edition: all that is read here.
  void* const first_edition = &attributes;
  if (query == nullptr ||
      query(context.context, number, static_cast<_compat_ibv_port_attr*>(first_edition)) != 0) {
    return;
  }
  trace::Port port{};
  port.device = context.device;
  port.lid = context.recorder->salt().lid(attributes.lid);
  port.port = number;
  port.state = static_cast<std::uint8_t>(attributes.state);
  port.active_mtu = static_cast<std::uint8_t>(attributes.active_mtu);
  port.max_mtu = static_cast<std::uint8_t>(attributes.max_mtu);
  port.active_width = attributes.active_width;
  port.active_speed = attributes.active_speed;
  port.link_layer = attributes.link_layer;
  context.recorder->add(RecordType::kPort, port);
}

void add_device(const Context& context) {
  auto* const query = true_function<decltype(ibv_query_device)>(kVerbsLibrary, "ibv_query_device");
  auto* const guid =
      true_function<decltype(ibv_get_device_guid)>(kVerbsLibrary, "ibv_get_device_guid");
  ibv_device_attr attributes{};
  if (query != nullptr && query(context.context, &attributes) != 0) attributes = {};
  trace::Device device{};
  device.device = context.device;
  device.vendor = attributes.vendor_id;
  device.part = attributes.vendor_part_id;
  if (guid != nullptr) {
    device.guid = context.recorder->salt().guid(guid(context.context->device));
  }
  device.max_queue_pairs = static_cast<std::uint32_t>(attributes.max_qp);
  device.max_requests = static_cast<std::uint32_t>(attributes.max_qp_wr);
  device.ports = attributes.phys_port_cnt;
  context.recorder->add(RecordType::kDevice, device, context.context->device->name);
  for (unsigned port = 1; port <= device.ports; ++port) {
    add_port(context, static_cast<std::uint8_t>(port));
  }
}

void hook_context(Context& context) {
  ibv_context_ops& ops = context.context->ops;
  context.ops = ops;
  ops.post_send = hooked_post_send;
  ops.post_recv = hooked_post_recv;
  ops.poll_cq = hooked_poll_cq;
  if (ops.post_srq_recv != nullptr) ops.post_srq_recv = hooked_post_srq_recv;
  verbs_context* const verbs = verbs_get_ctx(context.context);
  if (verbs == nullptr) return;
  context.create_qp_ex = verbs->create_qp_ex;
  context.create_cq_ex = verbs->create_cq_ex;
  context.create_srq_ex = verbs->create_srq_ex;
  if (verbs->create_qp_ex != nullptr) verbs->create_qp_ex = hooked_create_qp_ex;
  if (verbs->create_cq_ex != nullptr) verbs->create_cq_ex = hooked_create_cq_ex;
  if (verbs->create_srq_ex != nullptr) verbs->create_srq_ex = hooked_create_srq_ex;
}

void set_known_peer(trace::QueuePairState& state, const ibv_ah_attr& to, const Salt& salt) {
  state.peer_port = to.is_global != 0 ? salt.digest(std::as_bytes(std::span(to.grh.dgid.raw)))
                                      : salt.lid(to.dlid);
  state.port = to.port_num;
}

void update(trace::QueuePairState& state, const ibv_qp_attr& to, int mask, const Salt& salt) {
  if ((mask & IBV_QP_STATE) != 0) state.state = static_cast<std::uint8_t>(to.qp_state);
  if ((mask & IBV_QP_PORT) != 0) state.port = to.port_num;
  if ((mask & IBV_QP_AV) != 0) set_known_peer(state, to.ah_attr, salt);
  if ((mask & IBV_QP_DEST_QPN) != 0) state.peer_number = to.dest_qp_num;
  if ((mask & IBV_QP_PATH_MTU) != 0) state.path_mtu = static_cast<std::uint8_t>(to.path_mtu);
  if ((mask & IBV_QP_TIMEOUT) != 0) state.timeout = to.timeout;
  if ((mask & IBV_QP_RETRY_CNT) != 0) state.retries = to.retry_cnt;
  if ((mask & IBV_QP_RNR_RETRY) != 0) state.rnr_retries = to.rnr_retry;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) state.max_reads = to.max_rd_atomic;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) state.max_peer_reads = to.max_dest_rd_atomic;
}

trace::QueuePair described(const ibv_qp& pair, const ibv_qp_cap* caps, bool signals_all) {
  trace::QueuePair out{};
  out.domain = pair.pd != nullptr ? domain_of(pair.pd).name : trace::kNone;
  out.number = pair.qp_num;
  out.send_queue = pair.send_cq != nullptr ? queue_of(pair.send_cq).name : trace::kNone;
  out.receive_queue = pair.recv_cq != nullptr ? queue_of(pair.recv_cq).name : trace::kNone;
  out.shared_receives = pair.srq != nullptr ? shared_of(pair.srq).name : trace::kNone;
  out.type = static_cast<std::uint8_t>(pair.qp_type);
  out.signals_all = signals_all ? 1 : 0;
  if (caps != nullptr) {
    out.send_depth = caps->max_send_wr;
    out.receive_depth = caps->max_recv_wr;
    out.max_inline = caps->max_inline_data;
  }
  return out;
}

}  // namespace

Table& objects_table() { return store().table; }
std::mutex& objects_mutex() { return store().mutex; }

std::uint64_t address_key(const void* object) { return std::bit_cast<std::uint64_t>(object); }
std::uint64_t extra_key(const void* object) { return std::bit_cast<std::uint64_t>(object) | 1; }
std::uint64_t region_key(const Context& context, std::uint32_t key) {
  return kRegionKey | std::uint64_t{context.device & kDeviceBits} << 32 | key;
}
std::uint64_t number_key(const Context& context, std::uint32_t number) {
  return kNumberKey | std::uint64_t{context.device & kDeviceBits} << 32 | number;
}

std::uint32_t pair_numbered(const Context& context, std::uint32_t number) {
  Table::Value found;
  return store().table.find(number_key(context, number), found)
             ? static_cast<std::uint32_t>(found.first)
             : trace::kNone;
}

Place place_of(const Context& context, std::uint32_t key, std::uint64_t address) {
  Table::Value found;
  if (!store().table.find(region_key(context, key), found)) return {};
  return {.region = static_cast<std::uint32_t>(found.first), .offset = address - found.second};
}

void open_context(ibv_context* opened) {
  const std::lock_guard lock(store().mutex);
  if (opened->ops.post_send == hooked_post_send) return;  // by an import, or within another open
  Context& context = store().contexts.emplace_back();
  context.context = opened;
  context.recorder = &Recorder::get();
  context.device = name_object(opened, context);
  hook_context(context);
  add_device(context);
}

Context& context_of(ibv_context* context) {
  Named out;
  if (!known(context, out)) {
    open_context(context);
    known(context, out);
  }
  return *out.context;
}

Named domain_of(ibv_pd* domain) {
  Named out;
  if (known(domain, out)) return out;
  add_domain(domain);
  known(domain, out);
  return out;
}

Named queue_of(ibv_cq* queue) {
  Named out;
  if (known(queue, out)) return out;
  add_queue(queue, false);
  known(queue, out);
  return out;
}

Named shared_of(ibv_srq* queue) {
  Named out;
  if (known(queue, out)) return out;
  add_shared(queue, 0, 0);
  known(queue, out);
  return out;
}

Named pair_of(ibv_qp* pair) {
  Named out;
  if (known(pair, out)) return out;
  add_pair(pair, nullptr, false);
  known(pair, out);
  return out;
}

void add_domain(ibv_pd* domain) {
  Context& context = context_of(domain->context);
  const std::lock_guard lock(store().mutex);
  if (is_known(domain)) return;
  trace::ProtectionDomain record{};
  record.domain = name_object(domain, context);
  record.device = context.device;
  context.recorder->add(RecordType::kProtectionDomain, record);
}

void add_region(ibv_mr* region, const RegionFacts& facts) {
  const Named domain = domain_of(region->pd);
  Context& context = *domain.context;
  trace::Region record{};
  record.domain = domain.name;
  record.address = context.recorder->salt().address(facts.address);
  record.length = facts.length;
  record.access = facts.access;
  record.kind = trace::MemoryKind::kGpuDmabuf;
  if (!facts.is_dmabuf) {  // CUDA and file systems may take their time, and locks: without ours
    record.kind = kind_of_memory(facts.memory);
    record.page_bytes = page_bytes_of(facts.memory);
  }
  const std::lock_guard lock(store().mutex);
  if (is_known(region)) return;
  record.region = name_object(region, context);
  store().table.put(region_key(context, region->lkey), {record.region, facts.address});
  store().table.put(extra_key(region), {record.region, packed(facts)});
  context.recorder->add(RecordType::kRegion, record);
}

void add_queue(ibv_cq* queue, bool is_extended) {
  Context& context = context_of(queue->context);
  const std::lock_guard lock(store().mutex);
  if (is_known(queue)) return;
  trace::CompletionQueue record{};
  record.queue = name_object(queue, context);
  record.device = context.device;
  record.depth = static_cast<std::uint32_t>(queue->cqe);
  record.has_channel = queue->channel != nullptr ? 1 : 0;
  record.is_extended = is_extended ? 1 : 0;
  context.recorder->add(RecordType::kCompletionQueue, record);
}

void add_shared(ibv_srq* queue, std::uint32_t depth, std::uint32_t segments) {
  const std::uint32_t domain = queue->pd != nullptr ? domain_of(queue->pd).name : trace::kNone;
  Context& context = context_of(queue->context);
  const std::lock_guard lock(store().mutex);
  if (is_known(queue)) return;
  trace::SharedReceiveQueue record{};
  record.queue = name_object(queue, context);
  record.domain = domain;
  record.depth = depth;
  record.max_segments = segments;
  context.recorder->add(RecordType::kSharedReceiveQueue, record);
}

void add_pair(ibv_qp* pair, const ibv_qp_cap* caps, bool signals_all) {
  Context& context = context_of(pair->context);
  trace::QueuePair record = described(*pair, caps, signals_all);
  const std::lock_guard lock(store().mutex);
  if (is_known(pair)) return;
  record.pair = name_object(pair, context);
  store().table.put(number_key(context, pair->qp_num), {record.pair, 0});
  PairFacts& facts = store().pairs[record.pair];
  facts.pair = record;
  facts.state.pair = record.pair;
  context.recorder->add(RecordType::kQueuePair, record);
}

void set_unseen(ibv_qp* pair) {
  const Named named = pair_of(pair);
  const std::lock_guard lock(store().mutex);
  trace::QueuePair& record = store().pairs[named.name].pair;
  if (record.is_unseen != 0) return;
  record.is_unseen = 1;
  named.context->recorder->add(RecordType::kQueuePair, record);
}

void add_unseen_pair(Context& context, std::uint32_t number) {
  trace::QueuePair record{};
  record.pair = context.recorder->new_name();
  record.domain = record.send_queue = record.receive_queue = record.shared_receives = trace::kNone;
  record.number = number;
  record.is_unseen = 1;
  context.recorder->add(RecordType::kQueuePair, record);
}

void add_state(ibv_qp* pair, const ibv_qp_attr& attributes, int mask) {
  const Named named = pair_of(pair);
  const std::lock_guard lock(store().mutex);
  trace::QueuePairState& state = store().pairs[named.name].state;
  update(state, attributes, mask, named.context->recorder->salt());
  named.context->recorder->add(RecordType::kQueuePairState, state);
}

RegionFacts kept_facts(const ibv_mr& region, std::uint64_t address, std::uint64_t extra) {
  return {.address = address,
          .length = region.length,
          .access = static_cast<unsigned>(extra),
          .memory = region.addr,
          .is_dmabuf = (extra & kDmabufBit) != 0};
}

Ending::Ending(const void* object, trace::ObjectKind kind) : kind_{kind} {
  Named named;
  if (!known(object, named)) return;
  context_ = named.context;
  name_ = named.name;
  forget(address_key(object));
}

std::uint64_t Ending::forget(std::uint64_t key) {
  const std::lock_guard lock(store().mutex);
  Table::Value value;
  if (!store().table.find(key, value)) return 0;
  store().table.erase(key);
  entries_.push_back({key, value});
  return value.second;
}

void Ending::finish(bool is_destroyed) {
  if (context_ == nullptr) return;
  const std::lock_guard lock(store().mutex);
  if (!is_destroyed) {
    for (const Entry& entry : entries_) store().table.put(entry.key, entry.value);
    return;
  }
  if (kind_ == trace::ObjectKind::kQueuePair) store().pairs.erase(name_);
  trace::End record{};
  record.object = name_;
  record.kind = kind_;
  context_->recorder->add(RecordType::kEnd, record);
}

}  // namespace weft::record
