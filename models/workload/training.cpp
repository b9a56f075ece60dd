#include "models/workload/training.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "models/collective/predict.hpp"

namespace weft {
namespace {

using Tasks = std::vector<std::uint32_t>;

enum Label : std::uint32_t { kForward, kBackward, kOptimizer };

/// Which rank is where: ranks are numbered with the first of the order changing fastest.
class Ranks {
 public:
  explicit Ranks(const StepSpec& step) : step_{&step} {
    for (const Parallel p : step.order) stride_[static_cast<std::size_t>(p)] = stride_of(step, p);
  }
  std::uint32_t coordinate(std::uint32_t rank, Parallel p) const {
    return rank / stride(p) % step_->degree(p);
  }
  /// The rank with another coordinate.
  std::uint32_t with(std::uint32_t rank, Parallel p, std::uint32_t coordinate) const {
    return rank + (coordinate - this->coordinate(rank, p)) * stride(p);
  }
  /// The ranks that differ from `rank` in these coordinates alone, in ascending order.
  std::vector<std::uint32_t> along(std::uint32_t rank, std::initializer_list<Parallel> all) const {
    std::vector<std::uint32_t> out{rank};
    for (const Parallel p : all) {
      std::vector<std::uint32_t> more;
      for (const std::uint32_t r : out) {
        for (std::uint32_t c = 0; c < step_->degree(p); ++c) more.push_back(with(r, p, c));
      }
      out = std::move(more);
    }
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  std::uint32_t stride(Parallel p) const { return stride_[static_cast<std::size_t>(p)]; }

  const StepSpec* step_;
  std::array<std::uint32_t, 5> stride_{};
};

/// The graph's tables, each entry once.
class Tables {
 public:
  explicit Tables(TaskGraph& graph) : graph_{&graph} {}

  std::uint32_t group(std::string_view name, std::vector<std::uint32_t> ranks) {
    const auto next = static_cast<std::uint32_t>(graph_->groups.size());
    const auto [at, is_new] = groups_.try_emplace({std::string(name), ranks}, next);
    if (is_new) graph_->groups.push_back({std::string(name), std::move(ranks)});
    return at->second;
  }
  std::uint32_t exchange(const Exchange& exchange) {
    const auto next = static_cast<std::uint32_t>(graph_->exchanges.size());
    const auto [at, is_new] =
        exchanges_.try_emplace({exchange.group, exchange.op, exchange.bytes}, next);
    if (is_new) graph_->exchanges.push_back(exchange);
    return at->second;
  }

 private:
  TaskGraph* graph_;
  std::map<std::pair<std::string, std::vector<std::uint32_t>>, std::uint32_t> groups_;
  std::map<std::tuple<std::uint32_t, Op, Bytes>, std::uint32_t> exchanges_;
};

/// What one rank does.
class RankBuilder {
 public:
  RankBuilder(const StepSpec& step, const Ranks& ranks, Tables& tables, std::uint32_t rank,
              std::vector<Task>& tasks)
      : step_{step},
        ranks_{ranks},
        tables_{tables},
        rank_{rank},
        tasks_{tasks},
        stage_{ranks.coordinate(rank, Parallel::kPipeline)},
        layers_{step.layers / step.degree(Parallel::kPipeline)} {}

  /// 1F1B: a stage begins with as many forward passes as there are stages behind it, then goes back
  /// once for each way forward (Narayanan et al., "Efficient large-scale language model training on
  /// GPU clusters using Megatron-LM", SC 2021, section 2.2).
  void build() {
    if (gathers_ahead()) {
      for (std::uint32_t b = 0; b < buckets(); ++b) gathered_.push_back(gather(b));
    }
    const std::uint32_t all = step_.micro_batches;
    const std::uint32_t first = std::min(step_.degree(Parallel::kPipeline) - 1 - stage_, all);
    for (std::uint32_t i = 0; i < all + first; ++i) {
      if (i < all) pass_forward(i == 0);
      if (i >= first) pass_back(i + 1 == all + first);
    }
    finish();
  }

