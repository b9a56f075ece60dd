#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sim/engine/event_queue.hpp"
#include "sim/engine/fifo.hpp"

namespace weft {

/// The read tags of a device: requests that wait for completions at a time, of all its engines
/// together. Who finds none free is called, in order, as tags are given back.
class PcieTags {
 public:
  class User {
   public:
    /// A tag may be free.
    virtual void on_tag() = 0;

   protected:
    ~User() = default;
  };

  PcieTags(EventQueue& events, std::uint32_t tags) : events_{events}, tags_{tags} {}

  std::uint32_t count() const { return tags_; }
  std::uint32_t most_in_use() const { return most_in_use_; }
  /// How long somebody has waited for a tag.
  Duration stalled() const {
    return stalled_ + (stalled_since_ ? events_.now() - *stalled_since_ : Duration{});
  }

  /// Takes one for `user`; false: none is free for it, and it waits its turn.
  bool take(User& user) {
    const bool first_in_line = waiting_.empty() || waiting_.front() == &user;
    if (in_use_ < tags_ && first_in_line) {
      if (!waiting_.empty()) waiting_.pop();
      end_stall();
      most_in_use_ = std::max(most_in_use_, ++in_use_);
      return true;
    }
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (waiting_.at(i) == &user) return false;
    }
    waiting_.push(&user);
    if (!stalled_since_) stalled_since_ = events_.now();
    return false;
  }
  /// Gives one back; whoever has waited longest is called.
  void give() {
    --in_use_;
    if (!waiting_.empty()) waiting_.front()->on_tag();
  }

 private:
  void end_stall() {
    if (!waiting_.empty() || !stalled_since_) return;
    stalled_ += events_.now() - *stalled_since_;
    stalled_since_.reset();
  }

  EventQueue& events_;
  std::uint32_t tags_;
  std::uint32_t in_use_{0};
  std::uint32_t most_in_use_{0};
  Fifo<User*> waiting_;
  std::optional<Time> stalled_since_;
  Duration stalled_;
};

}  // namespace weft
