#include "sim/result/nccl_tests_command.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

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

/// Whether such a word, dashes taken away, is an option of a launcher that has no value.
bool is_flag(std::string_view name) {
  constexpr std::array<std::string_view, 35> kFlags{"allow-run-as-root",
                                                    "oversubscribe",
                                                    "nooversubscribe",
                                                    "use-hwthread-cpus",
                                                    "tag-output",
                                                    "timestamp-output",
                                                    "report-bindings",
                                                    "display-map",
                                                    "display-allocation",
                                                    "bynode",
                                                    "byslot",
                                                    "bind-to-core",
                                                    "bind-to-none",
                                                    "bind-to-socket",
                                                    "prepend-rank",
                                                    "genvall",
                                                    "envall",
                                                    "exclusive",
                                                    "label",
                                                    "unbuffered",
                                                    "overlap",
                                                    "overcommit",
                                                    "exact",
                                                    "pty",
                                                    "verbose",
                                                    "quiet",
                                                    "container-writable",
                                                    "container-mount-home",
                                                    "no-container-mount-home",
                                                    "container-remap-root",
                                                    "l",
                                                    "u",
                                                    "v",
                                                    "q",
                                                    "K"};
  return std::find(kFlags.begin(), kFlags.end(), name) != kFlags.end();
}

/// An option, its name without dashes, and what it is set to; "" where nothing is.
struct Option {
  std::string_view name;
  std::string_view value;
};
using Options = std::vector<Option>;

/// Of "-np 8", "--np=8" and, of one letter, "-N8", up to the first word that is neither an option
/// nor one's value: what follows is another program's. One that is not known is taken to have a
/// value.
Options options_of(const Words& words) {
  Options out;
  const auto is_option = [](std::string_view word) {
    return word.size() > 1 && word.starts_with('-');
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = bare(words[i]);
    if (!is_option(word)) break;
    const std::string_view rest = word.substr(std::min(word.find_first_not_of('-'), word.size()));
    const std::size_t equals = std::min(rest.find('='), rest.size());
    Option option{rest.substr(0, equals), rest.substr(std::min(equals + 1, rest.size()))};
    const bool is_brief = !word.starts_with("--");
    if (is_brief && rest.size() > 1 && whole_of(rest.substr(1))) {
      option = {rest.substr(0, 1), rest.substr(1)};
    } else if (equals == rest.size() && !is_flag(rest)) {
      const auto next = [&] {
        return i + 1 < words.size() && !is_option(words[i + 1]) ? bare(words[++i])
                                                                : std::string_view{};
      };
      option.value = next();
      // "-genv NAME VALUE", "--mca NAME VALUE".
      const bool has_two = rest.ends_with("env") || rest.ends_with("mca");
      if (has_two && option.value.find('=') == std::string_view::npos) next();
    }
    out.push_back(option);
  }
  return out;
}

using Names = std::initializer_list<std::string_view>;

/// The first of such names; "" if there is none.
std::string_view value_of(const Options& options, Names names) {
  const auto at = std::find_if(options.begin(), options.end(), [&](const Option& option) {
    return std::find(names.begin(), names.end(), option.name) != names.end();
  });
  return at == options.end() ? std::string_view{} : at->value;
}

/// A number of at least 1; 0 if it says none.
std::int64_t count_of(const Options& options, Names names) {
  const std::optional<std::int64_t> number = whole_of(value_of(options, names));
  return is_count(number) ? *number : 0;
}

/// Of mpirun's "--map-by ppr:8:node" the 8.
std::int64_t mapped_of(const Options& options) {
  constexpr std::string_view kBegin = "ppr:";
  std::string_view value = value_of(options, {"map-by"});
  if (!value.starts_with(kBegin)) return 0;
  value.remove_prefix(kBegin.size());
  const std::size_t end = std::min(value.find(':'), value.size());
  const std::optional<std::int64_t> number = whole_of(value.substr(0, end));
  return value.substr(end).starts_with(":node") && is_count(number) ? *number : 0;
}

/// Of mpirun's "-H a:8,b:8", or "-H a:8 -H b:8".
struct HostList {
  std::int64_t hosts{0};
  std::int64_t slots{0};   ///< of all
  bool has_slots{true};    ///< all say theirs
  bool has_as_many{true};  ///< all have as many
};

HostList host_list_of(const Options& options) {
  HostList out;
  std::map<std::string_view, std::int64_t> slots;
  for (const auto& [name, value] : options) {
    if (name != "H" && name != "host" && name != "hosts") continue;
    std::string_view list = value;
    while (!list.empty()) {
      const std::string_view entry = list.substr(0, list.find(','));
      list.remove_prefix(std::min(entry.size() + 1, list.size()));
      const std::size_t colon = std::min(entry.find(':'), entry.size());
      const auto number = whole_of(entry.substr(std::min(colon + 1, entry.size())));
      out.has_slots = out.has_slots && is_count(number);
      slots[entry.substr(0, colon)] += is_count(number) ? *number : 1;
    }
  }
  for (const auto& [host, of_host] : slots) {
    ++out.hosts;
    out.slots += of_host;
    out.has_as_many = out.has_as_many && of_host == slots.begin()->second;
  }
  return out;
}

/// How many processes a launcher starts, and on how many hosts; 0 where it does not say.
struct Launched {
  std::int64_t processes{0};
  std::int64_t hosts{0};
};

