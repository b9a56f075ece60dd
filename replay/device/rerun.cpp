#include "replay/device/rerun.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <deque>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "replay/device/endpoint.hpp"
#include "replay/device/peer_link.hpp"
#include "replay/trace/fields.hpp"
#include "sim/base/error.hpp"

namespace weft::replay {
namespace {

using trace::Opcode;

constexpr std::uint64_t kReceiveId = 1ULL << 63;          // | connection
constexpr std::uint64_t kLongestWaitNs = 30'000'000'000;  // for a completion
constexpr std::size_t kMostMessage = 1U << 30;            // an RC message is at most 2 GiB

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

bool is_again(const Operation& operation) { return operation.left_out == nullptr; }

/// A queue pair of the trace that runs here, and what its other end will send it.
struct Connection {
  std::uint32_t ours{kNone};
  std::uint32_t theirs{kNone};
  std::uint64_t expected{0};  ///< messages that take a receive
  std::uint64_t received{0};
  std::uint64_t receives{0};            ///< posted
  std::uint64_t awaited{0};             ///< of those, how many completions the trace took so far
  std::deque<std::uint32_t> waiting{};  ///< operations in the send queue, as far as known
  std::uint32_t unsignaled{0};          ///< of those, behind the last that is signaled
  std::uint32_t last{kNone};            ///< the last operation that it posts
  Address peer{};
};

struct Step {
  std::uint64_t time_ns;
  std::uint32_t operation;
  bool is_completion;
};

/// The first or the second end of each connection of a trace.
class Side {
 public:
  Side(const Recorded& recorded, bool is_first);

  std::size_t longest() const { return longest_; }
  std::vector<Connection> connections;
  std::vector<std::uint32_t> connection_of;  ///< by the trace's queue pair; kNone: not of this side
  std::vector<Step> steps;                   ///< in the order of time

 private:
  void pair_up(bool is_first);
  void expect();
  void take_steps();

  const Recorded* recorded_;
  std::size_t longest_{0};
};

Side::Side(const Recorded& recorded, bool is_first)
    : connection_of(recorded.pairs.size(), kNone), recorded_{&recorded} {
  pair_up(is_first);
  expect();
  take_steps();
}

void Side::pair_up(bool is_first) {
  std::vector<bool> is_used(recorded_->pairs.size(), false);
  for (const Operation& operation : recorded_->operations) {
    if (is_again(operation)) is_used[operation.pair] = true;
  }
  for (std::uint32_t p = 0; p < recorded_->pairs.size(); ++p) {
    const std::uint32_t peer = recorded_->pairs[p].peer;
    if (peer != kNone && peer < p) continue;  // it came with its other end
    if (!is_used[p] && (peer == kNone || !is_used[peer])) continue;
    Connection connection;
    connection.ours = is_first ? p : peer;
    connection.theirs = is_first ? peer : p;
    if (connection.ours != kNone) {
      connection_of[connection.ours] = static_cast<std::uint32_t>(connections.size());
    }
    connections.push_back(connection);
  }
}

void Side::expect() {
  std::vector<std::uint64_t> sent(recorded_->pairs.size(), 0);
  for (const Operation& operation : recorded_->operations) {
    if (!is_again(operation)) continue;
    if (operation.bytes > kMostMessage) {
      throw InputError(fmt::format("{}: a message of {} bytes; at most 1 GiB is sent again",
                                   recorded_->file, operation.bytes));
    }
    longest_ = std::max<std::size_t>(longest_, operation.bytes);
    if (takes_receive(operation)) ++sent[operation.pair];
  }
  for (Connection& connection : connections) {
    if (connection.theirs != kNone) connection.expected = sent[connection.theirs];
  }
}

void Side::take_steps() {
  for (const RecordedThread& thread : recorded_->threads) {
    for (const Event& event : thread.events) {
      const Operation& operation = recorded_->operations[event.operation];
      if (!is_again(operation) || connection_of[operation.pair] == kNone) continue;
      if (is_receive(operation) && !event.is_completion) continue;  // posted ahead
      steps.push_back({event.time_ns, event.operation, event.is_completion});
    }
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.time_ns < b.time_ns; });
  for (const Step& step : steps) {
    if (step.is_completion) continue;
    connections[connection_of[recorded_->operations[step.operation].pair]].last = step.operation;
  }
}

ibv_wr_opcode verb_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::kWrite:
      return IBV_WR_RDMA_WRITE;
    case Opcode::kWriteWithImmediate:
      return IBV_WR_RDMA_WRITE_WITH_IMM;
    case Opcode::kRead:
      return IBV_WR_RDMA_READ;
    case Opcode::kSendWithImmediate:
      return IBV_WR_SEND_WITH_IMM;
    // What a send invalidates is the trace's; the message is the same.
    case Opcode::kSend:
    case Opcode::kSendWithInvalidate:
      return IBV_WR_SEND;
    default:
      throw InputError(fmt::format("no {} on a device", trace::opcode_name(opcode)));
  }
}

