#include "sim/run/runner.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "sim/engine/process.hpp"
#include "sim/run/critical_path.hpp"
#include "sim/run/cursor.hpp"
#include "sim/run/run_state.hpp"

namespace weft {
namespace {

using Kind = Instruction::Kind;
using OnTransfers = std::function<void(std::uint64_t)>;

using run_state::ActorState;
using run_state::Came;
using run_state::FlagState;
using run_state::Job;
using run_state::Pending;
using run_state::QueuePairState;
using run_state::Suspended;
using run_state::Token;

}  // namespace

class Runner::Engine final : private TransportSink, private EventTarget {
 public:
  Engine(Transport& transport, EventQueue& events, CauseTable& causes)
      : transport_{transport},
        events_{events},
        causes_{causes},
        works_on_others_{causes.intern({"proxy works on other operations", ""})},
        host_{events} {
    transport.set_sink(*this);
  }

  std::size_t add(const Plan& plan, RunObserver* observer, const Stop* stop) {
    Job& job = *jobs_.emplace_back(std::make_unique<Job>(plan, observer));
    for (const Lag& lag : plan.lags) {
      job.lags.push_back({causes_.intern({lag.cause, ""}), lag.time});
    }
    add_flags(job);
    for (const QueuePair& q : plan.queue_pairs) {
      if (stop != nullptr) stop->check();
      job.queue_pairs.push_back({transport_.open(q)});
    }
    for (const Program& program : plan.programs) {
      if (stop != nullptr) stop->check();
      add_program(job, program);
    }
    return jobs_.size() - 1;
  }

  void run(const Stop* stop, const OnTransfers& on_transfers) {
    for (const auto& job : jobs_) {
      for (ActorIndex a = 0; a < job->actors.size(); ++a) run_actor(host_, *job, a);
    }
    events_.prepare_targets();
    if (stop == nullptr && !on_transfers) {
      events_.run();
    } else {
      run_watched(stop, on_transfers);
    }
    const std::uint64_t unfinished = sum(&Job::unfinished);
    if (unfinished == 0) return;
    throw PlanStuck("plan: " + std::to_string(unfinished) +
                    " programs wait for each other for ever");
  }

  RunOutcome outcome(std::size_t plan) const {
    const Job& job = *jobs_.at(plan);
    Time first_end = job.last_finish;
    for (const std::vector<std::uint32_t>& block : programs_by_block(*job.plan)) {
      std::optional<Time> end;  // the last of its programs'
      for (const std::uint32_t program : block) end = std::max(end, job.ends[program]);
      if (end) first_end = std::min(first_end, *end);
    }
    return {job.last_finish.since_start(),
            first_end.since_start(),
            std::max(job.last_finish, job.last_served).since_start(),
            paths_.total(job.last_path),
            job.transfers,
            job.trajectory.digest(),
            job.lap.value_or(job.last_finish).since_start()};
  }

  ActorWork work(std::size_t plan, ActorIndex actor) const {
    const ActorState& self = jobs_.at(plan)->actors.at(actor);
    ActorWork out = self.work;
    if (self.is_waiting) out.waited += events_.now() - self.waits_since;
    return out;
  }

 private:
  void run_watched(const Stop* stop, const OnTransfers& on_transfers) {
    for (std::uint64_t event = 0;; ++event) {
      if (stop != nullptr && event % 64 == 0) stop->check();
      if (on_transfers && event % 4096 == 0) on_transfers(sum(&Job::transfers));
      if (!events_.step()) return;
    }
  }

  template <typename Count>
  std::uint64_t sum(Count Job::*of) const {
    std::uint64_t out = 0;
    for (const auto& job : jobs_) out += (*job).*of;
    return out;
  }

