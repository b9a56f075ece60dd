#include "sim/run/runner.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "sim/engine/mailbox.hpp"
#include "sim/engine/process.hpp"
#include "sim/run/critical_path.hpp"
#include "sim/run/trajectory.hpp"

namespace weft {
namespace {

/// Something a program waited for: when it came, and what led to it.
struct Token {
  PathRef path;
  Time at;
};

class PlanRun final : private TransportSink, private EventTarget {
 public:
  PlanRun(const Plan& plan, Transport& transport, EventQueue& events, CauseTable& causes)
      : plan_{&plan},
        transport_{&transport},
        events_{&events},
        causes_{&causes},
        lanes_(plan.connections.size()),
        programs_(plan.programs.size()),
        host_{events} {
    transport.set_sink(*this);
    start_ = lag(plan.start);
    for (const Handover& h : plan.handovers) {
      lags_.push_back({lag(h.after_push), lag(h.after_carry), lag(h.credit)});
    }
    for (std::size_t i = 0; i < lanes_.size(); ++i) add_connection(plan.connections[i], lanes_[i]);
    for (std::size_t i = 0; i < programs_.size(); ++i) add_program(plan.programs[i], programs_[i]);
  }

  RunOutcome run() {
    for (std::uint32_t i = 0; i < programs_.size(); ++i) run_program(host_, i);
    events_->run();
    if (host_.live() > 0) {
      throw PlanStuck("plan: " + std::to_string(host_.live()) +
                      " programs wait for each other for ever");
    }
    return {last_finish_.since_start(), paths_.total(last_path_), transfers_, trajectory_.digest()};
  }

 private:
  /// What happens to a slice after a lag.
  enum class Stage : std::uint8_t { kPosted, kReady, kFree };

  struct LagId {
    CauseId cause;
    Duration time;
  };
  struct HandoverLags {
    LagId after_push;
    LagId after_carry;
    LagId credit;
  };
  struct Lane {
    Mailbox<Token> ready;           // slices the receiver may take
    Mailbox<Token> free;            // slots the sender may fill again
    std::uint32_t unused_slots{0};  // never filled so far
    std::uint32_t handover{0};
    std::optional<WalkId> carry;
    PathRef last_carried;  // what led to the last message's being sent
  };
  struct Worker {
    Mailbox<Token> sent;
    std::vector<WalkId> walks;  // by step, in the order of loops and bodies
  };
  /// A transfer under way, or a slice in a lag. Pooled; the index is the transport's tag.
  struct Pending {
    PathRef path;
    Bytes bytes;
    std::uint32_t owner{0};  // program of a kernel's transfer, else connection
    Stage stage{Stage::kPosted};
    const Step* step{nullptr};  // of a kernel's transfer
  };

  LagId lag(const Lag& lag) { return {causes_->intern({lag.cause, ""}), lag.time}; }

  void add_connection(const Connection& c, Lane& lane) {
    if (c.carry) lane.carry = transport_->prepare(legs_of(*c.carry), 1);
    lane.unused_slots = plan_->handovers[c.handover].slots;
    lane.handover = c.handover;
  }

  Walk legs_of(WalkIndex index) const {
    const std::span<const Leg> legs = plan_->walks[index];
    return {legs.begin(), legs.end()};
  }

  /// One walk for steps that move the same way, since a program takes one step at a time.
  void add_program(const Program& program, Worker& worker) {
    std::map<std::vector<WalkIndex>, WalkId> known;  // by local, pulls, pushes
    for (const Loop& loop : program.loops) {
      for (const Step& step : loop.body) {
        std::vector<WalkIndex> branches{program.local};
        for (const ConnectionIndex c : step.in) branches.push_back(plan_->connections[c].pull);
        for (const ConnectionIndex c : step.out) branches.push_back(plan_->connections[c].push);
        std::erase(branches, WalkTable::kEmpty);
        const auto [at, is_new] = known.try_emplace(std::move(branches));
        if (is_new)
          at->second = transport_->prepare(joined(at->first, program.threads), program.copies);
        worker.walks.push_back(at->second);
      }
    }
  }