/// One process's part of a re-run.
class Runner {
 public:
  Runner(const Recorded& recorded, Side& side, Endpoint& endpoint)
      : recorded_{&recorded},
        side_{&side},
        endpoint_{&endpoint},
        is_done_(recorded.operations.size(), false) {}

  void post_receives() {
    for (std::size_t c = 0; c < side_->connections.size(); ++c) top_up(c);
  }
  Rerun run();

 private:
  Connection& connection_of(const Operation& operation) {
    return side_->connections[side_->connection_of[operation.pair]];
  }
  void top_up(std::size_t index);
  void post(std::uint32_t index);
  void take(const ibv_wc& completion);
  template <typename Reached>
  void poll_until(Reached reached);
  void await(std::uint32_t index);
  bool has_all();

  const Recorded* recorded_;
  Side* side_;
  Endpoint* endpoint_;
  std::vector<bool> is_done_;
  Rerun out_;
};

void Runner::top_up(std::size_t index) {
  Connection& connection = side_->connections[index];
  while (connection.receives < connection.expected &&
         connection.receives - connection.received < endpoint_->depth()) {
    ibv_sge segment = endpoint_->segment(side_->longest());
    ibv_recv_wr request{};
    request.wr_id = kReceiveId | index;
    request.sg_list = &segment;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    if (ibv_post_recv(endpoint_->pair(index), &request, &bad) != 0) {
      throw InputError("ibv_post_recv was refused");
    }
    ++connection.receives;
  }
}

void Runner::post(std::uint32_t index) {
  const Operation& operation = recorded_->operations[index];
  Connection& connection = connection_of(operation);
  poll_until([&] { return connection.waiting.size() < endpoint_->depth(); });
  // The recorded queue may have been longer: at least one in each half of this one is signaled.
  const bool is_signaled = operation.done_ns != 0 || index == connection.last ||
                           connection.unsignaled + 1 >= endpoint_->depth() / 2;
  ibv_sge segment = endpoint_->segment(operation.bytes);
  ibv_send_wr request{};
  request.wr_id = index;
  request.sg_list = &segment;
  request.num_sge = operation.bytes > 0 ? 1 : 0;
  request.opcode = verb_of(operation.opcode);
  request.send_flags = is_signaled ? IBV_SEND_SIGNALED : 0;
  request.wr.rdma.remote_addr = connection.peer.memory;
  request.wr.rdma.rkey = connection.peer.key;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(endpoint_->pair(side_->connection_of[operation.pair]), &request, &bad) != 0) {
    throw InputError("ibv_post_send was refused");
  }
  connection.waiting.push_back(index);
  connection.unsignaled = is_signaled ? 0 : connection.unsignaled + 1;
  Rerun::Count& count = out_.operations[operation.opcode];
  ++count.posts;
  count.bytes += operation.bytes;
}

void Runner::take(const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) {
    throw InputError(fmt::format("an operation ended with {}",
                                 trace::status_name(static_cast<std::uint8_t>(completion.status))));
  }
  if ((completion.wr_id & kReceiveId) != 0) {
    const std::size_t index = completion.wr_id & ~kReceiveId;
    ++side_->connections[index].received;
    ++out_.operations[Opcode::kReceive].completions;
    top_up(index);
    return;
  }
  const auto index = static_cast<std::uint32_t>(completion.wr_id);
  const Operation& operation = recorded_->operations[index];
  ++out_.operations[operation.opcode].completions;
  // A send queue completes in order: with it all that were posted before it and not signaled.
  std::deque<std::uint32_t>& waiting = connection_of(operation).waiting;
  while (!is_done_[index]) {
    is_done_[waiting.front()] = true;
    waiting.pop_front();
  }
}

template <typename Reached>
void Runner::poll_until(Reached reached) {
  std::uint64_t last_ns = now_ns();
  while (!reached()) {
    std::array<ibv_wc, 16> completions{};
    const int got = ibv_poll_cq(endpoint_->queue(), completions.size(), completions.data());
    if (got < 0) throw InputError("ibv_poll_cq failed");
    for (int i = 0; i < got; ++i) take(completions[static_cast<std::size_t>(i)]);
    const std::uint64_t now = now_ns();
    if (got > 0) last_ns = now;
    if (now - last_ns > kLongestWaitNs + recorded_->span_ns) {  // the peer may be thinking
      throw InputError("no completion for 30 s and as long as the trace is");
    }
  }
}

