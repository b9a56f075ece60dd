#include "replay/simulate/recorded.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "replay/trace/host_numbers.hpp"
#include "replay/trace/match.hpp"
#include "sim/base/error.hpp"

namespace weft::replay {
namespace {

using trace::Opcode;
using trace::RecordType;
using trace::RecordView;

constexpr std::uint8_t kReliable = 2;  // IBV_QPT_RC

constexpr const char* kOtherTransport = "operations on queue pairs other than RC";
constexpr const char* kUnusedReceive = "receives of shared queues that nothing came for";
constexpr const char* kFailed = "operations that failed";
constexpr const char* kTooLarge = "operations of more than 2 GiB, which no message has";
constexpr std::uint64_t kLargestMessage = std::uint64_t{1} << 31U;  // IBTA vol. 1, 9.7.6
constexpr std::size_t kMostHosts = 10'000;
constexpr std::uint64_t kLongestNs = 100ULL * 24 * 3600 * 1'000'000'000;  // simulated time is less
constexpr const char* kNoSender = "receives whose sender is not in the trace";
constexpr const char* kNoPair = "operations on queue pairs whose making is not in the trace";

// Why an opcode cannot be replayed.
const char* why_not(Opcode opcode) {
  switch (opcode) {
    case Opcode::kSend:
    case Opcode::kSendWithImmediate:
    case Opcode::kWrite:
    case Opcode::kWriteWithImmediate:
    case Opcode::kRead:
    case Opcode::kReceive:
      return nullptr;
    case Opcode::kCompareAndSwap:
    case Opcode::kFetchAndAdd:
      return "atomic operations";
    case Opcode::kSendWithInvalidate:
    case Opcode::kBind:
    case Opcode::kInvalidate:
      return "operations on memory windows and keys";
    case Opcode::kOther:
      break;
  }
  return "operations of an unknown kind";
}

class RecordedReader {
 public:
  explicit RecordedReader(Recorded& out) : out_{&out} {}

  void take(RecordView record) {
    switch (record.type()) {
      case RecordType::kHost:
        hosts_.of(record.as<trace::Host>().host, std::string(record.text<trace::Host>()));
        return;
      case RecordType::kThread:
        thread(record.as<trace::Thread>().thread).name = record.text<trace::Thread>();
        return;
      case RecordType::kDevice:
        make_device(record.as<trace::Device>(), std::string(record.text<trace::Device>()));
        return;
      case RecordType::kPort: {
        const auto device = devices_.find(record.as<trace::Port>().device);
        if (device == devices_.end()) return;
        out_->devices[device->second].lids.push_back(record.as<trace::Port>().lid);
        return;
      }
      case RecordType::kProtectionDomain:
        domains_[record.as<trace::ProtectionDomain>().domain] =
            record.as<trace::ProtectionDomain>().device;
        return;
      case RecordType::kRegion:
        memories_[record.as<trace::Region>().region] = record.as<trace::Region>().kind;
        return;
      case RecordType::kQueuePair:
        make_pair(record.as<trace::QueuePair>());
        matcher_.object(record);
        return;
      case RecordType::kQueuePairState: {
        const auto state = record.as<trace::QueuePairState>();
        if (state.peer_number == 0) return;
        out_->pairs[pair(state.pair)].end.peer_number = state.peer_number;
        out_->pairs[pair(state.pair)].end.peer_port = state.peer_port;
        return;
      }
      case RecordType::kDrop:
        out_->left_out["records dropped while recording"] += record.as<trace::Drop>().records;
        return;
      case RecordType::kPost:
        post(record);
        return;
      case RecordType::kCompletion:
        completion(record);
        return;
      default:
        return;
    }
  }

  void finish() {
    out_->hosts = hosts_.count();
    if (out_->hosts > kMostHosts) {
      throw InputError(fmt::format("{}: of more than {} hosts", out_->file, kMostHosts));
    }
    out_->hosts = std::max(out_->hosts, std::uint32_t{1});
    join_pairs();
    for (Operation& operation : out_->operations) leave_out(operation);
    if (const std::uint64_t n = matcher_.forgotten(); n > 0) {
      out_->left_out
          ["posts ahead of more than any queue holds: when they were done is not known"] += n;
    }
    drop_idle_devices();
  }