  void add_flags(Job& job) {
    const std::vector<std::uint32_t> servers = servers_of_flags(*job.plan);
    const std::vector<std::uint32_t> joins = joins_of_flags(*job.plan);
    const std::vector<bool> taken = taken_flags(*job.plan);
    for (const Join& join : job.plan->joins) job.missing.push_back(join.from.size());
    for (FlagIndex f = 0; f < servers.size(); ++f) {
      job.flags[f].is_taken = taken[f];
      job.flags[f].unused = job.plan->flags[f].tokens;
      job.flags[f].server = servers[f];
      job.flags[f].join = joins[f];
      if (servers[f] != kNoIndex && job.flags[f].unused > 0) {
        throw std::logic_error("plan: a flag that is served begins with tokens");
      }
    }
  }

  /// One walk for moves of the same way, since an actor moves one thing at a time.
  void add_program(Job& job, Program program) {
    ActorState& actor = job.actors.at(program.actor);
    if (program.serves == kNoIndex) {
      actor.programs.push_back(static_cast<std::uint32_t>(job.programs.size()));
      ++job.unfinished;
    } else {
      actor.serves = true;
      actor.works_in_rounds = job.plan->actors[program.actor].kind == Actor::Kind::kProxyThread;
    }
    check_loops(program);
    std::map<WalkIndex, WalkId> known;
    for (Instruction& i : program.code) {
      if (i.kind != Kind::kMove) continue;
      const auto [at, is_new] = known.try_emplace(i.index);
      if (is_new) {
        const std::span<const Leg> legs = job.plan->walks[i.index];
        at->second = transport_.prepare(
            {legs.begin(), legs.end()},
            {.copies = program.copies, .number = job.plan->actors[program.actor].number});
      }
      i.index = at->second.value;
    }
    job.programs.push_back(std::move(program));
  }

  /// An actor: its programs that serve no flag, then those that do.
  Process run_actor(ProcessHost&, Job& job, ActorIndex index) {
    ActorState& self = job.actors[index];
    Cursor cursor;
    for (std::size_t next = 0; next < self.programs.size() || self.serves;) {
      std::uint32_t number = 0;
      if (next < self.programs.size()) {
        number = self.programs[next++];
      } else {
        if (self.round.empty()) {
          begin_wait(self);
          self.round.push_back(co_await self.inbox.pop());
          const bool was_idle = self.waits_since < events_.now();
          end_wait(job, index, kNoIndex);
          if (self.works_in_rounds) co_await EndOfInstant{};
          const Duration work = begin_round(job, self, index, was_idle);
          self.begun = events_.now();
          if (work > Duration{}) co_await delay(events_, work);
          if (job.observer != nullptr) {
            job.observer->on_worked(index, job.plan->actors[index].round, self.begun);
          }
          self.work.worked += work;
        }
        const Token token = self.round.back();
        self.round.pop_back();
        self.take(token);
        follow_token(job, self, index, token);
        number = token.program;
      }
      const Program& program = job.programs[number];
      if (program.serves != kNoIndex) ++job.unfinished;
      cursor.begin(program);
      while (!cursor.is_done()) {
        const Instruction& i = cursor.instruction();
        switch (i.kind) {
          case Kind::kWait:
            for (std::int64_t tokens = i.amount; tokens > 0; --tokens) {
              FlagState& flag = job.flags[i.index];
              if (flag.unused > 0) {
                --flag.unused;
                continue;
              }
              flag.waiter = index;
              begin_wait(self);
              self.take(co_await flag.tokens.pop());
              end_wait(job, index, i.index);
            }
            cursor.pass();
            break;
          case Kind::kMove:
            self.amount = i.bytes(self.amount);
            self.begun = events_.now();
            move(job, index, program, i);
            if (self.is_moving) co_await Suspended{self.sent};
            if (job.observer != nullptr) {
              const Instruction& planned = job.plan->programs[number].code[cursor.place()];
              job.observer->on_moved(index, planned.index, Bytes{self.amount}, self.begun);
            }
            cursor.pass(i.length);
            break;
          case Kind::kCompute: {
            const Duration time = work_of(job, self, i);
            self.begun = events_.now();
            if (time > Duration{}) co_await delay(events_, time);
            if (job.observer != nullptr) job.observer->on_worked(index, i.index, self.begun);
            self.path = paths_.extend(std::move(self.path), job.lags[i.index].cause, time);
            self.work.worked += time;
            cursor.pass();
            break;
          }
          default:
            do_at_once(job, self, cursor);
        }
      }
      finish(job, number, self.path);
    }
  }

