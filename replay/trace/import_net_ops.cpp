#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "replay/trace/text_lines.hpp"
#include "replay/trace/transform.hpp"
#include "replay/trace/writer.hpp"
#include "sim/base/error.hpp"
#include "sim/base/version.hpp"
#include "sim/io/csv.hpp"

namespace weft::trace {
namespace {

constexpr std::array<std::string_view, 8> kColumns{"dir",   "dev",    "link",   "seq",
                                                   "bytes", "post_s", "done_s", "gpu_mem"};
enum Column : std::uint8_t { kDir, kDev, kLink, kSeq, kBytes, kPosted, kDone, kGpu };

constexpr std::uint8_t kReliable = 2;     // IBV_QPT_RC
constexpr std::uint8_t kReadyToSend = 3;  // IBV_QPS_RTS

struct NetOperation {
  bool is_send{false};
  bool is_gpu{false};
  std::uint64_t device{0};
  std::uint64_t sequence{0};
  std::uint64_t bytes{0};
  std::uint64_t posted_ns{0};
  std::uint64_t done_ns{0};
  std::string link;
};

// A file's lines as operations.
class NetOperations {
 public:
  explicit NetOperations(const std::string& path) : lines_{path} {
    const auto head = lines_.next();
    std::vector<std::string> cells;
    if (head) cells = csv_cells(*head, place());
    if (!std::equal(cells.begin(), cells.end(), kColumns.begin(), kColumns.end())) {
      throw InputError(Place{path, 1}, fmt::format("the columns of network operations are {}",
                                                   fmt::join(kColumns, ",")));
    }
  }

  std::optional<NetOperation> next() {
    const auto line = lines_.next();
    if (!line) return std::nullopt;
    line_ = *line;
    cells_ = csv_cells(line_, place());
    if (cells_.size() != kColumns.size()) {
      throw InputError(place(),
                       fmt::format("{} cells; there are {}", cells_.size(), kColumns.size()));
    }
    NetOperation operation;
    operation.is_send = word(kDir, "send", "recv");
    operation.is_gpu = word(kGpu, "1", "0");
    operation.device = number(kDev);
    operation.sequence = number(kSeq);
    operation.bytes = number(kBytes);
    operation.posted_ns = nanoseconds(kPosted);
    operation.done_ns = nanoseconds(kDone);
    operation.link = cells_[kLink];
    if (operation.done_ns < operation.posted_ns) fail(kDone, "is before post_s");
    if (operation.bytes > std::numeric_limits<std::uint32_t>::max()) {
      fail(kBytes, "a message has at most 4294967295 bytes");
    }
    return operation;
  }

 private:
  Place place() const { return {lines_.path(), lines_.line()}; }

  [[noreturn]] void fail(Column column, const std::string& why) const {
    Place at = place();
    at.column = static_cast<int>(csv_cell_column(line_, column));
    throw InputError(at, fmt::format("{} '{}': {}", kColumns[column], cells_[column], why));
  }

  bool word(Column column, std::string_view yes, std::string_view no) const {
    if (cells_[column] != yes && cells_[column] != no) {
      fail(column, fmt::format("is {} or {}", yes, no));
    }
    return cells_[column] == yes;
  }

  std::uint64_t whole(Column column, std::string_view text) const {
    std::uint64_t value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || rest != text.data() + text.size()) {
      fail(column, "is no whole number");
    }
    return value;
  }

  std::uint64_t number(Column column) const { return whole(column, cells_[column]); }

  // Of seconds with up to nine decimals: exact, as a float is not.
  std::uint64_t nanoseconds(Column column) const {
    const std::string& text = cells_[column];
    const std::size_t point = text.find('.');
    std::string decimals = point == std::string::npos ? "" : text.substr(point + 1);
    constexpr std::uint64_t kMostSeconds = 9'000'000'000;
    if (decimals.size() > 9) fail(column, "is in seconds with at most nine decimals");
    decimals.resize(9, '0');
    const std::uint64_t seconds = whole(column, std::string_view(text).substr(0, point));
    if (seconds > kMostSeconds) fail(column, "is too large");
    return seconds * 1'000'000'000 + whole(column, decimals);
  }