 private:
  void make_device(const trace::Device& made, const std::string& text) {
    const std::uint32_t host = hosts_.of(made.host);
    const auto known = std::find_if(out_->devices.begin(), out_->devices.end(), [&](const auto& d) {
      return !text.empty() && d.name == text && d.host == host;
    });
    const auto place = static_cast<std::size_t>(known - out_->devices.begin());
    if (known == out_->devices.end()) out_->devices.push_back({text, host});
    devices_.emplace(made.device, place);
  }

  RecordedThread& thread(std::uint32_t name) {
    const auto [at, is_new] = threads_.emplace(name, out_->threads.size());
    if (is_new) out_->threads.emplace_back();
    return out_->threads[at->second];
  }

  std::uint32_t pair(std::uint32_t name) {
    const auto [at, is_new] = pairs_.emplace(name, out_->pairs.size());
    if (is_new) out_->pairs.push_back({.name = name});
    return static_cast<std::uint32_t>(at->second);
  }

  void make_pair(const trace::QueuePair& made) {
    RecordedPair& pair = out_->pairs[this->pair(made.pair)];
    pair.end.number = made.number;
    pair.type = made.type;
    pair.is_unseen = made.is_unseen != 0;
    const auto domain = domains_.find(made.domain);
    if (domain == domains_.end()) return;
    const auto device = devices_.find(domain->second);
    if (device != devices_.end()) pair.device = static_cast<std::uint32_t>(device->second);
  }

  // From the first post or completion on.
  std::uint64_t since_begin(std::uint64_t ns) {
    if (!begin_ns_) begin_ns_ = ns;
    const std::uint64_t since = ns - std::min(ns, *begin_ns_);
    if (since > kLongestNs) throw InputError(out_->file + ": is of more than 100 days; cut it");
    out_->span_ns = std::max(out_->span_ns, since);
    return since;
  }

  trace::MemoryKind memory_of(RecordView record, const trace::Post& post) const {
    if (post.segments == 0) return trace::MemoryKind::kUnknown;
    const auto found = memories_.find(record.segment(0).region);
    return found == memories_.end() ? trace::MemoryKind::kUnknown : found->second;
  }

  void post(RecordView record) {
    const auto post = record.as<trace::Post>();
    const auto pending = matcher_.post(record);
    if (!pending) {
      ++out_->left_out["posts that were refused"];
      return;
    }
    if (out_->operations.size() == kMostOperations) {
      throw InputError(fmt::format("{}: more than {} operations; cut it (weft trace cut)",
                                   out_->file, kMostOperations));
    }
    const bool is_shared = (post.flags & trace::kShared) != 0;
    const auto index = static_cast<std::uint32_t>(out_->operations.size());
    out_->operations.push_back({.pair = is_shared ? kNone : pair(post.queue),
                                .opcode = post.opcode,
                                .bytes = post.bytes,
                                .posted_ns = since_begin(post.head.time_ns),
                                .list_index = post.list_index,
                                .number = pending->number,
                                .memory = memory_of(record, post),
                                .is_inline = (post.flags & trace::kInline) != 0,
                                .is_shared = is_shared,
                                .left_out = why_not(post.opcode)});
    thread(post.head.thread).events.push_back({out_->operations[index].posted_ns, index, false});
  }

  void completion(RecordView record) {
    const auto completion = record.as<trace::Completion>();
    const std::uint64_t at = since_begin(completion.head.time_ns);
    const auto match = matcher_.completion(record);
    if (!match) {
      ++out_->left_out["completions without their post"];
      return;
    }
    Operation& operation = out_->operations[match->request.index];
    operation.done_ns = std::max<std::uint64_t>(at, 1);
    operation.number = match->request.number;
    for (const auto& unsignaled : match->before) operation.before_bytes += unsignaled.bytes;
    if (operation.pair == kNone) operation.pair = pair(match->request.pair);
    if (completion.status != 0) operation.left_out = kFailed;
    const auto index = static_cast<std::uint32_t>(match->request.index);
    thread(completion.head.thread).events.push_back({at, index, true});
  }

