#include "tools/diff_input.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "models/nccl/decide/tuning_constants.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lower_case.hpp"
#include "sim/input/evidence/evidence.hpp"
#include "sim/input/evidence/scan.hpp"
#include "sim/io/file.hpp"
#include "sim/io/text_kind.hpp"
#include "sim/io/tool_text.hpp"
#include "sim/result/log_text.hpp"
#include "sim/result/nccl_tests.hpp"

namespace weft {
namespace {

bool is_alike(std::string_view name, std::string_view word) {
  std::string letters = lower_case(word);
  std::erase(letters, '_');
  return lower_case(name) == letters;
}

/// "NVLSTree" of "NVLS_TREE", "nvlstree" and, as logs before 2.24 have it, its number.
template <class List, class Name>
std::string name_in(const List& list, const Name& name_of, std::string_view word) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string_view name = name_of(list[i]);
    if (is_alike(name, word) || std::to_string(i) == word) return std::string(name);
  }
  return std::string(word);
}

Decision choice_of(std::string_view algo, std::string_view proto, unsigned channels) {
  return {name_in(kNcclAlgoList, nccl_algo_name, algo) + ' ' +
              name_in(kNcclProtoList, nccl_proto_name, proto),
          channels};
}

/// "Algo RING proto SIMPLE channel{Lo..Hi}={0..15}", "Algo 1 proto 2 time 54.2".
std::optional<Decision> choice_in(std::string_view text) {
  Scan scan(text);
  if (!scan.skip("Algo ")) return std::nullopt;
  const std::string_view algo = scan.word();
  if (!scan.blanks().skip("proto ")) return std::nullopt;
  const std::string_view proto = scan.word();
  unsigned channels = 0;
  if (scan.skip_to("={")) {
    const std::optional<std::int64_t> low = scan.whole();
    const std::optional<std::int64_t> high = scan.skip("..") ? scan.whole() : std::nullopt;
    if (low && high && *high >= *low && *high - *low < 1024) {
      channels = static_cast<unsigned>(*high - *low + 1);
    }
  }
  return choice_of(algo, proto, channels);
}

/// "AllReduce: 1048576", or before 2.24 "1048576" alone.
std::optional<DecisionKey> choice_key(std::string_view subject) {
  Scan scan(subject);
  const std::string_view op = holds(subject, ":") ? scan.until(":") : "";
  const std::optional<std::int64_t> bytes = scan.blanks().whole();
  if (!bytes) return std::nullopt;
  return DecisionKey{std::string(kChoice), op.empty() ? "any operation" : lower_case(op), *bytes};
}

/// The name behind what facts call a kind: "00" of "ring 00".
std::string behind(std::string_view subject, std::string_view kind) {
  Scan scan(subject);
  scan.skip(kind);
  return std::string(scan.blanks().rest());
}

/// "0  7  6" is "0 7 6"; of "0 1 2 ..." only the first are told.
Decision ring_of(std::string_view text) {
  Decision out;
  for (const std::string_view word : words_of(text)) {
    out.is_cut = word.ends_with("...");
    if (out.is_cut) break;
    out.text += (out.text.empty() ? "" : " ") + std::string(word);
  }
  return out;
}

/// "16 coll channels, 0 nvls channels, 4 p2p channels per peer": each number by what it counts.
void add_channels(std::string_view text, Decisions& out) {
  for (Scan scan(text); !scan.at_end();) {
    Scan one(scan.blanks().until(","));
    const std::optional<std::int64_t> count = one.whole();
    if (!count) return;
    out.all[{"channels", std::string(one.blanks().rest()), 0}] = {std::to_string(*count)};
  }
}

/// The cells between bars, without blanks.
std::vector<std::string> cells_of(std::string_view text) {
  std::vector<std::string> out;
  for (Scan scan(text); !scan.at_end();) {
    std::string cell;
    for (const std::string_view word : words_of(scan.until("|"))) cell += word;
    if (!cell.empty()) out.push_back(std::move(cell));
  }
  return out;
}

