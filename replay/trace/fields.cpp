#include "replay/trace/fields.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace weft::trace {
namespace {

// The numbers of libibverbs' enumerations (infiniband/verbs.h), with the words of IBTA vol. 1.
constexpr std::array<Word, 6> kPortStates{
    {{0, "nop"}, {1, "down"}, {2, "init"}, {3, "armed"}, {4, "active"}, {5, "active_defer"}}};
constexpr std::array<Word, 5> kMtus{
    {{1, "256"}, {2, "512"}, {3, "1024"}, {4, "2048"}, {5, "4096"}}};
constexpr std::array<Word, 3> kLinkLayers{{{0, "unspecified"}, {1, "infiniband"}, {2, "ethernet"}}};
constexpr std::array<Word, 7> kPairTypes{{{2, "rc"},
                                          {3, "uc"},
                                          {4, "ud"},
                                          {8, "raw_packet"},
                                          {9, "xrc_send"},
                                          {10, "xrc_receive"},
                                          {255, "driver"}}};
constexpr std::array<Word, 8> kPairStates{{{0, "reset"},
                                           {1, "init"},
                                           {2, "rtr"},
                                           {3, "rts"},
                                           {4, "sqd"},
                                           {5, "sqe"},
                                           {6, "err"},
                                           {7, "unknown"}}};
constexpr std::array<Word, 24> kStatuses{{{0, "success"},
                                          {1, "local_length_error"},
                                          {2, "local_qp_operation_error"},
                                          {3, "local_eec_operation_error"},
                                          {4, "local_protection_error"},
                                          {5, "flushed"},
                                          {6, "window_bind_error"},
                                          {7, "bad_response"},
                                          {8, "local_access_error"},
                                          {9, "remote_invalid_request"},
                                          {10, "remote_access_error"},
                                          {11, "remote_operation_error"},
                                          {12, "retries_exceeded"},
                                          {13, "rnr_retries_exceeded"},
                                          {14, "local_rdd_violation"},
                                          {15, "remote_invalid_rd_request"},
                                          {16, "remote_aborted"},
                                          {17, "invalid_eec_number"},
                                          {18, "invalid_eec_state"},
                                          {19, "fatal"},
                                          {20, "response_timeout"},
                                          {21, "general_error"},
                                          {22, "tag_matching_error"},
                                          {23, "tag_matching_rendezvous_incomplete"}}};
constexpr std::array<Word, 5> kAccess{{{1, "local_write"},
                                       {2, "remote_write"},
                                       {4, "remote_read"},
                                       {8, "remote_atomic"},
                                       {16, "window_bind"}}};

// Our own.
constexpr std::array<Word, 4> kMemoryKinds{
    {{0, "unknown"}, {1, "host"}, {2, "gpu_dmabuf"}, {3, "gpu_peer"}}};
constexpr std::array<Word, 6> kObjectKinds{{{1, "device"},
                                            {2, "protection_domain"},
                                            {3, "region"},
                                            {4, "completion_queue"},
                                            {5, "shared_receive_queue"},
                                            {6, "queue_pair"}}};
constexpr std::array<Word, 12> kOpcodes{{{1, "send"},
                                         {2, "send_with_immediate"},
                                         {3, "send_with_invalidate"},
                                         {4, "write"},
                                         {5, "write_with_immediate"},
                                         {6, "read"},
                                         {7, "compare_and_swap"},
                                         {8, "fetch_and_add"},
                                         {9, "receive"},
                                         {10, "bind"},
                                         {11, "invalidate"},
                                         {255, "other"}}};
constexpr std::array<Word, 7> kPostFlags{{{1, "signaled"},
                                          {2, "inline"},
                                          {4, "fence"},
                                          {8, "solicited"},
                                          {16, "shared"},
                                          {32, "builder"},
                                          {64, "refused"}}};
constexpr std::array<Word, 2> kNoYes{{{0, "no"}, {1, "yes"}}};

// A row of a table from the member's place and size. `offset` and `bytes` are offsetof and sizeof.
constexpr Field field(std::string_view name, std::size_t offset, std::size_t bytes, Form form,
                      Role role, std::string_view meaning, std::span<const Word> words = {}) {
  return {name,
          static_cast<std::uint16_t>(offset),
          static_cast<std::uint8_t>(bytes),
          form,
          role,
          words,
          meaning};
}

constexpr std::array kHostFields{
    field("host", offsetof(Host, host), sizeof(Host::host), Form::kName, Role::kObject,
          "this program's name in the trace"),
    field("process", offsetof(Host, process), sizeof(Host::process), Form::kNumber, Role::kProcess,
          "its process id"),
    field("realtime_ns", offsetof(Host, realtime_ns), sizeof(Host::realtime_ns), Form::kNumber,
          Role::kPlain, "CLOCK_REALTIME at this record's time"),
    field("clock_shift_ns", offsetof(Host, clock_shift_ns), sizeof(Host::clock_shift_ns),
          Form::kSigned, Role::kPlain, "what a merge added to this host's times"),
    field("clock_error_ns", offsetof(Host, clock_error_ns), sizeof(Host::clock_error_ns),
          Form::kNumber, Role::kPlain, "how far the shift may be off; 0: not merged"),
};
constexpr std::array kThreadFields{
    field("thread", offsetof(Thread, thread), sizeof(Thread::thread), Form::kName, Role::kObject,
          "its name in the trace"),
    field("host", offsetof(Thread, host), sizeof(Thread::host), Form::kName, Role::kObject,
          "whose it is"),
    field("tid", offsetof(Thread, tid), sizeof(Thread::tid), Form::kNumber, Role::kProcess,
          "its number in the system"),
};
constexpr std::array kDeviceFields{
    field("device", offsetof(Device, device), sizeof(Device::device), Form::kName, Role::kObject,
          "its name in the trace"),
    field("host", offsetof(Device, host), sizeof(Device::host), Form::kName, Role::kObject,
          "where it is"),
    field("vendor", offsetof(Device, vendor), sizeof(Device::vendor), Form::kHex, Role::kPlain,
          "vendor_id"),
    field("part", offsetof(Device, part), sizeof(Device::part), Form::kHex, Role::kPlain,
          "vendor_part_id"),
    field("guid", offsetof(Device, guid), sizeof(Device::guid), Form::kHex, Role::kGuid,
          "node GUID"),
    field("max_queue_pairs", offsetof(Device, max_queue_pairs), sizeof(Device::max_queue_pairs),
          Form::kNumber, Role::kPlain, "max_qp"),
    field("max_requests", offsetof(Device, max_requests), sizeof(Device::max_requests),
          Form::kNumber, Role::kPlain, "max_qp_wr"),
    field("ports", offsetof(Device, ports), sizeof(Device::ports), Form::kNumber, Role::kPlain,
          "phys_port_cnt"),
    field("padding", offsetof(Device, padding), sizeof(Device::padding), Form::kZero, Role::kPlain,
          ""),
};
constexpr std::array kPortFields{
    field("device", offsetof(Port, device), sizeof(Port::device), Form::kName, Role::kObject,
          "whose it is"),
    field("lid", offsetof(Port, lid), sizeof(Port::lid), Form::kNumber, Role::kPort, "LID"),
    field("port", offsetof(Port, port), sizeof(Port::port), Form::kNumber, Role::kPlain,
          "its number, from 1"),
    field("state", offsetof(Port, state), sizeof(Port::state), Form::kWord, Role::kPlain,
          "ibv_port_state", kPortStates),
    field("active_mtu", offsetof(Port, active_mtu), sizeof(Port::active_mtu), Form::kWord,
          Role::kPlain, "bytes (ibv_mtu)", kMtus),
    field("max_mtu", offsetof(Port, max_mtu), sizeof(Port::max_mtu), Form::kWord, Role::kPlain,
          "bytes (ibv_mtu)", kMtus),
    field("active_width", offsetof(Port, active_width), sizeof(Port::active_width), Form::kNumber,
          Role::kPlain, "as in ibv_port_attr: 1 for 1x, 2 for 4x, 4 for 8x, 8 for 12x, 16 for 2x"),
    field("active_speed", offsetof(Port, active_speed), sizeof(Port::active_speed), Form::kNumber,
          Role::kPlain, "as in ibv_port_attr: 32 for EDR, 64 for HDR, 128 for NDR, a lane"),
    field("link_layer", offsetof(Port, link_layer), sizeof(Port::link_layer), Form::kWord,
          Role::kPlain, "IBV_LINK_LAYER_*", kLinkLayers),
    field("padding", offsetof(Port, padding), sizeof(Port::padding), Form::kZero, Role::kPlain, ""),
};
constexpr std::array kProtectionDomainFields{
    field("domain", offsetof(ProtectionDomain, domain), sizeof(ProtectionDomain::domain),
          Form::kName, Role::kObject, "its name in the trace"),
    field("device", offsetof(ProtectionDomain, device), sizeof(ProtectionDomain::device),
          Form::kName, Role::kObject, "whose it is"),
};
constexpr std::array kRegionFields{
    field("region", offsetof(Region, region), sizeof(Region::region), Form::kName, Role::kObject,
          "its name in the trace"),
    field("domain", offsetof(Region, domain), sizeof(Region::domain), Form::kName, Role::kObject,
          "where it is registered"),
    field("address", offsetof(Region, address), sizeof(Region::address), Form::kHex, Role::kAddress,
          "where it begins"),
    field("length", offsetof(Region, length), sizeof(Region::length), Form::kNumber, Role::kPlain,
          "bytes"),
    field("access", offsetof(Region, access), sizeof(Region::access), Form::kFlags, Role::kPlain,
          "ibv_access_flags", kAccess),
    field("page_bytes", offsetof(Region, page_bytes), sizeof(Region::page_bytes), Form::kNumber,
          Role::kPlain, "of its mapping; 0: not known"),
    field("kind", offsetof(Region, kind), sizeof(Region::kind), Form::kWord, Role::kPlain,
          "where the memory is", kMemoryKinds),
    field("padding", offsetof(Region, padding), sizeof(Region::padding), Form::kZero, Role::kPlain,
          ""),
};
constexpr std::array kCompletionQueueFields{
    field("queue", offsetof(CompletionQueue, queue), sizeof(CompletionQueue::queue), Form::kName,
          Role::kObject, "its name in the trace"),
    field("device", offsetof(CompletionQueue, device), sizeof(CompletionQueue::device), Form::kName,
          Role::kObject, "whose it is"),
    field("depth", offsetof(CompletionQueue, depth), sizeof(CompletionQueue::depth), Form::kNumber,
          Role::kPlain, "completions"),
    field("has_channel", offsetof(CompletionQueue, has_channel),
          sizeof(CompletionQueue::has_channel), Form::kWord, Role::kPlain,
          "whether completions may be waited for as events", kNoYes),
    field("is_extended", offsetof(CompletionQueue, is_extended),
          sizeof(CompletionQueue::is_extended), Form::kWord, Role::kPlain,
          "whether it was made by ibv_create_cq_ex", kNoYes),
    field("padding", offsetof(CompletionQueue, padding), sizeof(CompletionQueue::padding),
          Form::kZero, Role::kPlain, ""),
};
constexpr std::array kSharedReceiveQueueFields{
    field("queue", offsetof(SharedReceiveQueue, queue), sizeof(SharedReceiveQueue::queue),
          Form::kName, Role::kObject, "its name in the trace"),
    field("domain", offsetof(SharedReceiveQueue, domain), sizeof(SharedReceiveQueue::domain),
          Form::kName, Role::kObject, "whose it is"),
    field("depth", offsetof(SharedReceiveQueue, depth), sizeof(SharedReceiveQueue::depth),
          Form::kNumber, Role::kPlain, "work requests"),
    field("max_segments", offsetof(SharedReceiveQueue, max_segments),
          sizeof(SharedReceiveQueue::max_segments), Form::kNumber, Role::kPlain,
          "of a work request"),
};
constexpr std::array kQueuePairFields{
    field("pair", offsetof(QueuePair, pair), sizeof(QueuePair::pair), Form::kName, Role::kObject,
          "its name in the trace"),
    field("domain", offsetof(QueuePair, domain), sizeof(QueuePair::domain), Form::kName,
          Role::kObject, "whose it is"),
    field("number", offsetof(QueuePair, number), sizeof(QueuePair::number), Form::kNumber,
          Role::kPlain, "qp_num"),
    field("send_queue", offsetof(QueuePair, send_queue), sizeof(QueuePair::send_queue), Form::kName,
          Role::kObject, "completion queue of its sends"),
    field("receive_queue", offsetof(QueuePair, receive_queue), sizeof(QueuePair::receive_queue),
          Form::kName, Role::kObject, "completion queue of its receives"),
    field("shared_receives", offsetof(QueuePair, shared_receives),
          sizeof(QueuePair::shared_receives), Form::kName, Role::kObject,
          "shared receive queue, or null"),
    field("send_depth", offsetof(QueuePair, send_depth), sizeof(QueuePair::send_depth),
          Form::kNumber, Role::kPlain, "work requests"),
    field("receive_depth", offsetof(QueuePair, receive_depth), sizeof(QueuePair::receive_depth),
          Form::kNumber, Role::kPlain, "work requests"),
    field("max_inline", offsetof(QueuePair, max_inline), sizeof(QueuePair::max_inline),
          Form::kNumber, Role::kPlain, "bytes"),
    field("transport", offsetof(QueuePair, type), sizeof(QueuePair::type), Form::kWord,
          Role::kPlain, "ibv_qp_type", kPairTypes),
    field("signals_all", offsetof(QueuePair, signals_all), sizeof(QueuePair::signals_all),
          Form::kWord, Role::kPlain, "sq_sig_all", kNoYes),
    field("is_unseen", offsetof(QueuePair, is_unseen), sizeof(QueuePair::is_unseen), Form::kWord,
          Role::kPlain, "its requests are posted past libibverbs: none is recorded", kNoYes),
    field("padding", offsetof(QueuePair, padding), sizeof(QueuePair::padding), Form::kZero,
          Role::kPlain, ""),
};
constexpr std::array kQueuePairStateFields{
    field("pair", offsetof(QueuePairState, pair), sizeof(QueuePairState::pair), Form::kName,
          Role::kObject, "which"),
    field("peer_number", offsetof(QueuePairState, peer_number), sizeof(QueuePairState::peer_number),
          Form::kNumber, Role::kPlain, "dest_qp_num; 0: not set"),
    field("peer_port", offsetof(QueuePairState, peer_port), sizeof(QueuePairState::peer_port),
          Form::kHex, Role::kPort, "LID or GID of the other end"),
    field("state", offsetof(QueuePairState, state), sizeof(QueuePairState::state), Form::kWord,
          Role::kPlain, "ibv_qp_state", kPairStates),
    field("path_mtu", offsetof(QueuePairState, path_mtu), sizeof(QueuePairState::path_mtu),
          Form::kWord, Role::kPlain, "bytes (ibv_mtu)", kMtus),
    field("timeout", offsetof(QueuePairState, timeout), sizeof(QueuePairState::timeout),
          Form::kNumber, Role::kPlain, "4.096 us x 2^timeout"),
    field("retries", offsetof(QueuePairState, retries), sizeof(QueuePairState::retries),
          Form::kNumber, Role::kPlain, "retry_cnt"),
    field("rnr_retries", offsetof(QueuePairState, rnr_retries), sizeof(QueuePairState::rnr_retries),
          Form::kNumber, Role::kPlain, "rnr_retry"),
    field("max_reads", offsetof(QueuePairState, max_reads), sizeof(QueuePairState::max_reads),
          Form::kNumber, Role::kPlain, "max_rd_atomic"),
    field("max_peer_reads", offsetof(QueuePairState, max_peer_reads),
          sizeof(QueuePairState::max_peer_reads), Form::kNumber, Role::kPlain,
          "max_dest_rd_atomic"),
    field("port", offsetof(QueuePairState, port), sizeof(QueuePairState::port), Form::kNumber,
          Role::kPlain, "port_num"),
};
constexpr std::array kEndFields{
    field("object", offsetof(End, object), sizeof(End::object), Form::kName, Role::kObject,
          "which"),
    field("kind", offsetof(End, kind), sizeof(End::kind), Form::kWord, Role::kPlain, "what it is",
          kObjectKinds),
    field("padding", offsetof(End, padding), sizeof(End::padding), Form::kZero, Role::kPlain, ""),
};
constexpr std::array kPostFields{
    field("id", offsetof(Post, id), sizeof(Post::id), Form::kHex, Role::kId, "wr_id"),
    field("bytes", offsetof(Post, bytes), sizeof(Post::bytes), Form::kNumber, Role::kPlain,
          "sum of its segments"),
    field("remote_offset", offsetof(Post, remote_offset), sizeof(Post::remote_offset), Form::kHex,
          Role::kAddressOrOffset, "from the remote region's begin; an address where that is null"),
    field("queue", offsetof(Post, queue), sizeof(Post::queue), Form::kName, Role::kObject,
          "queue pair, or shared receive queue where `shared` is among the flags"),
    field("remote_region", offsetof(Post, remote_region), sizeof(Post::remote_region), Form::kName,
          Role::kObject, "where it writes to or reads from, if that is in the trace"),
    field("remote_key", offsetof(Post, remote_key), sizeof(Post::remote_key), Form::kHex,
          Role::kKey, "rkey"),
    field("call_ns", offsetof(Post, call_ns), sizeof(Post::call_ns), Form::kNumber, Role::kPlain,
          "how long the call took, for its whole list"),
    field("list_index", offsetof(Post, list_index), sizeof(Post::list_index), Form::kNumber,
          Role::kPlain, "its place in that list"),
    field("segments", offsetof(Post, segments), sizeof(Post::segments), Form::kNumber, Role::kPlain,
          "how many follow"),
    field("opcode", offsetof(Post, opcode), sizeof(Post::opcode), Form::kWord, Role::kPlain,
          "what it asks for", kOpcodes),
    field("flags", offsetof(Post, flags), sizeof(Post::flags), Form::kFlags, Role::kPlain,
          "as posted; `refused`: the call failed", kPostFlags),
};
constexpr std::array kCompletionFields{
    field("id", offsetof(Completion, id), sizeof(Completion::id), Form::kHex, Role::kId, "wr_id"),
    field("queue", offsetof(Completion, queue), sizeof(Completion::queue), Form::kName,
          Role::kObject, "completion queue"),
    field("pair", offsetof(Completion, pair), sizeof(Completion::pair), Form::kName, Role::kObject,
          "queue pair"),
    field("bytes", offsetof(Completion, bytes), sizeof(Completion::bytes), Form::kNumber,
          Role::kPlain, "as reported: valid for receives and reads"),
    field("vendor_error", offsetof(Completion, vendor_error), sizeof(Completion::vendor_error),
          Form::kNumber, Role::kPlain, "vendor_err"),
    field("status", offsetof(Completion, status), sizeof(Completion::status), Form::kWord,
          Role::kPlain, "ibv_wc_status", kStatuses),
    field("opcode", offsetof(Completion, opcode), sizeof(Completion::opcode), Form::kWord,
          Role::kPlain, "of what is completed; other where the status is an error", kOpcodes),
    field("has_immediate", offsetof(Completion, has_immediate), sizeof(Completion::has_immediate),
          Form::kWord, Role::kPlain, "whether it carries a number of the sender's", kNoYes),
    field("padding", offsetof(Completion, padding), sizeof(Completion::padding), Form::kZero,
          Role::kPlain, ""),
};
constexpr std::array kDropFields{
    field("first_ns", offsetof(Drop, first_ns), sizeof(Drop::first_ns), Form::kNumber, Role::kTime,
          "time of the first one"),
    field("records", offsetof(Drop, records), sizeof(Drop::records), Form::kNumber, Role::kPlain,
          "how many"),
    field("posts", offsetof(Drop, posts), sizeof(Drop::posts), Form::kNumber, Role::kPlain,
          "of them"),
    field("completions", offsetof(Drop, completions), sizeof(Drop::completions), Form::kNumber,
          Role::kPlain, "of them"),
    field("posted_bytes", offsetof(Drop, posted_bytes), sizeof(Drop::posted_bytes), Form::kNumber,
          Role::kPlain, "of those posts"),
};
constexpr std::array kSegmentFields{
    field("offset", offsetof(Segment, offset), sizeof(Segment::offset), Form::kHex,
          Role::kAddressOrOffset, "from the region's begin; an address where that is null"),
    field("length", offsetof(Segment, length), sizeof(Segment::length), Form::kNumber, Role::kPlain,
          "bytes"),
    field("region", offsetof(Segment, region), sizeof(Segment::region), Form::kName, Role::kObject,
          "whose memory it is, or null"),
};

constexpr std::array kForms{
    RecordForm{RecordType::kHost, "host", sizeof(Host), Tail::kText, kHostFields,
               "one recorded program; the text is its host's name"},
    RecordForm{RecordType::kThread, "thread", sizeof(Thread), Tail::kText, kThreadFields,
               "one thread of a program; the text is its name"},
    RecordForm{RecordType::kDevice, "device", sizeof(Device), Tail::kText, kDeviceFields,
               "an RDMA device that was opened; the text is its name, such as mlx5_0"},
    RecordForm{RecordType::kPort, "port", sizeof(Port), Tail::kNothing, kPortFields,
               "a device's port, as it was when the device was opened"},
    RecordForm{RecordType::kProtectionDomain, "protection_domain", sizeof(ProtectionDomain),
               Tail::kNothing, kProtectionDomainFields, "a protection domain"},
    RecordForm{RecordType::kRegion, "region", sizeof(Region), Tail::kNothing, kRegionFields,
               "a registered region of memory"},
    RecordForm{RecordType::kCompletionQueue, "completion_queue", sizeof(CompletionQueue),
               Tail::kNothing, kCompletionQueueFields, "a completion queue"},
    RecordForm{RecordType::kSharedReceiveQueue, "shared_receive_queue", sizeof(SharedReceiveQueue),
               Tail::kNothing, kSharedReceiveQueueFields,
               "a receive queue that several queue pairs share"},
    RecordForm{RecordType::kQueuePair, "queue_pair", sizeof(QueuePair), Tail::kNothing,
               kQueuePairFields, "a queue pair"},
    RecordForm{RecordType::kQueuePairState, "queue_pair_state", sizeof(QueuePairState),
               Tail::kNothing, kQueuePairStateFields, "a queue pair's attributes after a change"},
    RecordForm{RecordType::kEnd, "end", sizeof(End), Tail::kNothing, kEndFields,
               "an object is destroyed"},
    RecordForm{RecordType::kPost, "post", sizeof(Post), Tail::kSegments, kPostFields,
               "one work request; its time is the begin of the call that posted it"},
    RecordForm{RecordType::kCompletion, "completion", sizeof(Completion), Tail::kNothing,
               kCompletionFields, "a completion; its time is the end of the poll that returned it"},
    RecordForm{RecordType::kDrop, "drop", sizeof(Drop), Tail::kNothing, kDropFields,
               "records of a thread that could not be kept; its time is that of the last one"},
    RecordForm{RecordType::kMark,
               "mark",
               sizeof(Mark),
               Tail::kText,
               {},
               "a note of the recorder or of the program; the text is the note"},
};

constexpr std::array<Word, 3> kClocks{{{0, "unknown"}, {1, "monotonic_raw"}, {2, "monotonic"}}};
constexpr Field kClockField = field("clock", 0, 1, Form::kWord, Role::kPlain, "", kClocks);

const Field& field_named(std::span<const Field> fields, std::string_view name) {
  return *std::find_if(fields.begin(), fields.end(),
                       [&](const Field& f) { return f.name == name; });
}

}  // namespace

