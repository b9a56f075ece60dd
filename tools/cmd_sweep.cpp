#include <algorithm>
#include <atomic>
#include <charconv>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/collective/effort.hpp"
#include "models/collective/joint_progress.hpp"
#include "models/collective/scale_note.hpp"
#include "models/collective/settings.hpp"
#include "models/collective/spares.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/base/parallel.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/random.hpp"
#include "sim/base/version.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "sim/io/journal.hpp"
#include "tools/answer.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/progress.hpp"
#include "tools/source_digest.hpp"
#include "tools/stopping.hpp"
#include "tools/sweep_table.hpp"

namespace weft {
namespace {

struct SweepArguments {
  PredictArguments predict;
  std::string params;
  std::string csv{"-"};
  std::string prices;
  bool pareto{false};
  std::string tolerance;
  std::string shard;
  unsigned merge{0};
  std::string time_limit;
};

/// One of several processes that share a sweep's points out among them.
struct Shard {
  std::size_t number{1};
  std::size_t count{1};

  std::string text() const { return fmt::format("{}/{}", number, count); }
  /// Where its table stands, beside the whole one's.
  std::string file(const std::string& csv) const {
    return csv == "-" || count == 1 ? csv : fmt::format("{}.{}-of-{}", csv, number, count);
  }
  /// Every count-th point: neighbours cost about as much, and so do the shards.
  std::vector<std::size_t> points(std::size_t all) const {
    std::vector<std::size_t> out;
    for (std::size_t i = number - 1; i < all; i += count) out.push_back(i);
    return out;
  }
};

constexpr unsigned kMostShards = 100'000;

Shard parse_shard(const std::string& text) {
  if (text.empty()) return {};
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto number = std::from_chars(text.data(), end, shard.number);
  if (number.ec == std::errc{} && number.ptr != end && *number.ptr == '/') {
    const auto count = std::from_chars(number.ptr + 1, end, shard.count);
    if (count.ec == std::errc{} && count.ptr == end && shard.number >= 1 &&
        shard.number <= shard.count && shard.count <= kMostShards) {
      return shard;
    }
  }
  throw InputError("--shard '" + text + "': write I/N, the I-th of N shards, such as 3/8");
}

/// What shifts of queues' phases alone may change, as models/collective/sensitivity.md has it.
constexpr double kTolerance = 0.02;

double tolerance_of(const SweepArguments& arguments) {
  if (arguments.tolerance.empty()) return kTolerance;
  if (!arguments.pareto) throw InputError("--tolerance: is of --pareto");
  const auto share = parse_number(arguments.tolerance);
  if (share && *share >= 0 && *share < 1) return *share;
  throw InputError("--tolerance '" + arguments.tolerance + "': write a share from 0 to below 1");
}

/// What the command line and the scenario set at a point.
std::vector<ScenarioSetting> settings_at(const Sweep& sweep, std::size_t point) {
  std::vector<ScenarioSetting> out = sweep.options.set;
  for (std::size_t i = 0; i < sweep.axes.size(); ++i) {
    out.push_back({sweep.axes[i].key, sweep.points[point].values[i], {}});
  }
  return out;
}

/// How long the cables of a topology are, by its parameters. `spec` and `params` must outlive it.
CableLengths cable_lengths(const TopologySpec& spec, const Params& params) {
  const auto of_tier = [&](const std::string& tier, bool is_local) {
    const NetworkSpec& network = spec.network;
    const NetworkTierSpec& said = tier == "leaf"    ? network.leaf
                                  : tier == "spine" ? network.spine
                                                    : network.core;
    return params.number(is_local ? "netswitch.local_length" : "netswitch.uplink_length",
                         {.device = tier, .topology = &said.settings});
  };
  return {params.number("wire.cable_length"), of_tier};
}

/// A point's cluster as it is bought: with all that has failed since, and what lies ready. Throws
/// InputError where it cannot be built.
std::vector<BillLine> bill_of(const Sweep& sweep, std::size_t point) {
  std::vector<ScenarioSetting> settings = sweep.scenario.set;
  for (ScenarioSetting& s : settings_at(sweep, point)) settings.push_back(std::move(s));
  const std::vector<ScenarioSetting> all = settings;
  std::erase_if(settings, [](const ScenarioSetting& s) { return is_failed_key(s.key); });
  TopologySpec spec = sweep.topology;
  Params params(sweep.catalog);
  spec.nodes = sweep.scenario.nodes.value_or(spec.nodes);
  apply_settings(settings, spec, params);
  drop_uncabled_nics(spec);
  const Spares spares = spares_of(all, spec);
  const auto nodes = spec.nodes + static_cast<std::uint32_t>(spares.nodes.spare);
  const Fabric fabric(spec, nodes);
  std::vector<BillLine> out = bill_of_parts(fabric, cable_lengths(spec, params));
  add_spares(out, spares.nics.spare, spares.uplinks.spare);
  return out;
}

/// The block of a point; nullopt if it was stopped. `idle` hears of what was set without an effect.
template <typename Idle>
std::optional<Block> run_point(const Sweep& sweep, std::size_t point, PredictOptions options,
                               Idle idle) {
  options.set = settings_at(sweep, point);
  try {
    if (sweep.has_prices && !sweep.totals[point]) (void)bill_of(sweep, point);  // throws why
    const RunResult result =
        sweep.predictor(sweep.scenario, sweep.topology, options, sweep.catalog);
    if (!result.not_run.empty()) return std::nullopt;
    for (const std::string& note : result.notes) {
      const bool is_of_costs = sweep.has_prices && note.find(kSparesAreIdle) != std::string::npos;
      if (note.starts_with("no effect") && !is_of_costs) idle(note);
    }
    return block_of(sweep, point, result);
  } catch (const Stopped&) {
    return std::nullopt;
  } catch (const InputError& e) {
    return refused_block(sweep, point, e.what());
  }
}

/// How long all points take, by what those say that have begun.
class SweepEstimate {
 public:
  /// Of `points`, shared by `threads`; the first one's is told by `progress`, if all take long.
  SweepEstimate(std::size_t points, unsigned threads, Progress& progress)
      : of_each_(points), threads_{threads}, progress_{progress} {}

