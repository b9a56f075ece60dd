#include "replay/chakra/graph.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/io/file.hpp"
#include "sim/io/json.hpp"

namespace weft {
namespace {

using Kind = ChakraNode::Kind;

constexpr std::uint32_t kMostRanks = 1 << 20;

/// A trace's nodes (by their places in it) so that each stands behind those it depends on; of those
/// that may stand next the one that began first as it was recorded.
std::vector<std::uint32_t> in_order(const ChakraTrace& trace,
                                    const std::unordered_map<std::uint64_t, std::uint32_t>& place) {
  const auto count = static_cast<std::uint32_t>(trace.nodes.size());
  std::vector<std::uint32_t> missing(count);
  std::vector<std::vector<std::uint32_t>> behind(count);
  using Ready = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  const auto add_ready = [&](std::uint32_t n) {
    ready.emplace(trace.nodes[n].start_us, trace.nodes[n].id, n);
  };
  for (std::uint32_t n = 0; n < count; ++n) {
    missing[n] = static_cast<std::uint32_t>(trace.nodes[n].before.size());
    for (const std::uint64_t id : trace.nodes[n].before) behind[place.at(id)].push_back(n);
    if (missing[n] == 0) add_ready(n);
  }
  std::vector<std::uint32_t> out;
  while (!ready.empty()) {
    const std::uint32_t n = std::get<2>(ready.top());
    ready.pop();
    out.push_back(n);
    for (const std::uint32_t next : behind[n]) {
      if (--missing[next] == 0) add_ready(next);
    }
  }
  if (out.size() == count) return out;
  const auto stuck = std::find_if(missing.begin(), missing.end(), [](auto m) { return m > 0; });
  throw InputError(fmt::format("{}: node {} waits for itself, by other nodes", trace.file,
                               trace.nodes[static_cast<std::size_t>(stuck - missing.begin())].id));
}

class GraphBuilder {
 public:
  GraphBuilder(const std::vector<ChakraTrace>& traces, const ChakraGroups& groups,
               const std::string& groups_file, const ChakraLimits& limits)
      : traces_{traces}, groups_{groups}, groups_file_{groups_file}, limits_{limits} {
    for (std::uint32_t rank = 0; rank < traces.size(); ++rank) all_.push_back(rank);
    graph_.labels = {"GPU", "host"};
    graph_.ranks.resize(traces.size());
  }

  TaskGraph build() && {
    for (std::uint32_t rank = 0; rank < traces_.size(); ++rank) add_rank(rank);
    check_calls();
    return std::move(graph_);
  }

 private:
  [[noreturn]] void fail(std::uint32_t rank, const ChakraNode& node, const std::string& why) const {
    throw InputError(fmt::format("{}: node {}: {}", traces_[rank].file, node.id, why));
  }

  void add_rank(std::uint32_t rank) {
    const ChakraTrace& trace = traces_[rank];
    std::unordered_map<std::uint64_t, std::uint32_t> place;
    for (std::uint32_t n = 0; n < trace.nodes.size(); ++n) place.emplace(trace.nodes[n].id, n);
    // The tasks that a node that has ended stands for: itself, or what it only joins.
    std::vector<std::vector<std::uint32_t>> tasks(trace.nodes.size());
    for (const std::uint32_t n : in_order(trace, place)) {
      const ChakraNode& node = trace.nodes[n];
      std::vector<std::uint32_t> after;
      for (const std::uint64_t id : node.before) {
        const std::vector<std::uint32_t>& of = tasks[place.at(id)];
        count_joined(rank, node, of.size());
        after.insert(after.end(), of.begin(), of.end());
        if (after.size() > 2 * kMostJoined) join(rank, node, after);
      }
      join(rank, node, after);
      after.shrink_to_fit();
      Task task{.label = node.on_host ? 1U : 0U, .time = node.time, .after = std::move(after)};
      task.on_host = node.on_host && node.kind == Kind::kCompute;
      if (node.kind > Kind::kCompute) task.exchange = exchange(rank, node);
      if (task.computes() && node.kind != Kind::kCompute) {
        tasks[n] = std::move(task.after);
        continue;
      }
      if (++tasks_ > limits_.tasks) {
        fail(rank, node,
             fmt::format("the {}th to run of all traces; at most {} are taken", tasks_,
                         limits_.tasks));
      }
      tasks[n] = {static_cast<std::uint32_t>(graph_.ranks[rank].size())};
      graph_.ranks[rank].push_back(std::move(task));
    }
  }
  /// Nodes that a node depends on, each once.
  void join(std::uint32_t rank, const ChakraNode& node, std::vector<std::uint32_t>& after) const {
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    if (after.size() > kMostJoined) fail(rank, node, "joins more than 10,000 others");
  }
  void count_joined(std::uint32_t rank, const ChakraNode& node, std::size_t tasks) {
    if (tasks <= 1) return;
    joined_ += tasks;
    if (joined_ <= limits_.joined) return;
    fail(rank, node,
         fmt::format("with it more than {} dependencies go through nodes that only join others",
                     limits_.joined));
  }