std::span<const RecordForm> record_forms() { return kForms; }

const RecordForm* find_form(RecordType type) {
  // In the order of their numbers, from 1.
  const auto at = static_cast<std::size_t>(type);
  return at >= 1 && at <= kForms.size() ? &kForms[at - 1] : nullptr;
}

const RecordForm* find_form(std::string_view name) {
  const auto* const found = std::find_if(kForms.begin(), kForms.end(),
                                         [&](const RecordForm& f) { return f.name == name; });
  return found == kForms.end() ? nullptr : found;
}

const Field& clock_field() { return kClockField; }

std::span<const Field> segment_fields() { return kSegmentFields; }

const Field& region_of(std::span<const Field> fields) {
  return *std::find_if(fields.begin(), fields.end(),
                       [](const Field& f) { return f.name.ends_with("region"); });
}

std::uint64_t field_value(std::span<const std::byte> record, const Field& field) {
  std::uint64_t value = 0;
  std::memcpy(&value, record.data() + field.offset,
              std::min<std::size_t>(field.bytes, sizeof value));
  return value;
}

void set_field(std::span<std::byte> record, const Field& field, std::uint64_t value) {
  std::memcpy(record.data() + field.offset, &value,
              std::min<std::size_t>(field.bytes, sizeof value));
}

std::string_view word_of(const Field& field, std::uint64_t value) {
  for (const Word& word : field.words) {
    if (word.value == value) return word.word;
  }
  return {};
}

std::string_view opcode_name(Opcode opcode) {
  static const Field& field = field_named(kPostFields, "opcode");
  return word_of(field, static_cast<std::uint64_t>(opcode));
}

std::string_view status_name(std::uint8_t status) {
  static const Field& field = field_named(kCompletionFields, "status");
  return word_of(field, status);
}

}  // namespace weft::trace