  void join_pairs() {
    std::vector<trace::PairEnd> ends;
    for (const RecordedPair& pair : out_->pairs) {
      ends.push_back(pair.end);
      if (pair.device != kNone) ends.back().lids = out_->devices[pair.device].lids;
    }
    const std::vector<std::uint32_t> peers = trace::connect(ends);
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const bool has_peer = peers[i] != kNone && out_->pairs[peers[i]].device != kNone;
      out_->pairs[i].peer = has_peer ? peers[i] : kNone;
    }
  }

  /// Programs open devices that they do not use: those have no place in a machine.
  void drop_idle_devices() const {
    std::vector<bool> is_used(out_->devices.size());
    for (const Operation& o : out_->operations) {
      if (o.left_out != nullptr) continue;
      const RecordedPair& pair = out_->pairs[o.pair];
      is_used[pair.device] = true;
      if (pair.peer != kNone) is_used[out_->pairs[pair.peer].device] = true;
    }
    std::vector<std::uint32_t> place(out_->devices.size(), kNone);
    std::vector<RecordedDevice> used;
    for (std::size_t i = 0; i < is_used.size(); ++i) {
      if (!is_used[i]) continue;
      place[i] = static_cast<std::uint32_t>(used.size());
      used.push_back(std::move(out_->devices[i]));
    }
    out_->devices = std::move(used);
    for (RecordedPair& pair : out_->pairs) {
      if (pair.device != kNone) pair.device = place[pair.device];
    }
  }

  void leave_out(Operation& operation) const {
    if (operation.left_out == nullptr) {
      const bool has_pair = operation.pair != kNone && out_->pairs[operation.pair].device != kNone;
      if (operation.is_shared && operation.pair == kNone) {
        operation.left_out = kUnusedReceive;
      } else if (!has_pair) {
        operation.left_out = kNoPair;
      } else if (operation.bytes > kLargestMessage) {
        operation.left_out = kTooLarge;
      } else if (out_->pairs[operation.pair].type != kReliable) {
        operation.left_out = kOtherTransport;
      } else if (is_receive(operation) && out_->pairs[operation.pair].peer == kNone) {
        operation.left_out = kNoSender;
      }
    }
    if (operation.left_out != nullptr) ++out_->left_out[operation.left_out];
  }

  Recorded* out_;
  trace::Matcher matcher_;
  trace::HostNumbers hosts_;
  std::map<std::uint32_t, std::size_t> threads_;
  std::map<std::uint32_t, std::size_t> devices_;
  std::map<std::uint32_t, std::size_t> pairs_;
  std::map<std::uint32_t, std::uint32_t> domains_;  // to the trace's name of the device
  std::map<std::uint32_t, trace::MemoryKind> memories_;
  std::optional<std::uint64_t> begin_ns_;
};

}  // namespace

bool takes_receive(const Operation& operation) { return trace::is_received(operation.opcode); }
bool is_receive(const Operation& operation) { return trace::is_receive(operation.opcode); }

Recorded read_recorded(const std::string& path) {
  Recorded out;
  out.file = path;
  trace::OrderedRecords records(path);
  RecordedReader reader(out);
  while (const auto record = records.next()) reader.take(*record);
  reader.finish();
  const trace::Losses& losses = records.reader().losses();
  if (losses.blocks > 0) out.left_out["blocks of the file that are lost"] += losses.blocks;
  if (losses.bytes > 0) out.left_out["bytes of the file that cannot be read"] += losses.bytes;
  if (!records.reader().is_ended()) {
    out.left_out["end of the file: its writer was stopped, or it is cut off"] = 1;
  }
  for (const RecordedPair& pair : out.pairs) {
    if (pair.is_unseen) ++out.left_out["queue pairs whose requests were posted past libibverbs"];
  }
  const bool has_any = std::any_of(out.operations.begin(), out.operations.end(), [](const auto& o) {
    return o.left_out == nullptr && !is_receive(o);
  });
  if (has_any) return out;
  std::vector<std::string> reasons;
  for (const auto& [what, n] : out.left_out) reasons.push_back(fmt::format("{} {}", n, what));
  throw InputError(path + ": holds nothing that can be replayed" +
                   (reasons.empty() ? "" : fmt::format(": {}", fmt::join(reasons, "; "))));
}

}  // namespace weft::replay
