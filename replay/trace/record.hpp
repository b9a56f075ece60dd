// The records of a verbs trace, as they lie in a recorder's buffer, in a file's blocks and in a
// reader's hands: fixed, little-endian, trivially copied, each with its length, some with a tail
// (segments of a work request, a text).
//
// Times are nanoseconds of CLOCK_MONOTONIC_RAW of the host that recorded; lengths are bytes.
// Objects (devices, regions, queue pairs...) are named by numbers that the recorder gives, unique
// in a trace and never used again: queue pair numbers are unique in a device only, addresses and
// keys are used again. Payload is in no record.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace weft::trace {

static_assert(std::endian::native == std::endian::little,
              "traces are written and read where they lie");

// The first version's numbers; a number is never given another meaning, a reader skips those it
// does not know and says so.
enum class RecordType : std::uint16_t {
  kHost = 1,
  kThread = 2,
  kDevice = 3,
  kPort = 4,
  kProtectionDomain = 5,
  kRegion = 6,
  kCompletionQueue = 7,
  kSharedReceiveQueue = 8,
  kQueuePair = 9,
  kQueuePairState = 10,
  kEnd = 11,
  kPost = 12,
  kCompletion = 13,
  kDrop = 14,
  kMark = 15,
};

// A name for nothing: no shared receive queue, a key that no recorded region has.
inline constexpr std::uint32_t kNone = 0xffffffff;

// The most that a record takes, head and tail included; also what `RecordHead::bytes` can say.
inline constexpr std::size_t kMaxRecordBytes = 0xffff;

struct RecordHead {
  RecordType type;
  std::uint16_t bytes;   // of the whole record, with its tail and padding: a multiple of 8
  std::uint32_t thread;  // who did it: a Thread record's name
  std::uint64_t time_ns;
};

// Of one recorded program: tail = host name. A merged trace has one for each.
struct Host {
  RecordHead head;
  std::uint32_t host;
  std::uint32_t process;        // pid
  std::uint64_t realtime_ns;    // CLOCK_REALTIME at `time_ns`
  std::int64_t clock_shift_ns;  // what a merge added to this host's times
  std::uint64_t
      clock_error_ns;  // how far two of its matched operations may be apart; 0: not merged
};

// Tail = the thread's name.
struct Thread {
  RecordHead head;
  std::uint32_t thread;
  std::uint32_t host;
  std::uint64_t tid;
};

// Tail = name (mlx5_0).
struct Device {
  RecordHead head;
  std::uint32_t device;
  std::uint32_t host;
  std::uint32_t vendor;
  std::uint32_t part;
  std::uint64_t guid;  // salted unless asked for
  std::uint32_t max_queue_pairs;
  std::uint32_t max_requests;  // of a queue pair
  std::uint8_t ports;
  std::uint8_t padding[7];
};

struct Port {
  RecordHead head;
  std::uint32_t device;
  std::uint16_t lid;  // salted unless asked for
  std::uint8_t port;
  std::uint8_t state;       // ibv_port_state
  std::uint8_t active_mtu;  // ibv_mtu
  std::uint8_t max_mtu;
  std::uint8_t active_width;  // as ibv_port_attr
  std::uint8_t active_speed;
  std::uint8_t link_layer;  // IBV_LINK_LAYER_*
  std::uint8_t padding[3];
};

struct ProtectionDomain {
  RecordHead head;
  std::uint32_t domain;
  std::uint32_t device;
};

enum class MemoryKind : std::uint8_t { kUnknown = 0, kHost = 1, kGpuDmabuf = 2, kGpuPeer = 3 };

struct Region {
  RecordHead head;
  std::uint32_t region;
  std::uint32_t domain;
  std::uint64_t
      address;  // salted unless asked for: differences within a page and its alignment hold
  std::uint64_t length;
  std::uint32_t access;      // ibv_access_flags
  std::uint32_t page_bytes;  // of the mapping, 0 where not known
  MemoryKind kind;
  std::uint8_t padding[7];
};

struct CompletionQueue {
  RecordHead head;
  std::uint32_t queue;
  std::uint32_t device;
  std::uint32_t depth;
  std::uint8_t has_channel;  // completions may be waited for as events
  std::uint8_t is_extended;
  std::uint8_t padding[2];
};

struct SharedReceiveQueue {
  RecordHead head;
  std::uint32_t queue;
  std::uint32_t domain;
  std::uint32_t depth;
  std::uint32_t max_segments;
};

