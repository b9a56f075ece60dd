#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "replay/trace/reader.hpp"
#include "replay/trace/writer.hpp"
#include "sim/base/error.hpp"

namespace weft::test {

/// A folder of a test's own, gone with it.
class TraceFolder {
 public:
  TraceFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-trace-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no folder: " << name;
    path_ = name;
  }
  ~TraceFolder() { std::filesystem::remove_all(path_); }
  TraceFolder(const TraceFolder&) = delete;
  TraceFolder& operator=(const TraceFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// Builds traces of one host: a device, its domain, and what tests add. Names: host 1, thread 2,
/// device 3, domain 4, completion queue 5, region 6.
class TraceMaker {
 public:
  TraceMaker(const std::string& path, const std::string& host, trace::FileFacts facts)
      : writer_{path, facts} {
    trace::Host h{};
    h.head = head(trace::RecordType::kHost, 0);
    h.host = 1;
    h.process = 4711;
    add(h, host);
    trace::Thread t{};
    t.head = head(trace::RecordType::kThread, 0);
    t.thread = 2;
    t.host = 1;
    add(t, "main");
    trace::Device d{};
    d.head = head(trace::RecordType::kDevice, 0);
    d.device = 3;
    d.host = 1;
    d.guid = 0x1234567890abcdef;
    d.ports = 1;
    add(d, "mlx5_0");
    trace::ProtectionDomain pd{};
    pd.head = head(trace::RecordType::kProtectionDomain, 0);
    pd.domain = 4;
    pd.device = 3;
    add(pd);
    trace::CompletionQueue cq{};
    cq.head = head(trace::RecordType::kCompletionQueue, 0);
    cq.queue = 5;
    cq.device = 3;
    cq.depth = 128;
    add(cq);
    trace::Region r{};
    r.head = head(trace::RecordType::kRegion, 0);
    r.region = 6;
    r.domain = 4;
    r.address = 0x7f0012345678;
    r.length = 1U << 20;
    r.kind = trace::MemoryKind::kHost;
    add(r);
  }
  TraceMaker(const std::string& path, const std::string& host)
      : TraceMaker{path, host, {.tool = "test", .topology = {}}} {}

  static trace::RecordHead head(trace::RecordType type, std::uint64_t ns, std::uint32_t by = 2) {
    return {.type = type, .bytes = 0, .thread = by, .time_ns = ns};
  }

  template <trace::FixedRecord T>
  void add(T record, const std::string& text = {}) {
    writer_.add(trace::record_of(record, bytes_of(text)));
  }

  /// A connected RC queue pair, perhaps with the receives of a shared queue.
  void pair(std::uint32_t name, std::uint32_t number, std::uint32_t peer_number,
            std::uint32_t shared = trace::kNone) {
    trace::QueuePair q{};
    q.head = head(trace::RecordType::kQueuePair, 0);
    q.pair = name;
    q.domain = 4;
    q.number = number;
    q.send_queue = q.receive_queue = 5;
    q.shared_receives = shared;
    q.type = 2;
    add(q);
    trace::QueuePairState s{};
    s.head = head(trace::RecordType::kQueuePairState, 0);
    s.pair = name;
    s.peer_number = peer_number;
    s.peer_port = 7;
    s.state = 3;
    add(s);
  }

  struct Request {
    std::uint64_t id{0};
    std::uint32_t bytes{0};
    std::uint8_t flags{trace::kSignaled};
    std::uint32_t by{2};
  };
  void post(std::uint32_t pair, trace::Opcode opcode, std::uint64_t ns, Request request) {
    trace::Post p{};
    p.head = head(trace::RecordType::kPost, ns, request.by);
    p.id = request.id;
    p.bytes = request.bytes;
    p.queue = pair;
    p.remote_region = trace::kNone;
    p.remote_offset = 0x5500deadb123;
    p.remote_key = 99;
    p.segments = 1;
    p.opcode = opcode;
    p.flags = request.flags;
    const trace::Segment segment{.offset = 64, .length = request.bytes, .region = 6};
    writer_.add(trace::record_of(p, std::as_bytes(std::span(&segment, 1))));
  }
  void completion(std::uint32_t pair, trace::Opcode opcode, std::uint64_t ns, Request request,
                  std::uint8_t status = 0) {
    trace::Completion c{};
    c.head = head(trace::RecordType::kCompletion, ns, request.by);
    c.id = request.id;
    c.queue = 5;
    c.pair = pair;
    c.bytes = request.bytes;
    c.opcode = opcode;
    c.status = status;
    add(c);
  }

  trace::TraceWriter& writer() { return writer_; }
  void finish() {
    writer_.end();
    writer_.commit();
  }

 private:
  trace::TraceWriter writer_;
};

/// What work() refuses its input with.
inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace weft::test