 private:
  // Tasks.
  std::uint32_t add(Task task) {
    tasks_.push_back(std::move(task));
    return static_cast<std::uint32_t>(tasks_.size() - 1);
  }
  void compute(Label label, Duration time) {
    if (time == Duration{}) return;
    // On with the last one, where nothing is between them.
    const auto last = static_cast<std::uint32_t>(tasks_.size()) - 1;
    if (awaited_.empty() && front_ == Tasks{last} && tasks_[last].computes() &&
        tasks_[last].label == label) {
      tasks_[last].time += time;
      return;
    }
    join();
    front_ = {add({.label = label, .time = time, .after = std::move(front_)})};
  }
  /// An exchange that begins once all so far has ended.
  std::uint32_t exchange(const Exchange& exchange) {
    return add({.exchange = tables_.exchange(exchange), .time = {}, .after = front_});
  }
  /// Likewise, behind what is awaited too, and all that follows waits for it.
  void blocking(const Exchange& what) {
    join();
    front_ = {exchange(what)};
  }
  void await(std::uint32_t task) { awaited_.push_back(task); }
  /// All that follows waits for what is awaited.
  void join() {
    front_.insert(front_.end(), awaited_.begin(), awaited_.end());
    awaited_.clear();
  }

  // Groups.
  std::uint32_t degree(Parallel p) const { return step_.degree(p); }
  std::uint32_t group_of(Parallel p) {
    return tables_.group(parallel_name(p), ranks_.along(rank_, {p}));
  }
  /// Those that hold the same part of a layer.
  std::uint32_t copies() {
    return tables_.group(
        kDataGroup, ranks_.along(rank_, {Parallel::kData, Parallel::kContext, Parallel::kExpert}));
  }
  std::uint32_t expert_copies() {
    return tables_.group(kExpertDataGroup,
                         ranks_.along(rank_, {Parallel::kData, Parallel::kContext}));
  }
  bool has_copies() const {
    return degree(Parallel::kData) * degree(Parallel::kContext) * degree(Parallel::kExpert) > 1;
  }
  bool has_expert_copies() const {
    return degree(Parallel::kData) * degree(Parallel::kContext) > 1;
  }
  static Bytes part(Bytes whole, std::uint32_t of) { return Bytes{pieces(whole, Bytes{of})}; }

  // A layer.
  /// Between tensor-parallel parts: their results are added up.
  void add_up() {
    if (degree(Parallel::kTensor) == 1) return;
    const Op op = step_.sequence ? Op::kReduceScatter : Op::kAllReduce;
    blocking({group_of(Parallel::kTensor), op, activations()});
  }
  /// Before them, if each has a part of the sequence.
  void bring_together() {
    if (degree(Parallel::kTensor) == 1 || !step_.sequence) return;
    blocking({group_of(Parallel::kTensor), Op::kAllGather, activations()});
  }
  void to_experts() {
    if (degree(Parallel::kExpert) == 1) return;
    const std::uint32_t parts =
        degree(Parallel::kContext) * (step_.sequence ? degree(Parallel::kTensor) : 1);
    blocking({group_of(Parallel::kExpert), Op::kAllToAll, part(step_.dispatched, parts)});
  }
  void keys_values(Op op) {
    if (degree(Parallel::kContext) == 1) return;
    blocking(
        {group_of(Parallel::kContext), op, part(step_.keys_values, degree(Parallel::kTensor))});
  }
  Bytes activations() const { return part(step_.activations, degree(Parallel::kContext)); }

  void layer_forward() {
    const Duration attention = Duration::from_ns(step_.forward.as_ns() * step_.attention);
    keys_values(Op::kAllGather);
    bring_together();
    compute(kForward, attention);
    add_up();
    bring_together();
    to_experts();
    compute(kForward, step_.forward - attention);
    to_experts();
    add_up();
  }
  void layer_back() {
    const Duration attention = Duration::from_ns(step_.backward.as_ns() * step_.attention);
    bring_together();
    to_experts();
    compute(kBackward, step_.backward - attention);
    to_experts();
    add_up();
    bring_together();
    compute(kBackward, attention);
    add_up();
    keys_values(Op::kReduceScatter);
  }