struct QueuePair {
  RecordHead head;
  std::uint32_t pair;
  std::uint32_t domain;
  std::uint32_t number;      // qp_num
  std::uint32_t send_queue;  // completion queues
  std::uint32_t receive_queue;
  std::uint32_t shared_receives;  // or kNone
  std::uint32_t send_depth;
  std::uint32_t receive_depth;
  std::uint32_t max_inline;
  std::uint8_t type;         // ibv_qp_type
  std::uint8_t signals_all;  // sq_sig_all
  std::uint8_t is_unseen;    // its requests are posted past libibverbs (by a GPU, by raw elements):
                             // none is recorded
  std::uint8_t padding;
};

struct QueuePairState {
  RecordHead head;
  std::uint32_t pair;
  std::uint32_t peer_number;  // dest_qp_num, 0 where not set
  std::uint64_t peer_port;    // LID or GID, salted
  std::uint8_t state;         // ibv_qp_state
  std::uint8_t path_mtu;      // ibv_mtu
  std::uint8_t timeout;       // exponent, 4.096 us x 2^timeout
  std::uint8_t retries;
  std::uint8_t rnr_retries;
  std::uint8_t max_reads;       // max_rd_atomic
  std::uint8_t max_peer_reads;  // max_dest_rd_atomic
  std::uint8_t port;
};

enum class ObjectKind : std::uint8_t {
  kDevice = 1,
  kProtectionDomain = 2,
  kRegion = 3,
  kCompletionQueue = 4,
  kSharedReceiveQueue = 5,
  kQueuePair = 6,
};

// An object's end.
struct End {
  RecordHead head;
  std::uint32_t object;
  ObjectKind kind;
  std::uint8_t padding[3];
};

enum class Opcode : std::uint8_t {
  kSend = 1,
  kSendWithImmediate = 2,
  kSendWithInvalidate = 3,
  kWrite = 4,
  kWriteWithImmediate = 5,
  kRead = 6,
  kCompareAndSwap = 7,
  kFetchAndAdd = 8,
  kReceive = 9,
  kBind = 10,
  kInvalidate = 11,
  kOther = 255,
};

enum PostFlags : std::uint8_t {
  kSignaled = 1,
  kInline = 2,
  kFence = 4,
  kSolicited = 8,
  kShared = 16,   // posted to a shared receive queue: `queue` is its name, not a pair's
  kBuilder = 32,  // by ibv_wr_*
  kRefused = 64,  // the call failed: this request and those behind it in the list were not posted
};

// A part of a work request's memory.
struct Segment {
  std::uint64_t
      offset;  // from the region's begin; the salted address where the region is not known
  std::uint32_t length;
  std::uint32_t region;  // or kNone
};

// One work request. `head.time_ns`: the call's begin. Tail = its segments.
struct Post {
  RecordHead head;
  std::uint64_t id;             // wr_id
  std::uint64_t bytes;          // sum of the segments' lengths
  std::uint64_t remote_offset;  // from the remote region's begin where that is in the trace; else
                                // the salted address
  std::uint32_t queue;          // queue pair, or shared receive queue
  std::uint32_t remote_region;  // or kNone
  std::uint32_t remote_key;     // salted
  std::uint32_t call_ns;        // how long the call took that posted it, for the whole list
  std::uint32_t list_index;     // its place among the requests of that call
  std::uint16_t segments;
  Opcode opcode;
  std::uint8_t flags;  // PostFlags
};

// One completion, at the time the poll that returned it ended.
struct Completion {
  RecordHead head;
  std::uint64_t id;     // wr_id
  std::uint32_t queue;  // completion queue
  std::uint32_t pair;   // or kNone
  std::uint32_t bytes;  // as reported; not valid for sends and writes
  std::uint32_t vendor_error;
  std::uint8_t status;  // ibv_wc_status
  Opcode opcode;        // kOther where the status is an error
  std::uint8_t has_immediate;
  std::uint8_t padding[5];
};

// Records of a thread that could not be kept, between two times.
struct Drop {
  RecordHead head;  // time of the last one
  std::uint64_t first_ns;
  std::uint64_t records;
  std::uint64_t posts;
  std::uint64_t completions;
  std::uint64_t posted_bytes;
};

// Tail = a text: a collective's begin, a warm-up's end, a note of the recorder.
struct Mark {
  RecordHead head;
};

template <typename T>
concept FixedRecord = std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0;

static_assert(sizeof(RecordHead) == 16 && sizeof(Segment) == 16);
static_assert(FixedRecord<Host> && FixedRecord<Thread> && FixedRecord<Device> && FixedRecord<Port>);
static_assert(FixedRecord<ProtectionDomain> && FixedRecord<Region> && FixedRecord<CompletionQueue>);
static_assert(FixedRecord<SharedReceiveQueue> && FixedRecord<QueuePair> &&
              FixedRecord<QueuePairState>);
static_assert(FixedRecord<End> && FixedRecord<Post> && FixedRecord<Completion> &&
              FixedRecord<Drop> && FixedRecord<Mark>);

}  // namespace weft::trace