  /// A point takes so many seconds of one core; how long all take, s.
  double hears(std::size_t point, double seconds) {
    const std::lock_guard lock(mutex_);
    begun_ += of_each_[point] == 0 && seconds > 0 ? 1U : 0U;
    sum_ += seconds - std::exchange(of_each_[point], seconds);
    if (begun_ == 0) return 0;
    const double all = sum_ / static_cast<double>(begun_) * static_cast<double>(of_each_.size());
    if (!std::exchange(is_told_, true) && of_each_.size() > 1 && all >= kLongRun) {
      progress_.say(fmt::format("{} points, if all are like the first: up to about {}",
                                of_each_.size(), of_one_core(all)));
    }
    return all / threads_;
  }

 private:
  std::mutex mutex_;
  std::vector<double> of_each_;
  unsigned threads_;
  Progress& progress_;
  double sum_{0};
  std::size_t begun_{0};
  bool is_told_{false};
};

/// Runs those of the points that are not in `done` and adds them, until it is stopped. Each goes to
/// the journal when it is there. What was set without an effect, by points.
std::map<std::string, std::size_t> run_missing(const Sweep& sweep,
                                               const std::vector<std::size_t>& points,
                                               Journal* journal, Blocks& done) {
  std::map<std::string, std::size_t> without_effect;
  std::vector<std::size_t> missing;
  for (const std::size_t point : points) {
    if (!done.contains(sweep.points[point].digest)) missing.push_back(point);
  }
  if (missing.empty()) return without_effect;
  std::mutex mutex;
  Pace pace("points");
  Progress told([&pace] { return pace.text(); });
  SweepEstimate estimate(missing.size(), threads_each(1, sweep.options.threads), told);
  std::atomic<double> in_all{0};
  JointProgress progress(std::vector<std::size_t>(missing.size(), 1), [&](const RunProgress& p) {
    pace.is_at(p.rows_done, p.rows, p.work_done / p.work, in_all);
  });
  const std::shared_ptr<SharedRuns> shared = make_shared_runs();
  parallel_for(missing.size(), sweep.options.threads, [&](std::size_t i) {
    if (sweep.options.stop->is_requested()) return;
    PredictOptions options = sweep.options;
    options.shared = shared;
    options.threads = threads_each(missing.size(), sweep.options.threads);
    options.on_progress = [&](const RunProgress& p) {
      if (p.rows_done == p.rows) return;
      in_all = estimate.hears(i, p.work);
      progress.is_at(i, 0, share_done(p));
    };
    const auto idle = [&](const std::string& note) {
      const std::lock_guard lock(mutex);
      ++without_effect[note];
    };
    std::optional<Block> block = run_point(sweep, missing[i], std::move(options), idle);
    if (!block) return;
    progress.is_at(i, 1, 1);
    const std::lock_guard lock(mutex);
    if (journal != nullptr) journal->append(lines_of(*block));
    done[sweep.points[missing[i]].digest] = std::move(*block);
  });
  return without_effect;
}

/// Refuses an axis of which no value can be set behind those of the axes before it at any point,
/// such as one whose key does not exist, so that nothing runs in vain. (A single bad value is said
/// in its points' rows.) What has failed and what lies ready is of the cluster that all axes make:
/// it is judged last.
void check_axes(const Sweep& sweep) {
  const std::size_t all = sweep.axes.size();
  for (std::size_t step = 1; step <= all + 1; ++step) {
    std::optional<InputError> first_refusal;
    const bool any = std::any_of(sweep.points.begin(), sweep.points.end(), [&](const auto& point) {
      TopologySpec spec = sweep.topology;
      spec.nodes = sweep.scenario.nodes.value_or(spec.nodes);
      Params params(sweep.catalog);
      std::vector<ScenarioSetting> settings = sweep.scenario.set;
      settings.insert(settings.end(), sweep.options.set.begin(), sweep.options.set.end());
      for (std::size_t i = 0; i < std::min(step, all); ++i) {
        settings.push_back({sweep.axes[i].key, point.values[i], {}});
      }
      if (step <= all) erase_spares(settings);
      try {
        apply_settings(settings, spec, params);
      } catch (const InputError& e) {
        if (!first_refusal) first_refusal = e;
        return false;
      }
      return true;
    });
    if (!any) throw InputError(*first_refusal);
  }
}

/// What each point costs as it is bought; nullopt where it cannot be built, which its row
/// says. Throws InputError: a part without a price; Stopped.
std::vector<std::optional<BillTotal>> totals_of(const Sweep& sweep, const PriceList& prices) {
  std::vector<std::optional<BillTotal>> totals;
  for (std::size_t point = 0; point < sweep.points.size(); ++point) {
    sweep.options.stop->check();
    std::vector<BillLine> bill;
    try {
      bill = bill_of(sweep, point);
    } catch (const InputError&) {
      totals.emplace_back();
      continue;
    }
    totals.emplace_back(total_of(bill, prices));
  }
  return totals;
}

/// What decides every point's results beside its values: whatever is not in it makes no difference.
std::string digest_base(const Sweep& sweep, const std::optional<PriceList>& prices) {
  constexpr std::int64_t kMaxFileBytes = 1LL << 30;  // as readers of traces have it
  std::string base = fmt::format("weft {} {}\nscenario {:016x}\n", weft_version(), source_digest(),
                                 sweep.scenario.digest);
  std::vector<std::string> files = files_of(sweep.scenario);
  for (std::string& file : trace_files(sweep.scenario)) files.push_back(std::move(file));
  for (const std::string& file : files) {
    base += fmt::format("file {:016x}\n", fnv1a(read_text_file(file, kMaxFileBytes)));
  }
  for (const ScenarioSetting& s : sweep.options.set) base += "set " + s.key + "=" + s.value + '\n';
  if (sweep.options.nccl_version) base += "nccl " + sweep.options.nccl_version->text() + '\n';
  for (const auto& [name, value] : sweep.options.env) base += "env " + name + "=" + value + '\n';
  if (prices) base += fmt::format("prices {:016x}\n", prices->digest);
  return base;
}

Sweep make_sweep(const SweepArguments& arguments, const Outputs& outputs,
                 const Stopping& stopping) {
  const PredictArguments& predict = arguments.predict;
  if (arguments.pareto && arguments.prices.empty()) {
    throw InputError("--pareto: needs --prices FILE, of what is fast against cost");
  }
  Sweep sweep{
      make_catalog(), read_any_scenario(predict, outputs), predict_options(predict), {}, {}};
  const ParameterSet params_file = parameter_set(arguments.params);
  sweep.options.set.insert(sweep.options.set.begin(), params_file.set.begin(),
                           params_file.set.end());
  sweep.options.stop = stopping.stop();
  sweep.predictor = any_predictor();
  for (const std::string& text : predict.set) sweep.axes.push_back(parse_axis(text));
  sweep.topology = read_topology(sweep.scenario.topology, sweep.catalog);
  std::optional<PriceList> prices;
  if (!arguments.prices.empty()) prices = read_prices(arguments.prices);
  sweep.points = grid_points(sweep.axes, digest_base(sweep, prices));
  Params params(sweep.catalog);
  apply_nccl_env(sweep.options.env, params, {}, sweep.options.nccl_version.value_or(NcclVersion{}));
  check_axes(sweep);
  sweep.has_prices = prices.has_value();
  sweep.has_front = arguments.pareto;
  sweep.tolerance = tolerance_of(arguments);
  try {
    if (prices) sweep.totals = totals_of(sweep, *prices);
  } catch (const Stopped&) {
    throw Stopped(stopping.by() + " while parts were counted; nothing is written");
  }
  return sweep;
}

/// Where the whole grid is asked of two nodes. Other workloads are of the nodes that they have.
void say_scale(const Sweep& sweep, const std::vector<std::size_t>& points, const Blocks& done) {
  if (sweep.scenario.op.empty() || points.size() != sweep.points.size()) return;
  std::vector<std::string> keys;
  for (const SweepAxis& axis : sweep.axes) keys.push_back(axis.key);
  for (const auto* settings : {&sweep.options.set, &sweep.scenario.set}) {
    for (const ScenarioSetting& s : *settings) keys.push_back(s.key);
  }
  const std::string note = scale_note(keys, rows_of(sweep, done));
  if (!note.empty()) std::cerr << "note: " << note << '\n';
}

void write_table(const Sweep& sweep, const std::vector<std::size_t>& points, const Blocks& done,
                 const std::string& csv) {
  write_text_file(csv, sweep_table(sweep, points, done, points.size() == sweep.points.size()));
}

/// Says what the front of a table that is written counts as equal.
void say_tolerance(const Sweep& sweep, const std::vector<std::size_t>& points) {
  if (!sweep.has_front || sweep.tolerance == 0 || points.size() != sweep.points.size()) return;
  std::cerr << fmt::format(
      "note: pareto: times that differ by {:g} % or less count as equal (--tolerance)\n",
      sweep.tolerance * 100);
}

/// Says what is not as it should be with a table that is written.
void judge(const Sweep& sweep, const std::vector<std::size_t>& points, const Blocks& done,
           const std::string& csv, const Stopping& stopping) {
  say_tolerance(sweep, points);
  std::size_t refused = 0;
  std::size_t missing = 0;
  for (const std::size_t point : points) {
    const auto block = done.find(sweep.points[point].digest);
    missing += block == done.end() ? 1U : 0U;
    refused += block != done.end() && block->second.refused ? 1U : 0U;
  }
  if (missing > 0) {
    throw Stopped(stopping.by() +
                  fmt::format(": {} of {} grid points are not run yet (column not_run); {}",
                              missing, points.size(),
                              csv == "-" ? "with --csv FILE the same command would go on from there"
                                         : "the same command goes on from there"));
  }
  if (refused > 0) {
    throw InputError(fmt::format("{} of {} grid points were refused; the column not_run says why",
                                 refused, points.size()));
  }
  say_scale(sweep, points, done);
}

/// Puts the shards' tables together. What is there already stays, so that it may be done again.
void merge(const Sweep& sweep, const SweepArguments& arguments, const Stopping& stopping) {
  if (arguments.csv == "-") throw InputError("--merge: needs --csv FILE, as the shards had it");
  Blocks done = read_sweep_table(sweep, arguments.csv);
  std::vector<std::string> missing;
  for (std::size_t number = 1; number <= arguments.merge; ++number) {
    const Shard shard{number, arguments.merge};
    done.merge(read_sweep_table(sweep, shard.file(arguments.csv)));
    const std::vector<std::size_t> points = shard.points(sweep.points.size());
    const bool is_whole = std::all_of(points.begin(), points.end(), [&](std::size_t point) {
      return done.contains(sweep.points[point].digest);
    });
    if (!is_whole) missing.push_back(shard.text());
  }
  if (!missing.empty()) {
    throw InputError(
        fmt::format("{}: shards {} are not there or not finished; run them (--shard "
                    "{}) and merge again",
                    arguments.csv, fmt::join(missing, ", "), missing.front()));
  }
  const std::vector<std::size_t> all = Shard{}.points(sweep.points.size());
  write_table(sweep, all, done, arguments.csv);
  judge(sweep, all, done, arguments.csv, stopping);
}

void run_shard(const Sweep& sweep, const Shard& shard, const SweepArguments& arguments,
               const Stopping& stopping) {
  const std::string csv = shard.file(arguments.csv);
  const std::vector<std::size_t> points = shard.points(sweep.points.size());
  Blocks done;
  std::optional<Journal> journal;
  if (csv != "-") {
    done = read_sweep_table(sweep, csv);
    journal.emplace(csv + ".part");
    for (const std::string& lines : journal->records()) {
      done.merge(read_blocks(sweep, lines, csv + ".part"));
    }
  }
  const auto without_effect = run_missing(sweep, points, journal ? &*journal : nullptr, done);
  write_table(sweep, points, done, csv);
  for (const auto& [note, count] : without_effect) {
    std::cerr << fmt::format("note: {} (at {} of {} points)\n", note, count, points.size());
  }
  if (journal) journal->remove();
  judge(sweep, points, done, csv, stopping);
}

void sweep(const SweepArguments& arguments, const Outputs& outputs) {
  if (arguments.csv.empty())
    throw InputError("--csv: write a file's name, or - for standard output");
  const Shard shard = parse_shard(arguments.shard);
  if (arguments.merge > 0 && !arguments.shard.empty()) {
    throw InputError("--merge and --shard: one after the other, not at once");
  }
  const Stopping stopping(arguments.time_limit);
  const Sweep sweep = make_sweep(arguments, outputs, stopping);
  if (arguments.merge > 0) return merge(sweep, arguments, stopping);
  run_shard(sweep, shard, arguments, stopping);
}

}  // namespace

void add_sweep_command(CommandLine& line) {
  const auto arguments = std::make_shared<SweepArguments>();
  Command command = line.add(
      "sweep",
      "Simulate a scenario, of any workload, at every point of a grid of parameter values");
  command.argument("scenario", arguments->predict.scenario, "scenario YAML");
  add_predict_options(command, arguments->predict,
                      "a parameter's values, KEY=VALUE,VALUE,...; repeatable");
  command.option("--params", arguments->params, kScenarioParamsHelp)
      .output("--csv", arguments->csv,
              "the table, a row for each point, size (of jobs: job) and memory path; '-' is "
              "standard output. "
              "Points that an earlier or interrupted sweep has put into this file are kept")
      .option("--prices", arguments->prices,
              "what parts cost, YAML (scenarios/README.md): adds the columns cost and power_kW")
      .flag("--pareto", arguments->pareto,
            "mark the rows of which no marked one is faster for as much cost, or as fast for less")
      .option("--tolerance", arguments->tolerance,
              "of --pareto: times that differ by this share or less count as equal; unless given "
              "0.02, which the model does not tell apart")
      .option("--shard", arguments->shard,
              "I/N: only the I-th of N shards of the points, into FILE.I-of-N of --csv FILE")
      .option("--merge", arguments->merge, "N: put the tables of N shards together into --csv FILE",
              kMostShards)
      .option("--time-limit", arguments->time_limit, kTimeLimitHelp)
      .example(
          "weft sweep scenarios/quickstart.yaml --set nic.count=1,2,4,8 "
          "--set wire.kind=infiniband,roce --csv sweep.csv")
      .action([arguments](const Outputs& outputs) { sweep(*arguments, outputs); });
}

}  // namespace weft