  Walk joined(const std::vector<WalkIndex>& branches, std::uint32_t threads) const {
    Walk out;
    for (std::size_t b = 0; b < branches.size(); ++b) {
      for (Leg leg : plan_->walks[branches[b]]) {
        leg.branch = static_cast<std::uint8_t>(b);
        leg.threads = static_cast<std::uint16_t>(threads);
        out.push_back(leg);
      }
    }
    return out;
  }

  Process run_program(ProcessHost&, std::uint32_t index) {
    const Program& program = plan_->programs[index];
    Worker& worker = programs_[index];
    co_await delay(*events_, start_.time);
    PathRef path = paths_.extend({}, start_.cause, start_.time);
    std::size_t first_walk = 0;  // of the loop
    for (const Loop& loop : program.loops) {
      for (std::uint64_t l = 0; l < loop.repeat; ++l) {
        for (std::size_t i = 0; i < loop.body.size(); ++i) {
          const Step& step = loop.body[i];
          const WalkId walk = worker.walks[first_walk + i];
          for (std::uint32_t s = 0; s < step.repeat; ++s) {
            Bytes left = step.bytes;
            do {  // an empty step still hands on an empty slice
              const Bytes bytes = std::min(left, step.slice);
              left -= bytes;
              for (const ConnectionIndex c : step.in) {
                const Time asked = events_->now();
                Token token = co_await lanes_[c].ready.pop();
                if (token.at > asked) path = std::move(token.path);
              }
              for (const ConnectionIndex c : step.out) {
                Lane& lane = lanes_[c];
                if (lane.unused_slots > 0) {
                  --lane.unused_slots;
                  continue;
                }
                const Time asked = events_->now();
                Token token = co_await lane.free.pop();
                if (token.at > asked) path = std::move(token.path);
              }
              submit_kernel(walk, index, bytes, step, std::move(path));
              Token token = co_await worker.sent.pop();
              path = std::move(token.path);
              for (const ConnectionIndex c : step.in) hand_on(Stage::kFree, c, bytes, path);
            } while (left > Bytes{0});
          }
        }
      }
      first_walk += loop.body.size();
    }
    note(Trajectory::What::kFinished, {}, program.copies);
    finish(std::move(path));
  }

  void finish(PathRef path) {
    if (events_->now() < last_finish_) return;
    last_finish_ = events_->now();
    last_path_ = std::move(path);
  }

  void submit_kernel(WalkId walk, std::uint32_t program, Bytes bytes, const Step& step,
                     PathRef path) {
    ++transfers_;
    note(Trajectory::What::kSubmitted, bytes, plan_->programs[program].copies);
    const std::uint64_t tag = put({std::move(path), bytes, program, Stage::kPosted, &step});
    transport_->submit(walk, bytes, tag);
  }

  void submit_carry(ConnectionIndex connection, Bytes bytes, PathRef path) {
    ++transfers_;
    note(Trajectory::What::kSubmitted, bytes, 1);
    const std::uint64_t tag = put({std::move(path), bytes, connection, Stage::kReady, nullptr});
    transport_->submit(*lanes_[connection].carry, bytes, tag);
  }

  void on_sent(std::uint64_t tag, bool queued, std::span<const Segment> segments) override {
    Pending& transfer = pending_[tag];
    note(Trajectory::What::kSent, transfer.bytes, copies_of(transfer));
    const bool by_kernel = transfer.step != nullptr;
    if (queued && !by_kernel) transfer.path = lanes_[transfer.owner].last_carried;
    extend(transfer.path, segments);
    if (by_kernel) {
      programs_[transfer.owner].sent.push(Token{transfer.path, events_->now()});
    } else {
      lanes_[transfer.owner].last_carried = transfer.path;
    }
  }

  void on_delivered(std::uint64_t tag, std::span<const Segment> segments) override {
    Pending transfer = take(tag);
    note(Trajectory::What::kDelivered, transfer.bytes, copies_of(transfer));
    extend(transfer.path, segments);
    if (transfer.step == nullptr) {
      hand_on(Stage::kReady, transfer.owner, transfer.bytes, std::move(transfer.path));
      return;
    }
    for (const ConnectionIndex c : transfer.step->out) {
      hand_on(lanes_[c].carry ? Stage::kPosted : Stage::kReady, c, transfer.bytes, transfer.path);
    }
  }