Launched launched_by_slurm(const Options& options) {
  Launched out{count_of(options, {"n", "ntasks"}), count_of(options, {"N", "nodes"})};
  const std::int64_t each = count_of(options, {"ntasks-per-node"});
  if (out.processes == 0) out.processes = out.hosts * each;
  if (out.hosts == 0 && each > 0 && out.processes % each == 0) out.hosts = out.processes / each;
  return out;
}

Launched launched_by_mpi(const Options& options) {
  Launched out{count_of(options, {"np", "n"}), 0};
  std::int64_t each = count_of(options, {"npernode", "N", "ppn", "perhost"});
  if (each == 0) each = mapped_of(options);
  const HostList list = host_list_of(options);
  if (out.processes == 0) {
    out.processes = each > 0 ? each * list.hosts : list.has_slots ? list.slots : 0;
  }
  if (each > 0) {
    if (out.processes % each == 0) out.hosts = out.processes / each;
  } else if (list.hosts == 1 || (list.has_as_many && list.slots == out.processes)) {
    out.hosts = list.hosts;
  }
  return out;
}

/// By the last launcher before the program, if there is one.
std::optional<Launched> launched_by(const Words& before) {
  constexpr std::array<std::string_view, 6> kLaunchers{"mpirun",  "mpiexec", "mpiexec.hydra",
                                                       "orterun", "prterun", "srun"};
  for (auto at = before.rbegin(); at != before.rend(); ++at) {
    const std::string_view word = bare(*at);
    const std::string_view name = word.substr(word.rfind('/') + 1);
    if (std::find(kLaunchers.begin(), kLaunchers.end(), name) == kLaunchers.end()) continue;
    const Options options = options_of(Words(at.base(), before.end()));
    Launched out = name == "srun" ? launched_by_slurm(options) : launched_by_mpi(options);
    if (!is_count(out.processes)) out.processes = 0;
    return out;
  }
  return std::nullopt;
}

/// What nccl-tests' own options say. Of several alike the last counts, as for getopt().
TestCommand stated_by(Options options, const std::optional<Launched>& launched) {
  std::reverse(options.begin(), options.end());
  const auto number = [&](Names names) { return whole_of(value_of(options, names)); };
  TestCommand out;
  out.aggregated = number({"m", "agg_iters"});
  out.is_blocking = number({"z", "blocking"}).value_or(0) != 0;
  if (const auto graphs = number({"G", "cudagraph"})) out.graph = *graphs != 0;
  const std::int64_t each = std::max<std::int64_t>(count_of(options, {"g", "ngpus"}), 1) *
                            std::max<std::int64_t>(count_of(options, {"t", "nthreads"}), 1);
  // A program without a launcher may stand in a script that has one.
  if (is_count(each) && (launched || each > 1)) {
    out.ranks = (launched ? launched->processes : 1) * each;
    out.hosts = launched ? launched->hosts : 1;
  }
  return out;
}

/// Whether a program without a launcher stands there as a command, not in a sentence: it has a
/// folder, or is behind a prompt or a variable that is set for it.
bool is_command(const Words& before, std::string_view program) {
  constexpr std::string_view kPrompts = "$#%>+";
  if (bare(program).find('/') != std::string_view::npos) return true;
  if (before.empty()) return false;
  return kPrompts.find(before.back().back()) != std::string_view::npos ||
         before.back().find('=') != std::string_view::npos;
}

/// The commands of a line, apart at ';', '|', '&&' and the like.
std::vector<Words> commands_of(const Words& words) {
  constexpr std::size_t kMost = 64;
  std::vector<Words> out(1);
  for (const std::string_view word : words) {
    if (out.size() > kMost) break;
    const bool is_between = word.find_first_not_of(";|&") == std::string_view::npos;
    if (is_between || word.starts_with('|')) {
      out.emplace_back();
      continue;
    }
    out.back().push_back(word);
    if (word.ends_with(';')) out.emplace_back();
  }
  return out;
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
    const bool is_shells = value.find('$') != std::string_view::npos;  // what it is, no one knows
    if (value.empty() || value.size() > kLongest || is_shells) continue;
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
  const auto is_program = [](std::string_view word) { return !program_of(word).empty(); };
  if (std::none_of(words.begin(), words.end(), is_program)) return;
  constexpr int kMostTried = 8;  // names in a command, the first of which is its program's
  std::map<std::string, std::string> exported;
  for (const Words& command : commands_of(words)) {
    const bool is_export = std::find(command.begin(), command.end(), "export") != command.end();
    if (is_export) {
      for (const auto& [name, value] : variables_of(command)) exported[name] = value;
    }
    int tried = 0;
    for (auto at = command.begin(); at != command.end(); ++at) {
      if (!is_program(*at)) continue;
      command_.programs.emplace(program_of(*at));
      if (++tried > kMostTried) continue;
      const Words before(command.begin(), at);
      const std::optional<Launched> launched = launched_by(before);
      if (!launched && !is_command(before, *at)) continue;
      TestCommand next = stated_by(options_of(Words(at + 1, command.end())), launched);
      next.variables = variables_of(before);
      next.variables.insert(exported.begin(), exported.end());
      next.programs = std::move(command_.programs);
      command_ = std::move(next);
      tried = kMostTried;
    }
  }
}

}  // namespace weft