  TextLines lines_;
  std::string line_;
  std::vector<std::string> cells_;
};

RecordHead head_of(RecordType type, std::uint32_t thread, std::uint64_t time_ns) {
  return {.type = type, .bytes = 0, .thread = thread, .time_ns = time_ns};
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// The objects and operations of one file, which is one host.
class HostImport {
 public:
  HostImport(std::uint32_t& names, std::map<std::string, std::array<std::uint32_t, 2>>& links)
      : names_{&names}, links_{&links} {}

  void read(const std::string& path, std::size_t host_index) {
    NetOperations file(path);
    while (auto operation = file.next()) operations_.push_back(std::move(*operation));
    std::stable_sort(
        operations_.begin(), operations_.end(),
        [](const NetOperation& a, const NetOperation& b) { return a.posted_ns < b.posted_ns; });
    if (operations_.empty()) throw InputError(path + ": holds no operation");
    begin_ns_ = operations_.front().posted_ns;
    host_ = (*names_)++;
    thread_ = (*names_)++;
    make_host(host_index);
    for (const NetOperation& operation : operations_) pair_of(operation);
  }

  std::uint64_t operations() const { return operations_.size(); }

  // Once both ends of each link are known.
  void connect(TraceWriter& writer) const {
    for (const auto& [key, pair] : pairs_) {
      QueuePairState state{};
      state.head = head_of(RecordType::kQueuePairState, thread_, begin_ns_);
      state.pair = pair.name;
      state.peer_number = links_->at(key.link)[key.is_send ? 1 : 0];
      state.state = kReadyToSend;
      writer.add(record_of(state));
    }
  }

  void write_objects(TraceWriter& writer) const {
    for (const auto& record : objects_) writer.add(record);
  }

  // Posts and completions in the order of time, as a recorder writes them.
  void write_operations(TraceWriter& writer) const {
    struct Event {
      std::uint64_t time_ns;
      bool is_completion;
      std::size_t operation;
    };
    std::vector<Event> events;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      events.push_back({operations_[i].posted_ns, false, i});
      events.push_back({operations_[i].done_ns, true, i});
    }
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return std::pair(a.time_ns, a.is_completion) < std::pair(b.time_ns, b.is_completion);
    });
    for (const Event& event : events) {
      const NetOperation& operation = operations_[event.operation];
      writer.add(event.is_completion ? completion(operation) : post(operation));
    }
  }

 private:
  struct PairKey {
    std::string link;
    bool is_send;
    friend auto operator<=>(const PairKey&, const PairKey&) = default;
  };
  struct Pair {
    std::uint32_t name;
    std::uint32_t queue;
    std::array<std::uint32_t, 2> regions;  // host, GPU
    std::uint64_t device;
  };

  template <FixedRecord T>
  void object(T fixed, const std::string& text = {}) {
    objects_.push_back(record_of(fixed, bytes_of(text)));
  }

  void make_host(std::size_t index) {
    Host host{};
    host.head = head_of(RecordType::kHost, thread_, begin_ns_);
    host.host = host_;
    object(host, fmt::format("host{}", index));
    Thread thread{};
    thread.head = head_of(RecordType::kThread, thread_, begin_ns_);
    thread.thread = thread_;
    thread.host = host_;
    object(thread, "proxy");
  }

  std::uint32_t domain_of(std::uint64_t device) {
    const auto [at, is_new] = domains_.try_emplace(device, *names_ + 1);
    if (!is_new) return at->second;
    Device made{};
    made.head = head_of(RecordType::kDevice, thread_, begin_ns_);
    made.device = (*names_)++;
    made.host = host_;
    made.ports = 1;
    object(made, fmt::format("net{}", device));
    ProtectionDomain domain{};
    domain.head = head_of(RecordType::kProtectionDomain, thread_, begin_ns_);
    domain.domain = (*names_)++;
    domain.device = made.device;
    object(domain);
    return at->second;
  }

  std::uint32_t region(std::uint32_t domain, MemoryKind kind, std::uint64_t bytes) {
    Region region{};
    region.head = head_of(RecordType::kRegion, thread_, begin_ns_);
    region.region = (*names_)++;
    region.domain = domain;
    region.length = bytes;
    region.kind = kind;
    object(region);
    return region.region;
  }

  const Pair& pair_of(const NetOperation& operation) {
    const PairKey key{operation.link, operation.is_send};
    const auto found = pairs_.find(key);
    if (found != pairs_.end()) {
      if (found->second.device == operation.device) return found->second;
      throw InputError(fmt::format("link '{}': {} of NICs {} and {}; a link has one at each end",
                                   one_line(key.link), key.is_send ? "sends" : "receives",
                                   found->second.device, operation.device));
    }
    const std::uint32_t domain = domain_of(operation.device);
    CompletionQueue queue{};
    queue.head = head_of(RecordType::kCompletionQueue, thread_, begin_ns_);
    queue.queue = (*names_)++;
    queue.device = domain - 1;
    object(queue);
    std::uint64_t most = 0;
    for (const NetOperation& other : operations_) most = std::max(most, other.bytes);
    const Pair pair{
        (*names_)++,
        queue.queue,
        {region(domain, MemoryKind::kHost, most), region(domain, MemoryKind::kGpuPeer, most)},
        operation.device};
    QueuePair made{};
    made.head = head_of(RecordType::kQueuePair, thread_, begin_ns_);
    made.pair = pair.name;
    made.domain = domain;
    made.number = pair.name;
    made.send_queue = made.receive_queue = queue.queue;
    made.shared_receives = kNone;
    made.type = kReliable;
    object(made);
    std::uint32_t& end = (*links_)[operation.link][operation.is_send ? 0 : 1];
    if (end != 0) {
      throw InputError(fmt::format("link '{}': {} in two files", one_line(operation.link),
                                   operation.is_send ? "sends" : "receives"));
    }
    end = pair.name;
    return pairs_.emplace(key, pair).first->second;
  }

  std::vector<std::byte> post(const NetOperation& operation) const {
    const Pair& pair = pairs_.at({operation.link, operation.is_send});
    Post post{};
    post.head = head_of(RecordType::kPost, thread_, operation.posted_ns);
    post.id = operation.sequence;
    post.bytes = operation.bytes;
    post.queue = pair.name;
    post.remote_region = kNone;
    post.segments = 1;
    post.opcode = operation.is_send ? Opcode::kSend : Opcode::kReceive;
    post.flags = kSignaled;
    const Segment segment{.offset = 0,
                          .length = static_cast<std::uint32_t>(operation.bytes),
                          .region = pair.regions[operation.is_gpu ? 1 : 0]};
    return record_of(post, std::as_bytes(std::span(&segment, 1)));
  }

  std::vector<std::byte> completion(const NetOperation& operation) const {
    const Pair& pair = pairs_.at({operation.link, operation.is_send});
    Completion completion{};
    completion.head = head_of(RecordType::kCompletion, thread_, operation.done_ns);
    completion.id = operation.sequence;
    completion.queue = pair.queue;
    completion.pair = pair.name;
    completion.bytes = static_cast<std::uint32_t>(operation.bytes);
    completion.opcode = operation.is_send ? Opcode::kSend : Opcode::kReceive;
    return record_of(completion);
  }

  std::uint32_t* names_;
  std::map<std::string, std::array<std::uint32_t, 2>>* links_;  // pairs' names: sends, receives
  std::vector<NetOperation> operations_;
  std::uint64_t begin_ns_{0};
  std::uint32_t host_{0};
  std::uint32_t thread_{0};
  std::map<std::uint64_t, std::uint32_t> domains_;  // by device
  std::map<PairKey, Pair> pairs_;
  std::vector<std::vector<std::byte>> objects_;
};

}  // namespace

ImportResult import_net_operations(const std::vector<std::string>& files,
                                   const std::string& output) {
  std::uint32_t names = 1;
  std::map<std::string, std::array<std::uint32_t, 2>> links;
  std::vector<HostImport> hosts;
  ImportResult result;
  for (std::size_t i = 0; i < files.size(); ++i) {
    hosts.emplace_back(names, links).read(files[i], i);
    result.operations += hosts.back().operations();
  }
  const std::string tool = "weft " + std::string(weft_version()) + " (import)";
  TraceWriter writer(output, {.tool = tool, .topology = {}, .clock = ClockKind::kMonotonic});
  for (const HostImport& host : hosts) {
    host.write_objects(writer);
    host.connect(writer);
    host.write_operations(writer);
  }
  result.pairs = 0;
  for (const auto& [link, ends] : links) {
    result.pairs += (ends[0] != 0 ? 1U : 0U) + (ends[1] != 0 ? 1U : 0U);
  }
  writer.end();
  writer.commit();
  return result;
}

}  // namespace weft::trace