  // Layers whose gradients or parameters go together: bucket 0 holds the last ones.
  std::uint32_t buckets() const { return (layers_ + step_.bucket - 1) / step_.bucket; }
  std::uint32_t layers_of(std::uint32_t bucket) const {
    return std::min(step_.bucket, layers_ - bucket * step_.bucket);
  }
  bool is_full() const { return step_.sharding == Sharding::kFull; }
  bool gathers_ahead() const {
    return step_.sharding == Sharding::kOptimizer && step_.overlaps_parameters;
  }
  /// A bucket's exchange among those that have a copy of it, and of its experts.
  Tasks of_bucket(Op op, std::uint32_t bucket, Bytes dense, Bytes experts) {
    Tasks out;
    const std::int64_t layers = layers_of(bucket);
    const std::uint32_t tensor = degree(Parallel::kTensor);
    if (has_copies() && dense > Bytes{0}) {
      out.push_back(exchange({copies(), op, part(dense * layers, tensor)}));
    }
    if (has_expert_copies() && experts > Bytes{0}) {
      out.push_back(exchange(
          {expert_copies(), op, part(experts * layers, tensor * degree(Parallel::kExpert))}));
    }
    return out;
  }
  Tasks gather(std::uint32_t bucket) {
    return of_bucket(Op::kAllGather, bucket, step_.parameters, step_.expert_parameters);
  }
  Tasks reduce(std::uint32_t bucket) {
    const Op op = step_.sharding == Sharding::kNone ? Op::kAllReduce : Op::kReduceScatter;
    return of_bucket(op, bucket, step_.gradients, step_.expert_gradients);
  }
  void await_all(const Tasks& tasks) {
    for (const std::uint32_t task : tasks) await(task);
  }
  /// All that follows waits for these.
  void block_on(const Tasks& tasks) {
    if (!tasks.empty()) front_ = tasks;
  }

  /// One pass over the stage's buckets in their order, `layer` for each layer. Where parameters are
  /// gathered before each use, the next bucket's are while this one computes, if they may overlap.
  template <class Layer, class After>
  void pass(bool forward, Layer&& layer, After&& after) {
    const std::uint32_t count = buckets();
    const auto bucket = [&](std::uint32_t i) { return forward ? count - 1 - i : i; };
    Tasks next;
    if (is_full() && step_.overlaps_parameters) next = gather(bucket(0));
    for (std::uint32_t i = 0; i < count; ++i) {
      if (is_full() && step_.overlaps_parameters) {
        await_all(next);
        if (i + 1 < count) next = gather(bucket(i + 1));
      } else if (is_full()) {
        join();
        block_on(gather(bucket(i)));
      }
      for (std::uint32_t l = layers_of(bucket(i)); l > 0; --l) layer(bucket(i));
      after(bucket(i));
    }
  }

  // A micro-batch.
  void pass_forward(bool is_first) {
    if (stage_ > 0) receive(stage_ - 1, "stages forward");
    std::uint32_t entered = kNoTask;
    pass(
        true,
        [&](std::uint32_t bucket) {
          if (is_first && gathers_ahead() && bucket != entered) await_all(gathered_[bucket]);
          entered = bucket;
          layer_forward();
        },
        [](std::uint32_t) {});
    if (stage_ + 1 < degree(Parallel::kPipeline)) send(stage_ + 1, "stages forward");
  }
  void pass_back(bool is_last) {
    if (stage_ + 1 < degree(Parallel::kPipeline)) receive(stage_ + 1, "stages back");
    pass(
        false, [&](std::uint32_t) { layer_back(); },
        [&](std::uint32_t bucket) {
          if (!is_last && !is_full()) return;
          if (step_.overlaps_gradients) {
            const Tasks reduced = reduce(bucket);
            reducing_.insert(reducing_.end(), reduced.begin(), reduced.end());
          } else if (is_full()) {
            block_on(reduce(bucket));
          }
        });
    if (stage_ > 0) send(stage_ - 1, "stages back");
  }