/// NCCL's table of latencies and bandwidths. Its columns are "Tree/ LL | Tree/ LL128 | ..." of the
/// head "Latency/AlgBw", later protocols below algorithms, which have three each.
class TuningTable {
 public:
  void read(const std::string& row, std::string_view text, Decisions& out) {
    constexpr std::size_t kProtocols = 3;
    const std::vector<std::string> cells = cells_of(text);
    if (row == "Latency/AlgBw") {
      columns_ = cells;
    } else if (row == "Algorithm") {
      algorithms_ = cells;
    } else if (row == "Protocol") {
      columns_.clear();
      for (std::size_t i = 0; i < cells.size() && i / kProtocols < algorithms_.size(); ++i) {
        columns_.push_back(algorithms_[i / kProtocols] + "/" + cells[i]);
      }
    } else {
      for (std::size_t i = 0; i < cells.size() && i < columns_.size(); ++i) {
        out.all[{"tuning", row + " " + columns_[i], 0}] = {cells[i]};
      }
    }
  }

 private:
  std::vector<std::string> algorithms_;
  std::vector<std::string> columns_;
};

/// "[0] 1/8/-1->0->-1 [1] 1/-1/-1->0->8" by channel; what is cut off is left out.
void add_trees(std::string_view text, Decisions& out) {
  Scan scan(text);
  while (scan.skip_to("[")) {
    const std::optional<std::int64_t> channel = scan.whole();
    if (!channel || !scan.skip("]")) return;
    Scan tree(scan.blanks().word());
    const std::string_view down = tree.until("->");
    const std::string_view rank = tree.until("->");
    if (tree.at_end()) return;
    out.all[{"tree", fmt::format("{:02} of rank {}", *channel, rank), 0}] = {
        fmt::format("down {}, up {}", down, tree.rest())};
  }
}

constexpr const char* kGdrKind = "GPUDirect RDMA";

/// Choices are made over GPUDirect RDMA where all pairs that are told have it, over host memory
/// where none has.
void tell_paths(Decisions& out) {
  std::set<std::string> said;
  for (const auto& [key, decision] : out.all) {
    if (key.kind == kGdrKind) said.insert(decision.text.starts_with("on") ? "on" : decision.text);
  }
  if (said.empty()) return;
  std::set<std::string> paths{"nccl"};
  if (said == std::set<std::string>{"on"}) paths.insert("gdr");
  if (said == std::set<std::string>{"off"}) paths.insert("host-staged");
  for (auto& [key, decision] : out.all) {
    if (key.kind == kChoice) decision.paths = paths;
  }
}

/// What was said of one thing, and by which hosts.
using Said = std::map<std::string, std::set<std::string>>;

/// "on", or where hosts differ "off (b), on (a and 6 more)".
std::string text_of(const Said& said) {
  std::string out;
  for (const auto& [value, hosts] : said) {
    if (!out.empty()) out += ", ";
    out += value;
    const bool is_of_some =
        std::any_of(said.begin(), said.end(),
                    [&hosts = hosts](const auto& other) { return other.second != hosts; });
    if (!is_of_some) continue;
    out += " (" + *hosts.begin();
    if (hosts.size() > 1) out += fmt::format(" and {} more", hosts.size() - 1);
    out += ')';
  }
  return out;
}

/// NCCL's log, of one job.
class LogDecisions {
 public:
  explicit LogDecisions(const Facts& facts) {
    for (const Fact& fact : facts.all()) read(fact);
    for (const auto& [key, said] : said_) out_.all[key] = {text_of(said)};
    for (const auto& [key, choices] : choices_) out_.all[key] = one_of(choices);
    tell_paths(out_);
    // A log names each variable that is set, and each ring.
    out_.whole = {"environment", "ring"};
  }
  Decisions take() { return std::move(out_); }

 private:
  using Choices = std::map<std::string, unsigned>;

  void say(std::string_view kind, std::string of, const Fact& fact, const std::string& value) {
    said_[{std::string(kind), std::move(of), 0}][value].insert(fact.host);
  }

  void read(const Fact& fact) {
    const std::string_view what = fact.what;
    if (what.starts_with(fact::kEnv)) {
      say("environment", std::string(what.substr(fact::kEnv.size())), fact, fact.value);
    } else if (what == fact::kNodes) {
      say("nodes", "", fact, fact.value);
    } else if (what == fact::kGdr) {
      say(kGdrKind, fact.subject, fact, fact.value);
    } else if (what.starts_with(fact::kLog)) {
      read_log(what.substr(fact::kLog.size()), fact);
    }
  }

