#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <span>

#include "replay/record/hooks.hpp"

namespace weft::record {

inline trace::Opcode opcode_of(ibv_wr_opcode code) {
  using trace::Opcode;
  switch (code) {
    case IBV_WR_SEND:
      return Opcode::kSend;
    case IBV_WR_SEND_WITH_IMM:
      return Opcode::kSendWithImmediate;
    case IBV_WR_SEND_WITH_INV:
      return Opcode::kSendWithInvalidate;
    case IBV_WR_RDMA_WRITE:
      return Opcode::kWrite;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return Opcode::kWriteWithImmediate;
    case IBV_WR_RDMA_READ:
      return Opcode::kRead;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return Opcode::kCompareAndSwap;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return Opcode::kFetchAndAdd;
    case IBV_WR_BIND_MW:
      return Opcode::kBind;
    case IBV_WR_LOCAL_INV:
      return Opcode::kInvalidate;
    default:
      return Opcode::kOther;
  }
}

inline std::uint8_t flags_of(unsigned send_flags) {
  std::uint8_t flags = 0;
  if ((send_flags & IBV_SEND_SIGNALED) != 0) flags |= trace::kSignaled;
  if ((send_flags & IBV_SEND_INLINE) != 0) flags |= trace::kInline;
  if ((send_flags & IBV_SEND_FENCE) != 0) flags |= trace::kFence;
  if ((send_flags & IBV_SEND_SOLICITED) != 0) flags |= trace::kSolicited;
  return flags;
}

/// What an operation names of the other side's memory.
inline void set_remote(trace::Post& post, const Salt& salt, std::uint64_t address,
                       std::uint32_t key) {
  post.remote_offset = salt.address(address);
  post.remote_key = salt.key(key);
}

/// A part of a request's memory. Inline data is read at once: its key means nothing.
inline trace::Segment segment_of(const Context& context, std::uint64_t address,
                                 std::uint32_t length, std::uint32_t key, bool is_inline) {
  const Place place = is_inline ? Place{} : place_of(context, key, address);
  const bool is_known = place.region != trace::kNone;
  return {.offset = is_known ? place.offset : context.recorder->salt().address(address),
          .length = length,
          .region = place.region};
}

/// The records of one call, in the making: they are laid into the thread's ring before the call,
/// since what they tell of may be gone after it, and published after it with what came out. Where
/// they do not all fit none is kept, and all are counted.
class Batch {
 public:
  explicit Batch(const Context& context)
      : ring_{context.is_recorded() ? context.recorder->ring() : nullptr},
        thread_{context.recorder->thread()} {
    if (ring_ == nullptr) return;
    // A signal's handler that posts within a post, or polls: it may not touch the ring.
    is_nested_ = is_busy;
    is_busy = true;
    is_kept_ = !is_nested_ && ring_->is_open(thread_);
  }
  ~Batch() {
    if (ring_ != nullptr && !is_nested_) is_busy = false;
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  bool is_recording() const { return ring_ != nullptr; }

  /// Room for one more record; nullptr where it is only counted.
  std::byte* add(std::size_t bytes) {
    ++count_.records;
    if (!is_kept_) return nullptr;
    std::byte* const place = bytes <= trace::kMaxRecordBytes ? ring_->take(bytes) : nullptr;
    if (place == nullptr) {
      is_kept_ = false;
      ring_->give_back();
    }
    return place;
  }

  /// `request`: where the program has it, to tell later which one was refused. `segments_said` is
  /// the program's word: what no record holds no device takes, and its segments are not looked at.
  void add_post(const Context& context, trace::Post post, const void* request,
                const ibv_sge* segments, int segments_said) {
    constexpr int kMost = (trace::kMaxRecordBytes - sizeof post) / sizeof(trace::Segment);
    const bool is_told = segments_said > 0 && segments_said <= kMost;
    const auto segment_count = static_cast<std::uint32_t>(is_told ? segments_said : 0);
    for (std::uint32_t i = 0; i < segment_count; ++i) post.bytes += segments[i].length;
    std::byte* const place = add_counted(post, segment_count);
    if (place == nullptr) return;
    const std::size_t bytes = sizeof post + segment_count * sizeof(trace::Segment);
    // The request's address waits where its time will be.
    post.head = {trace::RecordType::kPost, static_cast<std::uint16_t>(bytes), thread_,
                 std::bit_cast<std::uint64_t>(request)};
    post.segments = static_cast<std::uint16_t>(segment_count);
    std::memcpy(place, &post, sizeof post);
    const bool is_inline = (post.flags & trace::kInline) != 0;
    for (std::uint32_t i = 0; i < segment_count; ++i) {
      const trace::Segment segment =
          segment_of(context, segments[i].addr, segments[i].length, segments[i].lkey, is_inline);
      std::memcpy(place + sizeof post + i * sizeof segment, &segment, sizeof segment);
    }
  }

  /// One that was put together elsewhere, with its segments behind it.
  void add_whole(std::span<const std::byte> whole) {
    trace::Post post{};
    std::memcpy(&post, whole.data(), sizeof post);
    std::byte* const place = add_counted(post, post.segments);
    if (place == nullptr) return;
    post.head.thread = thread_;
    std::memcpy(place, whole.data(), whole.size());
    std::memcpy(place, &post, sizeof post);
  }

  /// After the call. `refused`: the first request that was not posted; `kAllRefused` where none
  /// was, nullptr where all were.
  void finish_posts(std::uint64_t begin_ns, const void* refused) {
    if (ring_ == nullptr) return;
    const std::uint64_t end_ns = now_ns();
    if (!is_kept_) {
      ring_->drop(end_ns, count_);
      return;
    }
    const auto call_ns = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(end_ns - begin_ns, std::numeric_limits<std::uint32_t>::max()));
    bool is_refused = refused == kAllRefused;
    std::uint32_t index = 0;
    ring_->for_each_taken([&](std::byte* record) {
      trace::Post post{};
      std::memcpy(&post, record, sizeof post);
      is_refused |=
          refused != nullptr && post.head.time_ns == std::bit_cast<std::uint64_t>(refused);
      if (is_refused) post.flags |= trace::kRefused;
      post.head.time_ns = begin_ns;
      post.call_ns = call_ns;
      post.list_index = index++;
      std::memcpy(record, &post, sizeof post);
    });
    ring_->publish();
  }
  inline static const char kRefusedMark{};
  inline static const void* const kAllRefused = &kRefusedMark;

  void add_completion(trace::Completion completion) {
    ++count_.completions;
    std::byte* const place = add(sizeof completion);
    if (place == nullptr) return;
    completion.head.type = trace::RecordType::kCompletion;
    completion.head.bytes = sizeof completion;
    completion.head.thread = thread_;
    std::memcpy(place, &completion, sizeof completion);
  }
  void finish_completions(std::uint64_t time_ns) {
    if (is_kept_) {
      ring_->publish();
    } else if (ring_ != nullptr) {
      ring_->drop(time_ns, count_);
    }
  }

 private:
  std::byte* add_counted(const trace::Post& post, std::uint32_t segment_count) {
    ++count_.posts;
    count_.posted_bytes += post.bytes;
    return add(sizeof post + segment_count * sizeof(trace::Segment));
  }

  inline static constinit thread_local bool is_busy{false};

  Ring* ring_;
  std::uint32_t thread_;
  bool is_nested_{false};
  bool is_kept_{false};
  Dropped count_;
};

}  // namespace weft::record