  /// What an actor takes at once: a token; one that works in rounds, all that are there, in the
  /// order of its queue pairs and programs, whichever came first. How long it takes before it turns
  /// to the first of them.
  Duration begin_round(const Job& job, ActorState& self, ActorIndex actor, bool was_idle) {
    if (!self.works_in_rounds) return {};
    while (!self.inbox.empty()) self.round.push_back(self.inbox.take());
    if (self.round.size() > 1) {  // a sort asks for memory, and most rounds are of one
      std::ranges::reverse(self.round);
      std::ranges::stable_sort(self.round, std::ranges::greater{},
                               [&job](const Token& token) { return place_of(job, token); });
    }
    Duration work;
    const LagIndex round = job.plan->actors[actor].round;
    if (round != kNoIndex) {
      work = job.lags[round].time;
      if (was_idle) work = Duration::from_ns(work.as_ns() / 2);
      self.path = paths_.extend(std::move(self.path), job.lags[round].cause, work);
    }
    self.begin_round(events_.now(), work);
    return work;
  }

  /// Who looks again and again is never idle, so that its own path never ends. A token that has
  /// waited for looks more than for work on others leads to what is done for it itself.
  void follow_token(const Job& job, ActorState& self, ActorIndex actor, const Token& token) {
    const LagIndex round = job.plan->actors[actor].round;
    if (token.came == kNoIndex || round == kNoIndex) return;
    Came came = std::move(self.serving[token.came]);
    const Duration waited = events_.now() - came.at;
    const Duration looked = self.looked_since(came.at);
    if (looked * 2 < waited) return;
    self.path = paths_.extend(std::move(came.path), works_on_others_, waited - looked);
    self.path = paths_.extend(std::move(self.path), job.lags[round].cause, looked);
  }

  void begin_wait(ActorState& self) {
    self.is_waiting = true;
    self.waits_since = events_.now();
  }
  void end_wait(Job& job, ActorIndex actor, FlagIndex flag) {
    ActorState& self = job.actors[actor];
    self.is_waiting = false;
    self.work.waited += events_.now() - self.waits_since;
    if (job.observer != nullptr) job.observer->on_waited(actor, flag, self.waits_since);
  }

  static Duration work_of(const Job& job, const ActorState& self, const Instruction& i) {
    Duration time = job.lags[i.index].time;
    if (i.second != kNoIndex) time += job.lags[i.second].time * std::int64_t{self.count};
    return time;
  }

  /// What takes an actor no time.
  void do_at_once(Job& job, ActorState& self, Cursor& cursor) {
    const Instruction& i = cursor.instruction();
    const bool of_token = (i.mode & Instruction::kOfToken) != 0;
    switch (i.kind) {
      case Kind::kPost:
        post(job, self, i, of_token ? self.tag : i.index);
        break;
      case Kind::kPostReceives:
        transport_.post_receives(job.queue_pairs[of_token ? self.tag : i.index].id,
                                 static_cast<std::uint32_t>(i.amount));
        break;
      case Kind::kSignal:
        signal(job, self, i);
        break;
      case Kind::kRepeat:
        cursor.enter_repeat(self.amount);
        return;
      case Kind::kWhile:
        self.count = take_tokens(job, self, i);
        if (self.count > 0) {
          cursor.enter_while();
        } else {
          self.count = 1;
          cursor.skip_loop();
        }
        return;
      default:
        throw std::logic_error("plan: a raise without a move");
    }
    cursor.pass();
  }

