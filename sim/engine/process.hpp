#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/engine/event_queue.hpp"

namespace weft {

/// Memory for coroutine frames, by size class (steps of 64 B, large ones powers of two), each with
/// a list of free blocks. A block once made is reused for ever and given back when the pool ends;
/// all frames must be gone by then. take and give_back are O(1).
class FramePool {
 public:
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  /// At least `size` bytes, aligned for any ordinary type.
  void* take(std::size_t size);
  /// Returns memory to the pool that it came from.
  static void give_back(void* memory) noexcept;

  /// How many blocks were ever made: constant once every frame is a reused one.
  std::size_t blocks() const { return blocks_.size(); }

 private:
  static constexpr std::size_t kStep = 64;       ///< bytes
  static constexpr std::size_t kMostSteps = 64;  ///< blocks of so many and more: powers of two
  static constexpr std::size_t kSizeClasses = kMostSteps + 64;

  /// In front of the memory handed out.
  struct alignas(std::max_align_t) Header {
    FramePool* pool;
    Header* next_free;
    std::size_t size_class;
  };

  std::array<Header*, kSizeClasses> free_{};
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

class ProcessHost;
class WaitPoint;

/// What a coroutine that lives in simulated time returns: a NCCL rank's program, a proxy thread, a
/// send queue. Only a mark; the ProcessHost owns the process, which nobody joins or holds.
///
/// A process is any function, lambda or member function that returns Process and takes the
/// ProcessHost& as its first argument:
///
///     Process pump(ProcessHost& host, Mailbox<Bytes>& work, Bandwidth rate) {
///       for (;;) {
///         const Bytes n = co_await work.pop();
///         co_await delay(host.queue(), serialization_time(n, rate));
///       }
///     }
///
/// Calling it starts it through the queue: its body begins at the current instant in
/// Phase::kCompute, after those already scheduled there, never inside the call. What is passed by
/// reference, the object of a member function and a lambda's captures must outlive the process.
class Process {
 public:
  class promise_type;
};

/// Owns the processes of one simulation and the memory of their frames. The queue outlives the
/// host.
///
/// An exception that leaves a process ends that process and comes out of EventQueue::step() or
/// run(); the others may go on. Processes still unfinished when the host ends are destroyed, oldest
/// first, with everything they hold.
class ProcessHost {
 public:
  explicit ProcessHost(EventQueue& queue) : queue_{queue} {}
  ~ProcessHost();
  ProcessHost(const ProcessHost&) = delete;
  ProcessHost& operator=(const ProcessHost&) = delete;

  EventQueue& queue() { return queue_; }
  /// How many processes were started and have not ended. If it is not 0 when the queue is empty,
  /// these wait for something that never comes.
  std::size_t live() const { return live_; }
  const FramePool& frames() const { return frames_; }

 private:
  friend class Process::promise_type;

  EventQueue& queue_;
  FramePool frames_;
  Process::promise_type* oldest_{nullptr};  ///< list of the live processes
  Process::promise_type* newest_{nullptr};
  std::size_t live_{0};
};

/// The side of a process that the compiler and the awaitables talk to; others need only Process.
class Process::promise_type final : private EventTarget {
 public:
  template <class... Arguments>
  explicit promise_type(ProcessHost& host, const Arguments&...) : host_{host} {
    start();
  }
  template <class Object, class... Arguments>
  promise_type(const Object&, ProcessHost& host, const Arguments&...) : host_{host} {
    start();
  }
  ~promise_type();
  promise_type(const promise_type&) = delete;
  promise_type& operator=(const promise_type&) = delete;

  template <class... Arguments>
  static void* operator new(std::size_t size, ProcessHost& host, const Arguments&...) {
    return host.frames_.take(size);
  }
  template <class Object, class... Arguments>
  static void* operator new(std::size_t size, const Object&, ProcessHost& host,
                            const Arguments&...) {
    return host.frames_.take(size);
  }
  static void operator delete(void* frame) noexcept { FramePool::give_back(frame); }

  Process get_return_object() { return {}; }
  std::suspend_always initial_suspend() noexcept { return {}; }
  std::suspend_always final_suspend() noexcept { return {}; }
  void return_void() {}
  void unhandled_exception() { failure_ = std::current_exception(); }

  EventQueue& queue() { return host_.queue(); }
  /// Resumes this suspended process `pause` from now. Precondition: nothing else will resume it.
  void wake_after(Duration pause, Phase phase = Phase::kCompute);

 private:
  friend class ProcessHost;
  friend class WaitPoint;

  void start();
  void on_event(std::uint64_t what) override;

  ProcessHost& host_;
  promise_type* older_{nullptr};
  promise_type* newer_{nullptr};
  WaitPoint* waits_at_{nullptr};
  EventId wake_{};
  std::exception_ptr failure_;
};

using ProcessHandle = std::coroutine_handle<Process::promise_type>;

/// What delay() returns.
class Delay {
 public:
  Delay(EventQueue& queue, Duration pause) : queue_{&queue}, pause_{pause} {}
  bool await_ready() const noexcept { return false; }
  /// Throws std::logic_error if the process belongs to another queue.
  void await_suspend(ProcessHandle process) const;
  void await_resume() const noexcept {}

 private:
  EventQueue* queue_;
  Duration pause_;
};

/// `co_await delay(queue, pause)` lets a process sleep; it goes on in Phase::kCompute of that
/// instant. `queue` is its host's. A zero pause lets all run that is scheduled for the current
/// instant's kDeliver and kCompute by now. Throws std::logic_error if `pause` is negative.
Delay delay(EventQueue& queue, Duration pause);

/// `co_await EndOfInstant{}` lets a process go on in Phase::kObserve of the current instant: all
/// that arrives at it and all that others decide then is known.
struct EndOfInstant {
  bool await_ready() const noexcept { return false; }
  void await_suspend(ProcessHandle process) const;
  void await_resume() const noexcept {}
};

/// Where at most one process waits to be woken; the one mechanism below every awaitable that waits
/// for another party. The process or the wait point may end first: then the other forgets it, and a
/// process whose wait point ended, woken or not, waits until its host ends.
class WaitPoint {
 public:
  WaitPoint() = default;
  ~WaitPoint();
  WaitPoint(const WaitPoint&) = delete;
  WaitPoint& operator=(const WaitPoint&) = delete;

  /// Whether a process waits here, or was woken and has not gone on yet.
  bool taken() const { return process_ != nullptr; }
  /// A suspended process begins to wait here. Throws std::logic_error if another one does.
  void wait(ProcessHandle process);
  /// The waiting process, if any, goes on at the current instant in Phase::kCompute, through the
  /// queue. No effect if it is woken already.
  void wake();
  /// The process goes on: the place is free.
  void leave();

 private:
  friend class Process::promise_type;

  Process::promise_type* process_{nullptr};
  bool woken_{false};
};

}  // namespace weft