  /// Each direction between two ranks has a communicator of its own.
  Exchange between(std::uint32_t from, std::uint32_t to, std::string_view name) {
    std::uint32_t parts = degree(Parallel::kContext);
    if (step_.sequence) parts *= degree(Parallel::kTensor);
    const Bytes bytes = part(step_.activations, parts);
    Exchange out{tables_.group(name, {std::min(from, to), std::max(from, to)}), Op::kSendRecv,
                 bytes};
    out.sends = {{from < to ? 0U : 1U, from < to ? 1U : 0U, bytes}};
    return out;
  }
  void send(std::uint32_t stage, std::string_view name) {
    const std::uint32_t to = ranks_.with(rank_, Parallel::kPipeline, stage);
    const std::uint32_t task = exchange(between(rank_, to, name));
    if (!step_.overlaps_stages) await(task);
  }
  void receive(std::uint32_t stage, std::string_view name) {
    const std::uint32_t from = ranks_.with(rank_, Parallel::kPipeline, stage);
    const Exchange what = between(from, rank_, name);
    const std::uint32_t task =
        step_.overlaps_stages ? add({.exchange = tables_.exchange(what), .time = {}, .after = {}})
                              : exchange(what);
    front_.push_back(task);
  }

  /// What is left of gradients, the optimizer, the parameters that it has changed.
  void finish() {
    if (!step_.overlaps_gradients && !is_full()) {
      join();
      for (std::uint32_t b = 0; b < buckets(); ++b) block_on(reduce(b));
    }
    await_all(reducing_);
    compute(kOptimizer, step_.optimizer);
    if (step_.sharding == Sharding::kOptimizer && !step_.overlaps_parameters) {
      join();
      for (std::uint32_t b = buckets(); b > 0; --b) block_on(gather(b - 1));
    }
  }

  const StepSpec& step_;
  const Ranks& ranks_;
  Tables& tables_;
  std::uint32_t rank_;
  std::vector<Task>& tasks_;
  std::uint32_t stage_;
  std::uint32_t layers_;         ///< of the stage
  Tasks front_;                  ///< all that follows waits for these
  Tasks awaited_;                ///< the next that stands in the way waits for these, too
  Tasks reducing_;               ///< gradients, beside compute
  std::vector<Tasks> gathered_;  ///< parameters, by bucket, from the step's begin on
};

}  // namespace

double tasks_of(const StepSpec& step) {
  constexpr double kOfLayer = 20;  // and micro-batch
  return kOfLayer * step.layers / step.degree(Parallel::kPipeline) * step.micro_batches *
         static_cast<double>(step.ranks());
}

void refuse_many_tasks(const StepSpec& step) {
  constexpr double kMostTasks = 5e6;  // some 300 B each
  const double tasks = tasks_of(step);
  if (tasks <= kMostTasks) return;
  throw TooLarge(step.place,
                 fmt::format("layers x micro-batches x GPUs are too many to simulate, about {:.1e} "
                             "tasks; take fewer nodes, layers or micro-batches",
                             tasks));
}

std::uint32_t stride_of(const StepSpec& step, Parallel p) {
  std::uint32_t stride = 1;
  for (const Parallel before : step.order) {
    if (before == p) break;
    stride *= step.degree(before);
  }
  return stride;
}

TaskGraph training_graph(const StepSpec& step) {
  refuse_many_tasks(step);
  TaskGraph graph;
  graph.labels = {"forward", "backward", "optimizer"};
  graph.ranks.resize(step.ranks());
  const Ranks ranks(step);
  Tables tables(graph);
  for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
    RankBuilder(step, ranks, tables, rank, graph.ranks[rank]).build();
  }
  return graph;
}

}  // namespace weft