void Runner::await(std::uint32_t index) {
  const Operation& operation = recorded_->operations[index];
  if (!is_receive(operation)) return poll_until([&] { return is_done_[index]; });
  // Receives are not told apart: the n-th that was taken is the n-th that comes.
  Connection& connection = connection_of(operation);
  ++connection.awaited;
  poll_until([&] { return connection.received >= connection.awaited; });
}

bool Runner::has_all() {
  return std::all_of(side_->connections.begin(), side_->connections.end(), [](const Connection& c) {
    return c.received == c.expected && c.waiting.empty();
  });
}

Rerun Runner::run() {
  const std::uint64_t begin_ns = now_ns();
  std::uint64_t last_ns = begin_ns;  // of the last post or completion, here and in the trace
  std::uint64_t recorded_ns = side_->steps.empty() ? 0 : side_->steps.front().time_ns;
  for (const Step& step : side_->steps) {
    const std::uint64_t thought_ns = step.time_ns - std::min(recorded_ns, step.time_ns);
    recorded_ns = step.time_ns;
    if (step.is_completion) {
      await(step.operation);
      last_ns = now_ns();
      continue;
    }
    while (now_ns() - last_ns < thought_ns) {
    }
    last_ns = now_ns();
    post(step.operation);
  }
  poll_until([&] { return has_all(); });
  out_.span_ns = now_ns() - begin_ns;
  if (!side_->steps.empty()) {
    out_.recorded_span_ns = side_->steps.back().time_ns - side_->steps.front().time_ns;
  }
  return out_;
}

/// Both sides must mean the same operations.
void check_same(PeerLink& link, const Recorded& recorded, const Side& side) {
  const std::array<std::uint64_t, 3> ours{recorded.operations.size(), recorded.span_ns,
                                          side.connections.size()};
  std::array<std::uint64_t, 3> theirs{};
  link.send(std::as_bytes(std::span(ours)));
  link.receive(std::as_writable_bytes(std::span(theirs)));
  if (ours != theirs) throw InputError("the peer replays another trace than " + recorded.file);
}

void connect_all(PeerLink& link, Side& side, Endpoint& endpoint) {
  for (std::size_t c = 0; c < side.connections.size(); ++c) {
    const Address own = endpoint.address(c);
    link.send(std::as_bytes(std::span(&own, 1)));
    link.receive(std::as_writable_bytes(std::span(&side.connections[c].peer, 1)));
    endpoint.connect(c, side.connections[c].peer);
  }
}

double gigabytes_per_s(std::uint64_t bytes, std::uint64_t ns) {
  return ns == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(ns);
}

}  // namespace

Rerun rerun(const Recorded& recorded, const RerunSettings& settings) {
  Side side(recorded, !settings.peer.empty());
  Endpoint endpoint(settings.device, side.longest(), side.connections.size(), settings.gpu_memory);
  PeerLink link = settings.peer.empty() ? PeerLink::accepted(settings.port)
                                        : PeerLink::connected(settings.peer, settings.port);
  check_same(link, recorded, side);
  connect_all(link, side, endpoint);
  Runner runner(recorded, side, endpoint);
  runner.post_receives();
  link.meet();
  Rerun out = runner.run();
  link.meet();  // neither goes while the other reads its memory
  return out;
}

std::string rerun_text(const Recorded& recorded, const Rerun& result,
                       const RerunSettings& settings) {
  std::string out =
      fmt::format("# weft replay: {} on device {}, {}, memory of {}\n", one_line(recorded.file),
                  settings.device, settings.peer.empty() ? "second ends" : "first ends",
                  settings.gpu_memory ? fmt::format("GPU {}", *settings.gpu_memory) : "the host");
  std::uint64_t bytes = 0;
  for (const auto& [opcode, count] : result.operations) {
    out += fmt::format("{:<22} posts {:>9}  bytes {:>14}  completions {:>9}\n",
                       trace::opcode_name(opcode), count.posts, count.bytes, count.completions);
    bytes += count.bytes;
  }
  out += fmt::format("{:.6f} s, {:.6f} GB/s; recorded {:.6f} s, {:.6f} GB/s\n",
                     static_cast<double>(result.span_ns) * 1e-9,
                     gigabytes_per_s(bytes, result.span_ns),
                     static_cast<double>(result.recorded_span_ns) * 1e-9,
                     gigabytes_per_s(bytes, result.recorded_span_ns));
  for (const auto& [what, n] : recorded.left_out) {
    out += fmt::format("not replayed: {} {}\n", n, what);
  }
  return out;
}

}  // namespace weft::replay