  /// What a kWhile takes of its flags; 0: it ends.
  static std::uint32_t take_tokens(Job& job, ActorState& self, const Instruction& i) {
    auto count = static_cast<std::uint64_t>(i.amount);
    if (i.second != kNoIndex) count = std::min(count, job.flags[i.second].count());
    if (job.flags[i.index].count() < count) return 0;
    for (const FlagIndex f : {i.second, i.index}) {
      if (f == kNoIndex) continue;
      FlagState& flag = job.flags[f];
      const auto unused = static_cast<std::uint32_t>(std::min<std::uint64_t>(flag.unused, count));
      flag.unused -= unused;
      for (std::uint64_t t = unused; t < count; ++t) self.take(flag.tokens.take());
    }
    return static_cast<std::uint32_t>(count);
  }

  void move(Job& job, ActorIndex actor, const Program& program, const Instruction& i) {
    const std::int64_t bytes = job.actors[actor].amount;
    job.actors[actor].is_moving = true;
    job.transfers += program.copies;
    note(job, Trajectory::What::kSubmitted, bytes, program.copies);
    const std::uint64_t tag = put({.path = std::move(job.actors[actor].path),
                                   .job = &job,
                                   .amount = bytes,
                                   .move = &i,
                                   .owner = actor,
                                   .copies = program.copies});
    transport_.submit(WalkId{i.index}, Bytes{bytes}, tag);
  }

  void post(Job& job, const ActorState& self, const Instruction& i, QueuePairIndex index) {
    const QueuePair& spec = job.plan->queue_pairs[index];
    QueuePairState& q = job.queue_pairs[index];
    const std::int64_t bytes = i.bytes(self.amount);
    job.transfers += std::uint64_t{self.count} * spec.copies;
    requests_.clear();
    for (std::uint32_t r = 0; r < self.count; ++r) {
      ++q.posted;
      note(job, Trajectory::What::kSubmitted, bytes, spec.copies);
      const bool is_signalled =
          spec.signal_every > 0 && (q.posted % spec.signal_every == 0 || q.posted == spec.requests);
      const bool is_told = is_signalled && spec.send_cq != kNoIndex;
      const std::uint64_t told = is_signalled ? q.posted - std::exchange(q.told, q.posted) : 0;
      const std::uint64_t tag = put({.path = self.path,
                                     .job = &job,
                                     .amount = bytes,
                                     .posted = events_.now(),
                                     .owner = index,
                                     .told = static_cast<std::uint32_t>(told),
                                     .copies = spec.copies,
                                     .verb = i.verb,
                                     .open = static_cast<std::uint8_t>(
                                         1 + (is_told ? 1 : 0) + (i.verb == Verb::kSend ? 1 : 0))});
      requests_.push_back({.verb = i.verb,
                           .bytes = Bytes{bytes},
                           .is_inline = (i.mode & Instruction::kInline) != 0,
                           .is_signalled = is_signalled,
                           .tag = tag});
    }
    transport_.post(q.id, requests_);
    if (job.observer != nullptr) job.observer->on_posted(index, self.count);
  }

  void signal(Job& job, const ActorState& self, const Instruction& i) {
    const bool of_token = (i.mode & Instruction::kOfToken) != 0;
    const FlagIndex flag = i.index + (of_token ? job.plan->queue_pairs[self.tag].context : 0);
    const std::uint32_t tag = of_token ? self.tag : static_cast<std::uint32_t>(i.amount);
    const std::int64_t tokens = (i.mode & Instruction::kForEach) != 0 ? self.amount : i.length;
    const Token token{.amount = self.amount, .tag = tag};
    for (std::int64_t t = 0; t < tokens; ++t) raise(job, flag, i.second, token, self.path);
    if (i.second == kNoIndex && job.observer != nullptr) {
      job.observer->on_signalled(flag, static_cast<std::uint64_t>(tokens));
    }
  }

