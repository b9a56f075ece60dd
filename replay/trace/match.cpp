#include "replay/trace/match.hpp"

#include <algorithm>
#include <utility>

namespace weft::trace {
namespace {

// No queue is longer (ConnectX: max_qp_wr and max_srq_wr are 32768 at most): bounds the search on
// hostile traces.
constexpr std::size_t kMostWaiting = 1U << 16;

// The place of the first that waits with this id.
std::optional<std::size_t> find(const std::deque<Pending>& waiting, std::uint64_t id) {
  const auto found =
      std::find_if(waiting.begin(), waiting.end(), [&](const Pending& p) { return p.id == id; });
  if (found == waiting.end()) return std::nullopt;
  return static_cast<std::size_t>(found - waiting.begin());
}

}  // namespace

bool is_receive(Opcode opcode) { return opcode == Opcode::kReceive; }

bool is_received(Opcode opcode) {
  return opcode == Opcode::kSend || opcode == Opcode::kSendWithImmediate ||
         opcode == Opcode::kSendWithInvalidate || opcode == Opcode::kWriteWithImmediate;
}

void Matcher::object(RecordView record) {
  if (record.type() != RecordType::kQueuePair) return;
  const auto pair = record.as<QueuePair>();
  pairs_[pair.pair].shared = pair.shared_receives;
  pairs_[pair.pair].send_queue = pair.send_queue;
  pairs_[pair.pair].receive_queue = pair.receive_queue;
  pairs_[pair.pair].signals_all = pair.signals_all != 0;
}

std::optional<Pending> Matcher::post(RecordView record) {
  const auto post = record.as<Post>();
  if ((post.flags & kRefused) != 0) return std::nullopt;
  const bool is_shared = (post.flags & kShared) != 0;
  Pending pending{.id = post.id,
                  .index = posts_++,
                  .time_ns = post.head.time_ns,
                  .bytes = post.bytes,
                  .thread = post.head.thread,
                  .pair = is_shared ? kNone : post.queue,
                  .opcode = post.opcode,
                  .flags = post.flags};
  Pair* const pair = is_shared ? nullptr : &pairs_[post.queue];
  Side& side = is_shared                 ? shared_[post.queue]
               : is_receive(post.opcode) ? pair->receives
                                         : pair->sends;
  if (pair != nullptr && pair->signals_all) pending.flags |= kSignaled;
  pending.number = side.numbered;
  if (is_receive(post.opcode) || is_received(post.opcode)) ++side.numbered;
  side.waiting.push_back(pending);
  if (side.waiting.size() > kMostWaiting) {
    side.waiting.pop_front();
    ++forgotten_;
  }
  return pending;
}

std::optional<Matcher::Match> Matcher::send_completion(Pair& pair, std::uint64_t id) {
  std::deque<Pending>& waiting = pair.sends.waiting;
  const auto at = find(waiting, id);
  if (!at) return std::nullopt;
  Match match;
  for (std::size_t i = 0; i < *at; ++i) {
    const bool is_signaled = (waiting.front().flags & kSignaled) != 0;
    (is_signaled ? match.lost : match.before).push_back(waiting.front());
    waiting.pop_front();
  }
  match.request = waiting.front();
  waiting.pop_front();
  return match;
}

std::optional<Matcher::Match> Matcher::receive_completion(Pair& pair, std::uint32_t name,
                                                          std::uint64_t id) {
  const bool is_shared = pair.shared != kNone;
  std::deque<Pending>& waiting = is_shared ? shared_[pair.shared].waiting : pair.receives.waiting;
  const auto at = find(waiting, id);
  if (!at) return std::nullopt;
  Match match{.request = waiting[*at], .before = {}, .lost = {}};
  waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(*at));
  match.request.pair = name;
  if (is_shared) match.request.number = pair.received;
  ++pair.received;
  return match;
}

std::optional<Matcher::Match> Matcher::completion(RecordView record) {
  const auto completion = record.as<Completion>();
  Pair& pair = pairs_[completion.pair];
  const bool of_receive = completion.opcode == Opcode::kOther ? is_of_receive(pair, completion)
                                                              : is_receive(completion.opcode);
  return of_receive ? receive_completion(pair, completion.pair, completion.id)
                    : send_completion(pair, completion.id);
}

/// The opcode of one with an error is not known: the completion queue says which side's it is;
/// where both have one, the side on which fewer requests stand before it, since each completes in
/// order.
bool Matcher::is_of_receive(const Pair& pair, const Completion& completion) const {
  if (pair.send_queue != pair.receive_queue) return completion.queue == pair.receive_queue;
  const auto shared = shared_.find(pair.shared);
  const Side& receives = shared == shared_.end() ? pair.receives : shared->second;
  const auto received = find(receives.waiting, completion.id);
  const auto sent = find(pair.sends.waiting, completion.id);
  return received && (!sent || *received < *sent);
}

std::vector<Pending> Matcher::waiting() const {
  std::vector<Pending> out;
  const auto add = [&](const Side& side) {
    out.insert(out.end(), side.waiting.begin(), side.waiting.end());
  };
  for (const auto& [name, pair] : pairs_) {
    add(pair.sends);
    add(pair.receives);
  }
  for (const auto& [name, side] : shared_) add(side);
  return out;
}

}  // namespace weft::trace