  void read_log(std::string_view what, const Fact& fact) {
    if (what == "GDR") {
      // "GPU/0-18000 / HCA 0 (distance 4 <= 4), read 1": of what the NIC reads, else writes.
      const std::string pair = behind(fact.subject, "GDR for");
      const std::string on = holds(pair, "read 1") ? "on for reads" : "on for writes";
      say(kGdrKind, std::string(Scan(pair).until(" (distance")), fact,
          fact.value == "on" ? on : fact.value);
    } else if (what == "channels") {
      add_channels(fact.value, out_);
    } else if (what == "ring") {
      out_.all[{"ring", behind(fact.subject, "ring"), 0}] = ring_of(fact.value);
    } else if (what == "trees") {
      add_trees(fact.value, out_);
    } else if (what == "tuning") {
      tuning_.read(behind(fact.subject, "tuning"), fact.value, out_);
    } else if (what == "NIC distance") {
      say(what, fact.subject, fact, fact.value);
    } else if (what == "via") {
      say("connection", behind(fact.subject, "connection"), fact, fact.value);
    } else if (what == "choice") {
      const std::optional<DecisionKey> key = choice_key(behind(fact.subject, "choice"));
      const std::optional<Decision> choice = choice_in(fact.value);
      if (key && choice) choices_[*key][choice->text] = choice->channels;
    }
  }

  /// Of several communicators, or operations that the log does not tell apart, all.
  static Decision one_of(const Choices& choices) {
    if (choices.size() == 1) return {choices.begin()->first, choices.begin()->second};
    std::string text;
    for (const auto& [choice, channels] : choices) text += (text.empty() ? "" : " or ") + choice;
    return {text};
  }

  Decisions out_;
  TuningTable tuning_;
  std::map<DecisionKey, Said> said_;
  std::map<DecisionKey, Choices> choices_;
};

std::string numbers(const Json& list, std::string_view between) {
  std::string out;
  for (const Json& number : list.items()) {
    out += fmt::format("{}{}", out.empty() ? "" : between, number.as_integer());
  }
  return out;
}

/// The children of a tree's node as NCCL's log has them: three, -1 where there is none.
std::string children(const Json& down) {
  std::string out = numbers(down, "/");
  for (std::size_t i = down.items().size(); i < 3; ++i) out += out.empty() ? "-1" : "/-1";
  return out;
}

/// "gpu0-net0-read1" is of the pair gpu0-net0.
void add_gdr(const Json& gdr, Decisions& out) {
  std::map<std::string, std::set<std::string>> pairs;
  for (const auto& [name, said] : gdr.members()) {
    const std::size_t mode = name.find("-read");
    const std::string on = name.ends_with("-read1") ? "on for reads" : "on for writes";
    pairs[name.substr(0, mode)].insert(said.at("enabled").as_bool() ? on : "off");
  }
  for (const auto& [pair, values] : pairs) {
    out.all[{kGdrKind, pair, 0}] = {fmt::format("{}", fmt::join(values, ", "))};
  }
}

/// What `weft nccl --json` writes.
Decisions decisions_of_json(const Json& json) {
  Decisions out;
  const auto add = [&out](std::string_view kind, std::string of, std::string text) {
    out.all[{std::string(kind), std::move(of), 0}] = {std::move(text)};
  };
  add("nodes", "", std::to_string(json.at("nodes").as_integer()));
  const Json& channels = json.at("channels");
  for (const auto& [key, name] : {std::pair{"coll", "coll channels"},
                                  {"nvls", "nvls channels"},
                                  {"p2p", "p2p channels"},
                                  {"p2p_per_peer", "p2p channels per peer"}}) {
    add("channels", name, std::to_string(channels.at(key).as_integer()));
  }
  add_gdr(json.at("gdr"), out);
  for (const auto& [name, ring] : json.at("rings").members()) add("ring", name, numbers(ring, " "));
  for (const auto& [channel, tree] : json.at("trees").members()) {
    for (const auto& [rank, node] : tree.members()) {
      add("tree", fmt::format("{:0>2} of rank {}", channel, rank),
          fmt::format("down {}, up {}", children(node.at("down")), node.at("up").as_integer()));
    }
  }
  for (const Json& choice : json.at("choice").items()) {
    out.all[{std::string(kChoice), lower_case(choice.at("op").as_string()),
             choice.at("bytes").as_integer()}] =
        choice_of(choice.at("algo").as_string(), choice.at("proto").as_string(),
                  static_cast<unsigned>(
                      std::clamp<std::int64_t>(choice.at("channels").as_integer(), 0, 1024)));
  }
  tell_paths(out);
  out.whole = {"ring"};
  return out;
}

/// "2.27.7" of "2.27.7+cuda12.4".
std::string release_of(std::string_view version) {
  return std::string(version.substr(0, version.find('+')));
}

