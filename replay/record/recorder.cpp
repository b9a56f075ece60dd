#include "replay/record/recorder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <new>
#include <signal.h>
#include <string>
#include <sys/prctl.h>
#include <unistd.h>
#include <utility>

#include "replay/record/hooks.hpp"
#include "replay/record/table.hpp"

namespace weft::record {
namespace {

constexpr std::uint64_t kRoundNs = 10'000'000;   // how often the writer looks at the rings
constexpr std::uint64_t kFlushNs = 100'000'000;  // the longest that a record waits in one
constexpr std::uint64_t kLongestEndNs = 5'000'000'000;
constexpr std::size_t kBlockBytes = 256U << 10;  // a ring with this much is written at once
constexpr std::size_t kMostObjects = 64U << 20;  // bytes that wait, where the file is stuck

timespec after(std::uint64_t ns) {
  const std::uint64_t then = now_ns(CLOCK_MONOTONIC) + ns;
  return {.tv_sec = static_cast<time_t>(then / 1'000'000'000),
          .tv_nsec = static_cast<long>(then % 1'000'000'000)};
}

void wait_for(sem_t& event, std::uint64_t ns) {
  const timespec until = after(ns);
  while (sem_clockwait(&event, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR) {
  }
}

/// The program must not see that something was recorded within one of its calls.
class KeptErrno {
 public:
  KeptErrno() = default;
  ~KeptErrno() { errno = kept_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  int kept_{errno};
};

// This thread holds the recorder's lock, or is about to.
constinit thread_local bool is_within{false};
class Within {
 public:
  Within() { is_within = true; }
  ~Within() { is_within = false; }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;
};

// The program's threads have all ended, its first one by pthread_exit: the process is to end with
// the last thread, which would else be the writer for ever.
bool is_writer_alone() {
  const int file = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[512];
  const ssize_t got = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (got <= 0) return false;
  text[got] = '\0';
  // "pid (name) state ppid ...": the 3rd field is the first thread's state, the 20th how many there
  // are.
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] != ' ' || at[2] != 'Z') return false;
  ++at;
  for (int field = 3; field < 20; ++field) {
    at = std::strchr(at + 1, ' ');
    if (at == nullptr) return false;
  }
  return std::strtol(at, nullptr, 10) == 1 + 1;
}

}  // namespace

constinit thread_local ThreadState Recorder::mine{nullptr, nullptr, trace::kNone};
constinit std::atomic<Recorder*> Recorder::current{nullptr};

namespace {
pthread_key_t leaving;  // its destructor runs when a thread ends
}  // namespace

Recorder& Recorder::made() {
  static std::mutex one_at_a_time;
  const KeptErrno kept;
  const std::lock_guard lock(one_at_a_time);
  if (Recorder* const there = current.load(std::memory_order_acquire)) return *there;
  pthread_key_create(&leaving, &Recorder::leave_ring);
  pthread_atfork(&Recorder::before_fork, &Recorder::after_fork_in_parent,
                 &Recorder::after_fork_in_child);
  auto* const recorder = new Recorder(settings_of_environment());
  current.store(recorder, std::memory_order_release);
  return *recorder;
}

void Recorder::end_all() {
  if (Recorder* const there = current.load(std::memory_order_acquire)) there->end();
}

Recorder::Recorder(Settings settings)
    : settings_{std::move(settings)}, salt_{settings_.salt, settings_.keep_names} {
  sem_init(&wake_, 0, 0);
  sem_init(&ended_, 0, 0);
}

void Recorder::before_fork() {
  objects_mutex().lock();
  objects_table().mutex().lock();
  get().mutex_.lock();
}

void Recorder::after_fork_in_parent() {
  get().mutex_.unlock();
  objects_table().mutex().unlock();
  objects_mutex().unlock();
}

// The parent's rings, its list and its file are the parent's; what it made lives on here, but is
// not recorded.
void Recorder::after_fork_in_child() {
  Recorder& parents = get();
  parents.is_on_.store(false, std::memory_order_relaxed);
  parents.file_.leave();
  parents.mutex_.unlock();
  objects_table().mutex().unlock();
  objects_mutex().unlock();
  auto* const own = new Recorder(parents.settings_);
  own->names_.store(parents.names_.load());  // keys of what is inherited stay its own
  current.store(own, std::memory_order_release);
}

// A thread's name, by its own first record.
void Recorder::know_thread_locked() {
  if (mine.recorder == this) return;
  mine = {this, nullptr, threads_++};
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  trace::Thread thread{};
  thread.thread = mine.thread;
  thread.tid = static_cast<std::uint64_t>(gettid());
  add_locked(trace::RecordType::kThread, std::as_writable_bytes(std::span(&thread, 1)),
             salt_.name("thread", name));
}

Ring* Recorder::given_ring() {
  const KeptErrno kept;
  if (!is_on()) return nullptr;
  if (is_within) {  // a signal's handler that posts, in a thread that holds the lock
    return count_ringless();
  }
  const Within within;
  const std::lock_guard lock(mutex_);
  know_thread_locked();
  auto log = std::find_if(logs_.begin(), logs_.end(), [](const auto& l) { return l->is_free; });
  if (log == logs_.end()) {
    auto fresh = std::make_unique<ThreadLog>();
    try {
      fresh->ring = std::make_unique<Ring>(settings_.buffer_bytes);
    } catch (const std::bad_alloc&) {
      return count_ringless();
    }
    log = logs_.insert(logs_.end(), std::move(fresh));
  }
  (*log)->is_free = false;
  (*log)->is_left.store(false, std::memory_order_relaxed);
  (*log)->thread = mine.thread;
  mine.ring = (*log)->ring.get();
  pthread_setspecific(leaving, log->get());
  return mine.ring;
}

void Recorder::leave_ring(void* log) {
  mine.ring = nullptr;
  static_cast<ThreadLog*>(log)->is_left.store(true, std::memory_order_release);
}

void Recorder::add_bytes(trace::RecordType type, std::span<std::byte> record,
                         std::string_view tail) {
  const KeptErrno kept;
  if (!is_on()) return;
  const Within within;
  const std::lock_guard lock(mutex_);
  if (!is_started_) start_locked();
  know_thread_locked();
  add_locked(type, record, tail);
}

void Recorder::add_locked(trace::RecordType type, std::span<std::byte> record,
                          std::string_view tail) {
  tail = tail.substr(0, trace::kMaxRecordBytes - 8 - record.size());
  const std::size_t bytes = (record.size() + tail.size() + 7) / 8 * 8;
  if (objects_.size() + bytes > kMostObjects) {
    is_on_.store(false, std::memory_order_relaxed);
    return;
  }
  trace::RecordHead head{};
  std::memcpy(&head, record.data(), sizeof head);
  head.type = type;
  head.time_ns = now_ns();  // under the lock, so that the list is in order
  head.bytes = static_cast<std::uint16_t>(bytes);
  head.thread = mine.thread;
  std::memcpy(record.data(), &head, sizeof head);
  const std::size_t at = objects_.size();
  objects_.resize(at + bytes);
  std::copy(record.begin(), record.end(), objects_.begin() + static_cast<std::ptrdiff_t>(at));
  if (!tail.empty()) std::memcpy(objects_.data() + at + record.size(), tail.data(), tail.size());
}

void Recorder::add_host_locked() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  trace::Host host{};
  host.process = static_cast<std::uint32_t>(getpid());
  host.realtime_ns = now_ns(CLOCK_REALTIME);
  add_locked(trace::RecordType::kHost, std::as_writable_bytes(std::span(&host, 1)),
             salt_.name("host", name));
}

void Recorder::start_locked() {
  is_started_ = true;
  add_host_locked();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signals are for its own threads
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // Whatever priority the program's thread has, the writer's is the usual one.
  pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
  pthread_t writer{};
  has_writer_ = pthread_create(&writer, &attributes, &Recorder::run_writer, this) == 0;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!has_writer_) is_on_.store(false, std::memory_order_relaxed);
}

// Takes no lock: a signal's handler may end the program while its thread holds one.
void Recorder::end() {
  if (!has_writer_.exchange(false)) return;
  is_ending_.store(true, std::memory_order_relaxed);
  sem_post(&wake_);
  wait_for(ended_, kLongestEndNs);
}

void* Recorder::run_writer(void* recorder) {
  prctl(PR_SET_NAME, "weft-record");
  static_cast<Recorder*>(recorder)->write_all();
  return nullptr;
}

void Recorder::write_all() {
  const Overhead overhead = measure_overhead(*this);
  file_.open(settings_.file, {.tool = "weft " WEFT_VERSION,
                              .topology = settings_.topology,
                              .is_salted = !settings_.keep_names,
                              .post_ns = overhead.post_ns,
                              .poll_ns = overhead.poll_ns});
  bool is_last = false;
  std::uint64_t looked_ns = now_ns();
  while (file_.is_open() && !is_last) {
    is_last = is_ending_.load(std::memory_order_relaxed);
    if (!is_last && now_ns() - looked_ns >= kFlushNs) {
      looked_ns = now_ns();
      is_last = is_writer_alone();
    }
    if (is_last) has_writer_.store(false);  // the program's end need not wait for it
    if (!is_on()) file_.give_up("objects came faster than the file took their records");
    const bool was_full = write_round(is_last);
    if (!is_last && !was_full) wait_for(wake_, kRoundNs);
  }
  write_ringless();
  is_on_.store(false, std::memory_order_relaxed);
  file_.end();
  sem_post(&ended_);
}

std::vector<Recorder::ThreadLog*> Recorder::logs() {
  const std::lock_guard lock(mutex_);
  std::vector<ThreadLog*> out;
  out.reserve(logs_.size());
  for (const auto& log : logs_) {
    if (!log->is_free) out.push_back(log.get());
  }
  return out;
}

// Whether a ring had so much that the next look should come at once.
bool Recorder::write_round(bool is_last) {
  struct Work {
    ThreadLog* log;
    std::uint64_t head;
    bool is_due;
  };
  std::vector<Work> work;
  const std::uint64_t now = now_ns();
  bool is_any_due = is_last || now - last_flush_ns_ >= kFlushNs;
  for (ThreadLog* log : logs()) {
    const bool is_left = log->is_left.load(std::memory_order_acquire);
    const std::uint64_t head = log->ring->head();
    const std::size_t waiting = head - log->ring->tail();
    const bool is_due = is_last || is_left || now - log->last_flush_ns >= kFlushNs ||
                        waiting >= std::min(kBlockBytes, log->ring->bytes() / 4);
    work.push_back({log, head, is_due});
    is_any_due |= is_due;
  }
  // After the heads were read: every object that those records name is in the list by now.
  if (is_any_due) write_objects();
  bool was_full = false;
  for (const auto& [log, head, is_due] : work) {
    if (!is_due) continue;
    was_full |= head - log->ring->tail() >= log->ring->bytes() / 4;
    write_ring(*log, head, is_last);
    log->last_flush_ns = now;
  }
  return was_full;
}

void Recorder::write_objects() {
  {
    const std::lock_guard lock(mutex_);
    taken_objects_.swap(objects_);
  }
  last_flush_ns_ = now_ns();
  std::span<const std::byte> rest = taken_objects_;
  while (!rest.empty()) {
    std::size_t bytes = 0;
    while (bytes < rest.size()) {
      const std::size_t record = trace::record_bytes(rest.subspan(bytes));
      if (record == 0 || bytes + record > trace::kMaxBlockBytes) break;
      bytes += record;
    }
    file_.add(trace::kNone, rest.first(bytes));
    rest = rest.subspan(bytes);
  }
  taken_objects_.clear();
}

Ring* Recorder::count_ringless() {
  if (ringless_.fetch_add(1, std::memory_order_relaxed) == 0) {
    first_ringless_ns_.store(now_ns(), std::memory_order_relaxed);
  }
  return nullptr;
}

// Calls that found no ring: each had a record at least.
void Recorder::write_ringless() {
  const std::uint64_t calls = ringless_.load(std::memory_order_relaxed);
  if (calls == 0 || !file_.is_open()) return;
  trace::Drop drop{};
  drop.first_ns = first_ringless_ns_.load(std::memory_order_relaxed);
  drop.records = calls;
  drop.head = {.type = trace::RecordType::kDrop,
               .bytes = sizeof drop,
               .thread = trace::kNone,
               .time_ns = now_ns()};
  file_.add(trace::kNone, std::as_bytes(std::span(&drop, 1)));
}

void Recorder::write_ring(ThreadLog& log, std::uint64_t head, bool is_last) {
  const bool is_left = log.is_left.load(std::memory_order_acquire);
  while (log.ring->tail() != head) {
    const std::span<const std::byte> records = log.ring->readable(head, trace::kMaxBlockBytes);
    file_.add(log.thread, records);
    log.ring->release(records.size());
  }
  if (!is_left && !is_last) return;
  const trace::Drop drop = log.ring->open_drop(log.thread);
  if (drop.head.bytes != 0) file_.add(log.thread, std::as_bytes(std::span(&drop, 1)));
  if (!is_left || log.ring->head() != head) return;
  const std::lock_guard lock(mutex_);
  log.ring->forget_drop();
  log.is_free = true;
}

}  // namespace weft::record
