#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <span>
#include <string_view>
#include <vector>

#include "replay/record/clock.hpp"
#include "replay/record/ring.hpp"
#include "replay/record/salt.hpp"
#include "replay/record/settings.hpp"
#include "replay/record/trace_file.hpp"

namespace weft::record {

/// What a thread knows of itself; of another recorder's it knows nothing.
struct ThreadState {
  const void* recorder;
  Ring* ring;
  std::uint32_t thread;
};

/// A recording of this process: the threads' rings, the records of objects, and the thread that
/// writes both to the file. There is one; the child of a fork starts with a new one.
///
/// Records of objects (devices, regions, queue pairs...) are few and must not lack: they go under
/// a lock into a list of their own, which is written before any record of a ring that was made
/// after them.
class Recorder {
 public:
  /// The process's; the environment says how it records. Never destroyed: threads may post while
  /// the program ends.
  static Recorder& get() {
    Recorder* const there = current.load(std::memory_order_acquire);
    return there != nullptr ? *there : made();
  }
  /// Writes what is there and ends the recording; what is posted later is not recorded.
  static void end_all();

  explicit Recorder(Settings settings);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  const Salt& salt() const { return salt_; }
  /// False once it ended: by end(), or because the file can't be written.
  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
  /// A name for an object.
  std::uint32_t new_name() { return names_.fetch_add(1, std::memory_order_relaxed); }

  /// Adds the record of an object, by this thread, now; `record.head` need not be set. The first
  /// starts the writer.
  template <trace::FixedRecord T>
  void add(trace::RecordType type, T record, std::string_view tail = {}) {
    add_bytes(type, std::as_writable_bytes(std::span(&record, 1)), tail);
  }
  /// This thread's ring; nullptr where it can't have one.
  Ring* ring() { return mine.recorder == this && mine.ring != nullptr ? mine.ring : given_ring(); }
  /// This thread's name in the trace.
  std::uint32_t thread() const { return mine.thread; }

  /// Ends the recording; waits for the writer, but not for ever.
  void end();

  /// While it lives, this thread's records go to `ring` instead. For measuring.
  class Diverted {
   public:
    Diverted(Recorder& recorder, Ring& ring) : before_{mine} {
      mine = {&recorder, &ring, trace::kNone};
    }
    ~Diverted() { mine = before_; }
    Diverted(const Diverted&) = delete;
    Diverted& operator=(const Diverted&) = delete;

   private:
    ThreadState before_;
  };

 private:
  struct ThreadLog {
    std::unique_ptr<Ring> ring;
    std::uint32_t thread{0};
    std::uint64_t last_flush_ns{0};
    std::atomic<bool> is_left{false};  ///< its thread ended
    bool is_free{false};               ///< left and empty: for the next thread
  };

  static Recorder& made();
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  Ring* given_ring();
  static void leave_ring(void* log);
  void add_bytes(trace::RecordType type, std::span<std::byte> record, std::string_view tail);
  void add_locked(trace::RecordType type, std::span<std::byte> record, std::string_view tail);
  void add_host_locked();
  void know_thread_locked();
  void start_locked();

  static void* run_writer(void* recorder);
  void write_all();
  bool write_round(bool is_last);
  void write_objects();
  Ring* count_ringless();
  void write_ringless();
  void write_ring(ThreadLog& log, std::uint64_t head, bool is_last);
  std::vector<ThreadLog*> logs();

  static constinit thread_local ThreadState mine;
  static std::atomic<Recorder*> current;

  Settings settings_;
  Salt salt_;
  std::atomic<bool> is_on_{true};
  std::atomic<bool> is_ending_{false};
  std::atomic<std::uint32_t> names_{0};
  std::atomic<std::uint64_t> ringless_{0};  ///< calls that were not recorded for want of a ring
  std::atomic<std::uint64_t> first_ringless_ns_{0};

  std::mutex mutex_;  ///< of what follows, up to the writer's own
  std::vector<std::byte> objects_;
  std::vector<std::unique_ptr<ThreadLog>> logs_;
  std::uint32_t threads_{0};
  bool is_started_{false};
  std::atomic<bool> has_writer_{false};

  sem_t wake_{};
  sem_t ended_{};

  TraceFile file_;  ///< the writer's
  std::vector<std::byte> taken_objects_;
  std::uint64_t last_flush_ns_{0};
};

}  // namespace weft::record