  /// kNoTask: nothing to exchange, among one.
  std::uint32_t exchange(std::uint32_t rank, const ChakraNode& node) {
    if (node.kind != Kind::kCollective) return send(rank, node);
    const std::vector<std::uint32_t>& ranks = ranks_of(rank, node);
    if (ranks.size() == 1) return kNoTask;
    // nccl-tests counts what all ranks get of an all-gather, and what each has of all else.
    const Bytes bytes = node.op == Op::kAllGather
                            ? node.bytes * static_cast<std::int64_t>(ranks.size())
                            : node.bytes;
    const std::string name = node.group.empty() ? "all ranks" : "group " + node.group;
    return table({group(name, ranks, {}), node.op, bytes}, 0);
  }
  const std::vector<std::uint32_t>& ranks_of(std::uint32_t rank, const ChakraNode& node) const {
    if (node.group.empty()) return all_;
    const auto at = groups_.find(node.group);
    if (at == groups_.end()) {
      fail(rank, node,
           groups_file_.empty()
               ? "is of group '" + node.group + "', and there is no file of groups"
               : "is of group '" + node.group + "', which " + groups_file_ + " does not have");
    }
    const std::vector<std::uint32_t>& ranks = at->second;
    if (ranks.back() >= traces_.size()) {
      fail(rank, node,
           fmt::format("its group '{}' has rank {}, and there are {} traces", node.group,
                       ranks.back(), traces_.size()));
    }
    if (!std::binary_search(ranks.begin(), ranks.end(), rank)) {
      fail(rank, node, fmt::format("rank {} is not in its group '{}'", rank, node.group));
    }
    return ranks;
  }
  /// Sends and receives between two ranks, over the communicator of all.
  std::uint32_t send(std::uint32_t rank, const ChakraNode& node) {
    if (node.peer >= traces_.size() || node.peer == rank) {
      fail(rank, node,
           fmt::format("exchanges with rank {}; there are {} ranks, and itself is none", node.peer,
                       traces_.size()));
    }
    const std::uint32_t from = node.kind == Kind::kSend ? rank : node.peer;
    const std::uint32_t to = node.kind == Kind::kSend ? node.peer : rank;
    Exchange what{group("sends", {std::min(from, to), std::max(from, to)}, {from, to}),
                  Op::kSendRecv, node.bytes};
    what.sends = {{from, to, node.bytes}};
    return table(std::move(what), node.tag);
  }

  std::uint32_t group(const std::string& name, std::vector<std::uint32_t> ranks,
                      std::vector<std::uint32_t> direction) {
    const auto next = static_cast<std::uint32_t>(graph_.groups.size());
    const auto [at, is_new] = known_groups_.try_emplace({name, ranks, direction}, next);
    if (is_new) {
      graph_.groups.push_back({name, std::move(ranks), {}});
      if (!direction.empty()) graph_.groups.back().communicator = all_;
    }
    return at->second;
  }
  std::uint32_t table(Exchange exchange, std::int64_t tag) {
    const auto next = static_cast<std::uint32_t>(graph_.exchanges.size());
    const auto [at, is_new] =
        known_exchanges_.try_emplace({exchange.group, exchange.op, exchange.bytes, tag}, next);
    if (is_new) graph_.exchanges.push_back(std::move(exchange));
    return at->second;
  }

  /// All ranks of an exchange call it as often.
  void check_calls() const {
    std::vector<std::map<std::uint32_t, std::uint64_t>> calls(graph_.exchanges.size());
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank) {
      for (const Task& task : graph_.ranks[rank]) {
        if (!task.computes()) ++calls[task.exchange][rank];
      }
    }
    for (std::size_t e = 0; e < calls.size(); ++e) {
      const Exchange& exchange = graph_.exchanges[e];
      const TaskGroup& group = graph_.groups[exchange.group];
      const std::uint64_t first = calls[e].begin()->second;
      for (const std::uint32_t rank : group.ranks) {
        const auto at = calls[e].find(rank);
        const std::uint64_t its = at == calls[e].end() ? 0 : at->second;
        if (its == first) continue;
        throw InputError(fmt::format(
            "{}: {} of {} of {} B: rank {} calls it {} times, rank {} {} times", traces_[rank].file,
            exchange.sends.empty() ? op_name(exchange.op) : "a send", group.name,
            exchange.bytes.count(), calls[e].begin()->first, first, rank, its));
      }
    }
  }