  /// A flag gets a token after a lag.
  void raise(Job& job, FlagIndex flag, LagIndex lag, const Token& token, const PathRef& path) {
    if (lag == kNoIndex || job.lags[lag].time == Duration{}) {
      give(job, flag, token, path, kNoIndex);
      return;
    }
    const std::uint64_t index = put({.path = path,
                                     .job = &job,
                                     .amount = token.amount,
                                     .owner = flag,
                                     .lag = lag,
                                     .tag = token.tag});
    events_.schedule_after(job.lags[lag].time, Phase::kDeliver, *this, index);
  }

  /// What a token at the end of its lag needs: itself, then its flag.
  void prefetch(std::uint64_t index, unsigned round) override {
    const Pending& token = pending_[index];
    if (round == 0) __builtin_prefetch(&token);
    if (round == 1) __builtin_prefetch(&token.job->flags[token.owner]);
  }

  void on_event(std::uint64_t index) override {
    const Pending token = take(index);
    give(*token.job, token.owner, {.amount = token.amount, .tag = token.tag}, token.path,
         token.lag);
  }

  /// A flag gets a token. What led to it, the lag just before at last, led to where an actor is
  /// that has waited for it.
  void give(Job& job, FlagIndex index, Token token, const PathRef& path, LagIndex lag) {
    FlagState& flag = job.flags[index];
    if (flag.server == kNoIndex && !flag.is_taken) {
      if (index == job.plan->lap) job.lap = events_.now();
      return;
    }
    if (flag.join != kNoIndex) return give_to_join(job, flag, path, lag);
    token.program = flag.server;
    const bool is_served = flag.server != kNoIndex;
    const ActorIndex actor = is_served ? job.programs[flag.server].actor : flag.waiter;
    Mailbox<Token>& box = is_served ? job.actors[actor].inbox : flag.tokens;
    if (box.is_awaited()) {
      follow(job, job.actors[actor], path, lag);
    } else if (is_served && job.actors[actor].works_in_rounds) {
      std::vector<Came>& arrived = job.actors[actor].arrived;
      token.came = static_cast<std::uint32_t>(arrived.size());
      arrived.push_back({behind(job, path, lag), events_.now()});
    }
    box.push(token);
  }

  /// A flag of a join gets a token. If it was the last that lacked one, what led to it led to what
  /// the join gives.
  void give_to_join(Job& job, FlagState& flag, const PathRef& path, LagIndex lag) {
    if (flag.joining++ > 0) return;
    std::size_t& missing = job.missing[flag.join];
    if (--missing > 0) return;
    const Join& join = job.plan->joins[flag.join];
    const PathRef until = behind(job, path, lag);
    for (const FlagIndex f : join.from) missing += --job.flags[f].joining == 0 ? 1 : 0;
    for (const Join::To& to : join.to) raise(job, to.flag, to.lag, {}, until);
  }

  void follow(const Job& job, ActorState& actor, const PathRef& path, LagIndex lag) {
    if (actor.waits_since != events_.now()) actor.path = behind(job, path, lag);
  }

  /// What led to the end of a lag, which may be none.
  PathRef behind(const Job& job, const PathRef& path, LagIndex lag) {
    if (lag == kNoIndex) return path;
    return paths_.extend(path, job.lags[lag].cause, job.lags[lag].time);
  }

  void on_sent(std::uint64_t tag, bool queued, std::span<const Segment> segments) override {
    Pending& transfer = pending_[tag];
    Job& job = *transfer.job;
    note(job, Trajectory::What::kSent, transfer.amount, transfer.copies);
    if (transfer.move != nullptr) {
      extend(transfer.path, segments);
      job.actors[transfer.owner].path = transfer.path;
      if (std::exchange(job.actors[transfer.owner].is_moving, false)) {
        job.actors[transfer.owner].sent.wake();
      }
      return;
    }
    QueuePairState& q = job.queue_pairs[transfer.owner];
    if (queued) transfer.path = q.last_sent;
    extend(transfer.path, segments);
    q.last_sent = transfer.path;
  }