/// nccl-tests' rows. What joins the GPUs is not asked: both sides are held against each other only.
void add_measured(const std::string& text, const std::string& file, StatedColumns stated,
                  DiffInput& out) {
  stated.try_emplace("transport", "nvlink");
  const MeasuredTable table = parse_nccl_tests(text, file, stated);
  out.notes = table.notes;
  std::map<std::pair<std::string, std::int64_t>, int> seen;
  for (const MeasuredRow& row : table.rows) {
    const auto [first, is_new] = seen.try_emplace({row.op, row.bytes}, row.line);
    if (!is_new) {
      throw InputError(Place{file, row.line, 0},
                       fmt::format("{} of {} B is given twice, first at {}; a side is one run",
                                   row.op, row.bytes, Place{file, first->second, 0}.text()));
    }
    ResultRow of_row;
    of_row.op = row.op;
    of_row.bytes = row.bytes;
    of_row.ranks = static_cast<std::uint32_t>(row.ranks);
    of_row.nodes = static_cast<std::uint32_t>(row.hosts);
    of_row.time_us = row.us;
    of_row.algbw_gb_per_s = row.algbw_gb_per_s;
    of_row.busbw_gb_per_s = row.busbw_gb_per_s;
    out.result.rows.push_back(std::move(of_row));
  }
  out.is_measured = true;
}

DiffInput of_json(const std::string& text, const std::string& file, const StatedColumns& stated) {
  DiffInput out;
  if (kind_of(text) == TextKind::kMeasured) {
    add_measured(text, file, stated, out);
    return out;
  }
  const Json json = Json::parse(text, file);
  try {
    const Json* const schema = json.is_object() ? json.find("schema") : nullptr;
    if (schema != nullptr && schema->is_string() && schema->as_string() == "weft.nccl/1") {
      out.decisions = decisions_of_json(json);
      out.result.provenance.nccl_version = release_of(json.at("nccl").as_string());
      return out;
    }
    out.result = run_result_from_json(json);
    if (!out.result.rows.empty() && !out.result.rows.front().job.empty()) {
      throw InputError("has jobs; they are held against themselves alone in it");
    }
  } catch (const InputError& e) {
    throw InputError(file + ": " + e.what());
  }
  out.decisions = decisions_of(out.result);
  return out;
}

/// Whether nccl-tests printed a row: a run that hung has none.
bool has_rows(std::string_view text) {
  if (!is_nccl_tests(text)) return false;
  bool out = false;
  for_each_line(text, [&out](std::string_view line, int) {
    Scan scan(line);
    out = out || (scan.blanks().whole() && scan.blanks().whole());
  });
  return out;
}

/// What NCCL logged; nothing in nccl-tests' output without it.
void add_logged(const std::string& text, const std::string& file, DiffInput& out) {
  const bool has_times = !out.result.rows.empty();
  if (has_times && !holds(text, "NCCL INFO ")) return;
  Evidence evidence;
  try {
    parse_evidence(text, file, "", evidence);
  } catch (const InputError&) {
    if (!has_times || !evidence.facts.all().empty()) throw;  // else what is logged says nothing
  }
  for (const Fact& fact : evidence.facts.all()) {
    if (fact.what != std::string(fact::kVersion) + "NCCL") continue;
    out.result.provenance.nccl_version = release_of(fact.value);
  }
  out.decisions = LogDecisions(evidence.facts).take();
  if (out.decisions.all.empty() && !has_times) {
    if (!holds(text, "NCCL INFO ")) refuse_other_kind(text, file, TextKind::kResult);
    throw InputError(Place{file, 0, 0}, "says nothing of what NCCL decided");
  }
}

}  // namespace

DiffInput read_diff_input(const std::string& file, const StatedColumns& stated) {
  const std::string text = read_text_file(file);
  if (is_json_object(text)) return of_json(text, file, stated);
  DiffInput out;
  const std::string log = without_prefixes(text, file);
  const bool has_times = has_rows(log);
  if (!has_times && !holds(text, "NCCL INFO ") && kind_of(log) != TextKind::kEvidence) {
    refuse_other_kind(text, file, TextKind::kResult);
    throw InputError(Place{file, 0, 0},
                     "is no result of weft run or weft nccl, no output of nccl-tests and no log of "
                     "NCCL");
  }
  if (has_times) add_measured(log, file, stated, out);
  add_logged(text, file, out);
  return out;
}

}  // namespace weft
