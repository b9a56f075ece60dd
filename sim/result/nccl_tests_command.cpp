#include "sim/result/nccl_tests_command.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

namespace weft {
namespace {

constexpr std::int64_t kMostOfKind = 1 << 20;  // processes, threads, GPUs, hosts

/// A word of a command line, if it names one of nccl-tests' programs, known or not; else "".
std::string_view program_of(std::string_view word) {
  word = bare(word);
  return word.ends_with("_perf") || word.ends_with("_perf_mpi") ? word : std::string_view{};
}

bool is_count(std::optional<std::int64_t> number) {
  return number && *number >= 1 && *number <= kMostOfKind;
}

/// What stands behind an option: "-np 8", "--np=8", of one letter "-N8", too; "" if nothing does.
std::string_view value_of(const Words& words, std::initializer_list<std::string_view> names) {
  std::string_view out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = bare(words[i]);
    for (const std::string_view name : names) {
      if (!word.starts_with(name)) continue;
      const std::string_view rest = word.substr(name.size());
      if (rest.empty() && i + 1 < words.size()) out = bare(words[i + 1]);
      if (rest.starts_with('=')) out = rest.substr(1);
      if (name.size() == 2 && whole_of(rest)) out = rest;
    }
  }
  return out;
}

/// A number of at least 1; 0 if it says none.
std::int64_t count_of(const Words& words, std::initializer_list<std::string_view> names) {
  const std::optional<std::int64_t> number = whole_of(value_of(words, names));
  return is_count(number) ? *number : 0;
}

/// Of mpirun's "--map-by ppr:8:node" the 8.
std::int64_t mapped_of(const Words& words) {
  constexpr std::string_view kBegin = "ppr:";
  std::string_view value = value_of(words, {"--map-by", "-map-by"});
  if (!value.starts_with(kBegin)) return 0;
  value.remove_prefix(kBegin.size());
  const std::size_t end = std::min(value.find(':'), value.size());
  const std::optional<std::int64_t> number = whole_of(value.substr(0, end));
  return value.substr(end).starts_with(":node") && is_count(number) ? *number : 0;
}

/// How many processes a launcher starts, and on how many hosts; 0 where it does not say.
struct Launched {
  std::int64_t processes{0};
  std::int64_t hosts{0};
};

Launched launched_by_slurm(const Words& options) {
  Launched out{count_of(options, {"-n", "--ntasks"}), count_of(options, {"-N", "--nodes"})};
  const std::int64_t each = count_of(options, {"--ntasks-per-node"});
  if (out.processes == 0) out.processes = out.hosts * each;
  if (out.hosts == 0 && each > 0 && out.processes % each == 0) out.hosts = out.processes / each;
  return out;
}

Launched launched_by_mpi(const Words& options) {
  Launched out{count_of(options, {"-np", "--np", "-n"}), 0};
  std::int64_t each =
      count_of(options, {"-npernode", "--npernode", "-N", "-ppn", "--ppn", "-perhost"});
  if (each == 0) each = mapped_of(options);
  if (each > 0 && out.processes % each == 0) out.hosts = out.processes / each;
  return out;
}

std::int64_t at_least_one(const Words& options, std::string_view brief, std::string_view name) {
  const std::optional<std::int64_t> number = option_of(options, brief, name);
  return is_count(number) ? *number : 1;
}

/// By the last launcher before the program, if there is one.
std::optional<Launched> launched_by(const Words& before) {
  constexpr std::array<std::string_view, 6> kLaunchers{"mpirun",  "mpiexec", "mpiexec.hydra",
                                                       "orterun", "prterun", "srun"};
  for (auto at = before.rbegin(); at != before.rend(); ++at) {
    const std::string_view word = bare(*at);
    const std::string_view name = word.substr(word.rfind('/') + 1);
    if (std::find(kLaunchers.begin(), kLaunchers.end(), name) == kLaunchers.end()) continue;
    const Words options(at.base(), before.end());
    return name == "srun" ? launched_by_slurm(options) : launched_by_mpi(options);
  }
  return std::nullopt;
}

/// "-x NAME=VALUE", "-genv NAME VALUE", "NAME=VALUE" of env or a shell.
std::map<std::string, std::string> variables_of(const Words& before) {
  constexpr std::string_view kOfNccl = "NCCL_";
  constexpr std::string_view kOfLog = "NCCL_DEBUG";
  constexpr std::size_t kLongest = 256;
  std::map<std::string, std::string> out;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::string_view word = bare(before[i]);
    if (!word.starts_with(kOfNccl) || word.starts_with(kOfLog)) continue;
    const std::size_t equals = word.find('=');
    std::string_view value;
    if (equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else if (i > 0 && i + 1 < before.size() && before[i - 1].ends_with("env")) {
      value = bare(before[i + 1]);
    }
    if (value.empty() || value.size() > kLongest) continue;
    out[std::string(word.substr(0, equals))] = value;
  }
  return out;
}

}  // namespace

void TestCommandReader::read(const Words& words) {
  constexpr std::size_t kMostWords = 4096;
  begun_.insert(begun_.end(), words.begin(), words.end());
  if (!begun_.empty() && begun_.back() == "\\" && begun_.size() < kMostWords) {
    begun_.pop_back();
    return;
  }
  read_command(std::exchange(begun_, {}));
}

TestCommand TestCommandReader::take() {
  read({});
  return std::exchange(command_, {});
}

void TestCommandReader::read_command(const Words& words) {
  auto last = words.end();
  for (auto at = words.begin(); at != words.end(); ++at) {
    const std::string_view program = program_of(*at);
    if (program.empty()) continue;
    command_.programs.emplace(program);
    last = at;
  }
  if (last == words.end()) return;
  const Words before(words.begin(), last);
  const Words options(last + 1, words.end());
  TestCommand command{.programs = std::move(command_.programs)};
  command.aggregated = option_of(options, "-m", "--agg_iters");
  command.is_blocking = option_of(options, "-z", "--blocking").value_or(0) != 0;
  if (const auto graphs = option_of(options, "-G", "--cudagraph")) command.graph = *graphs != 0;
  command.variables = variables_of(before);
  const std::int64_t each =
      at_least_one(options, "-g", "--ngpus") * at_least_one(options, "-t", "--nthreads");
  const std::optional<Launched> launched = launched_by(before);
  // A program without a launcher may stand in a script that has one.
  if (launched || each > 1) {
    command.ranks = (launched ? launched->processes : 1) * each;
    command.hosts = launched ? launched->hosts : 1;
  }
  command_ = std::move(command);
}

}  // namespace weft