  void on_delivered(std::uint64_t tag, std::span<const Segment> segments) override {
    note(*pending_[tag].job, Trajectory::What::kDelivered, pending_[tag].amount,
         pending_[tag].copies);
    if (pending_[tag].move != nullptr) {
      Pending transfer = take(tag);
      extend(transfer.path, segments);
      for (std::uint32_t r = 1; r <= transfer.move->length; ++r) {
        const Instruction& i = transfer.move[r];
        raise(*transfer.job, i.index, i.second,
              {.amount = transfer.amount, .tag = static_cast<std::uint32_t>(i.amount)},
              transfer.path);
      }
      return;
    }
    const Pending message = hear(tag, segments);
    Job& job = *message.job;
    const QueuePair& q = job.plan->queue_pairs[message.owner];
    if (message.verb == Verb::kWrite && q.receive_cq != kNoIndex) {
      raise(job, q.receive_cq, q.receive_lag, {.amount = message.amount, .tag = message.owner},
            message.path);
    }
    if (job.observer != nullptr) {
      job.observer->on_delivered(message.owner, Bytes{message.amount}, message.posted);
    }
  }

  void on_completed(std::uint64_t tag, std::span<const Segment> segments) override {
    const Pending message = hear(tag, segments);
    const QueuePair& q = message.job->plan->queue_pairs[message.owner];
    raise(*message.job, q.send_cq, q.send_lag, {.amount = message.told, .tag = message.owner},
          message.path);
  }

  void on_received(std::uint64_t tag, std::span<const Segment> segments) override {
    const Pending message = hear(tag, segments);
    Job& job = *message.job;
    const QueuePair& q = job.plan->queue_pairs[message.owner];
    if (q.receive_cq != kNoIndex) {
      raise(job, q.receive_cq, q.receive_lag, {.amount = message.amount, .tag = message.owner},
            message.path);
    }
    if (job.observer != nullptr) job.observer->on_received(message.owner, Bytes{message.amount});
  }

  /// A message of which something is heard, perhaps for the last time, and what led to that.
  Pending hear(std::uint64_t tag, std::span<const Segment> segments) {
    Pending message = --pending_[tag].open == 0 ? take(tag) : pending_[tag];
    extend(message.path, segments);
    return message;
  }

  void finish(Job& job, std::uint32_t program, const PathRef& path) {
    --job.unfinished;
    if (job.programs[program].serves != kNoIndex) {
      job.last_served = events_.now();
      return;
    }
    note(job, Trajectory::What::kFinished, 0, job.programs[program].copies);
    job.ends[program] = events_.now();
    job.last_finish = events_.now();
    job.last_path = path;
  }

  void note(Job& job, Trajectory::What what, std::int64_t bytes, std::uint32_t copies) {
    job.trajectory.add(what, events_.now(), Bytes{bytes}, copies);
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

  Transport& transport_;
  EventQueue& events_;
  CauseTable& causes_;
  CauseId works_on_others_;
  PathStore paths_;  // before everything that holds a PathRef
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Pending> pending_;
  std::vector<std::size_t> free_;
  std::vector<VerbRequest> requests_;  // of one post
  ProcessHost host_;
};

Runner::Runner(Transport& transport, EventQueue& events, CauseTable& causes)
    : engine_{std::make_unique<Engine>(transport, events, causes)} {}
Runner::~Runner() = default;

std::size_t Runner::add(const Plan& plan, RunObserver* observer, const Stop* stop) {
  return engine_->add(plan, observer, stop);
}
void Runner::run(const Stop* stop, const OnTransfers& on_transfers) {
  engine_->run(stop, on_transfers);
}
RunOutcome Runner::outcome(std::size_t plan) const { return engine_->outcome(plan); }
ActorWork Runner::work(std::size_t plan, ActorIndex actor) const {
  return engine_->work(plan, actor);
}

}  // namespace weft