  /// A slice of `connection` reaches `stage` after the lag that leads there.
  void hand_on(Stage stage, ConnectionIndex connection, Bytes bytes, PathRef path) {
    const LagId& lag = lag_before(stage, connection);
    const std::uint64_t index = put({std::move(path), bytes, connection, stage, nullptr});
    events_->schedule_after(lag.time, Phase::kDeliver, *this, index);
  }

  const LagId& lag_before(Stage stage, ConnectionIndex connection) const {
    const Lane& lane = lanes_[connection];
    const HandoverLags& lags = lags_[lane.handover];
    if (stage == Stage::kFree) return lags.credit;
    return stage == Stage::kReady && lane.carry ? lags.after_carry : lags.after_push;
  }

  void on_event(std::uint64_t index) override {
    Pending slice = take(index);
    const LagId& lag = lag_before(slice.stage, slice.owner);
    PathRef path = paths_.extend(std::move(slice.path), lag.cause, lag.time);
    Lane& lane = lanes_[slice.owner];
    switch (slice.stage) {
      case Stage::kPosted:
        submit_carry(slice.owner, slice.bytes, std::move(path));
        return;
      case Stage::kReady:
        lane.ready.push(Token{std::move(path), events_->now()});
        return;
      case Stage::kFree:
        lane.free.push(Token{std::move(path), events_->now()});
        return;
    }
  }

  void note(Trajectory::What what, Bytes bytes, std::uint32_t copies) {
    trajectory_.add(what, events_->now(), bytes, copies);
  }
  /// Messages are never folded (see fold_channels).
  std::uint32_t copies_of(const Pending& transfer) const {
    return transfer.step == nullptr ? 1 : plan_->programs[transfer.owner].copies;
  }

  void extend(PathRef& path, std::span<const Segment> segments) {
    for (const Segment& s : segments) path = paths_.extend(std::move(path), s.cause, s.time);
  }

  std::uint64_t put(Pending pending) {
    if (free_.empty()) {
      pending_.push_back(std::move(pending));
      return pending_.size() - 1;
    }
    const std::size_t index = free_.back();
    free_.pop_back();
    pending_[index] = std::move(pending);
    return index;
  }

  Pending take(std::uint64_t index) {
    free_.push_back(index);
    return std::move(pending_[index]);
  }

  const Plan* plan_;
  Transport* transport_;
  EventQueue* events_;
  CauseTable* causes_;
  PathStore paths_;  // before everything that holds a PathRef
  LagId start_{};
  std::vector<HandoverLags> lags_;  // by handover
  std::vector<Lane> lanes_;
  std::vector<Worker> programs_;
  std::vector<Pending> pending_;
  std::vector<std::size_t> free_;
  std::uint64_t transfers_{0};
  Trajectory trajectory_;
  Time last_finish_;
  PathRef last_path_;
  ProcessHost host_;
};

}  // namespace

RunOutcome run_plan(const Plan& plan, Transport& transport, EventQueue& events,
                    CauseTable& causes) {
  return PlanRun(plan, transport, events, causes).run();
}

std::vector<CauseShare> shares_of(const RunOutcome& outcome, const CauseTable& causes) {
  struct Group {
    Duration time;
    std::string where;  // the first met: causes come most first
  };
  std::map<std::string, Group> by_kind;
  for (const auto& [id, time] : outcome.causes) {
    const auto [at, is_new] = by_kind.try_emplace(causes[id].kind, Group{{}, causes[id].where});
    at->second.time += time;
  }
  std::vector<CauseShare> out;
  for (const auto& [kind, group] : by_kind) {
    out.push_back({kind, group.where, group.time.as_s() / outcome.time.as_s()});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const CauseShare& a, const CauseShare& b) { return a.share > b.share; });
  return out;
}

}  // namespace weft