  static constexpr std::size_t kMostJoined = 10'000;

  const std::vector<ChakraTrace>& traces_;
  const ChakraGroups& groups_;
  const std::string& groups_file_;
  ChakraLimits limits_;
  std::size_t tasks_{0};
  std::size_t joined_{0};
  std::vector<std::uint32_t> all_;
  TaskGraph graph_;
  std::map<std::tuple<std::string, std::vector<std::uint32_t>, std::vector<std::uint32_t>>,
           std::uint32_t>
      known_groups_;
  std::map<std::tuple<std::uint32_t, Op, Bytes, std::int64_t>, std::uint32_t> known_exchanges_;
};

/// A trace of a rank beyond `rank`; of several the first by its number.
std::optional<std::string> further_file(const std::string& prefix, std::uint32_t rank) {
  const std::filesystem::path path(prefix);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::string begin = path.filename().string() + ".";
  std::optional<std::uint32_t> least;
  std::error_code cannot;
  for (std::filesystem::directory_iterator at(folder, cannot), end; !cannot && at != end;
       at.increment(cannot)) {
    const std::string name = at->path().filename().string();
    std::uint32_t its = 0;
    if (!name.starts_with(begin)) continue;
    const auto [rest, error] =
        std::from_chars(name.data() + begin.size(), name.data() + name.size(), its);
    if (error != std::errc{} || std::string_view(rest) != ".et" || its <= rank) continue;
    if (std::to_string(its) != std::string_view(name.data() + begin.size(), rest))
      continue;  // "03"
    least = std::min(its, least.value_or(its));
  }
  if (!least) return std::nullopt;
  return chakra_file(prefix, *least);
}

}  // namespace

std::string chakra_file(const std::string& prefix, std::uint32_t rank) {
  return fmt::format("{}.{}.et", prefix, rank);
}

ChakraGroups read_chakra_groups(const std::string& file) {
  const Json json = Json::parse(read_text_file(file), file);
  ChakraGroups out;
  if (!json.is_object()) throw InputError(file + ": expected an object of lists of ranks");
  for (const auto& [name, list] : json.members()) {
    const auto fail = [&, &group = name](const std::string& why) {
      throw InputError(file + ": group '" + group + "': " + why);
    };
    if (!list.is_array()) fail("expected a list of ranks");
    std::vector<std::uint32_t> ranks;
    for (const Json& item : list.items()) {
      if (!item.is_integer() || item.as_integer() < 0 || item.as_integer() >= kMostRanks) {
        fail("a rank is a whole number from 0 to 1048575");
      }
      ranks.push_back(static_cast<std::uint32_t>(item.as_integer()));
    }
    std::sort(ranks.begin(), ranks.end());
    if (ranks.empty() || std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) {
      fail("no rank, or one twice");
    }
    out.emplace(name, std::move(ranks));
  }
  return out;
}

std::uint32_t count_chakra_ranks(const std::string& prefix) {
  std::uint32_t ranks = 0;
  while (ranks < kMostRanks && std::filesystem::exists(chakra_file(prefix, ranks))) ++ranks;
  const std::string next = chakra_file(prefix, ranks);
  if (ranks == 0) throw InputError(next + ": no such file");
  if (ranks == kMostRanks) return ranks;
  if (const std::optional<std::string> further = further_file(prefix, ranks)) {
    throw InputError(next + ": no such file, but " + *further + " is there");
  }
  return ranks;
}

std::vector<ChakraTrace> read_chakra_ranks(const std::string& prefix, std::uint32_t ranks,
                                           const ChakraLimits& limits) {
  std::vector<ChakraTrace> out;
  std::size_t nodes = 0;
  std::size_t dependencies = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    out.push_back(read_chakra(chakra_file(prefix, rank)));
    nodes += out.back().nodes.size();
    for (const ChakraNode& node : out.back().nodes) dependencies += node.before.size();
    if (nodes <= limits.nodes && dependencies <= limits.dependencies) continue;
    throw InputError(fmt::format(
        "{}: with it the traces have {} nodes and {} dependencies; at most {} and {} are taken",
        out.back().file, nodes, dependencies, limits.nodes, limits.dependencies));
  }
  return out;
}

TaskGraph chakra_graph(const std::vector<ChakraTrace>& traces, const ChakraGroups& groups,
                       const std::string& groups_file, const ChakraLimits& limits) {
  return GraphBuilder(traces, groups, groups_file, limits).build();
}

}  // namespace weft
