#include "tools/diff_input.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "models/nccl/decide/tuning_constants.hpp"
#include "sim/base/error.hpp"
#include "sim/input/evidence/evidence.hpp"
#include "sim/input/evidence/scan.hpp"
#include "sim/io/file.hpp"
#include "sim/io/text_kind.hpp"
#include "sim/result/log_text.hpp"
#include "sim/result/nccl_tests.hpp"

namespace weft {
namespace {

/// As operations of results are called: "AllReduce" is "allreduce".
std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// "Tree" of "TREE", "tree" and, as logs before 2.24 have it, "0".
template <class List, class Name>
std::string name_in(const List& list, const Name& name_of, std::string_view word) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string_view name = name_of(list[i]);
    if (lower(name) == lower(word) || std::to_string(i) == word) return std::string(name);
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
  return DecisionKey{std::string(kChoice), op.empty() ? "any operation" : lower(op), *bytes};
}

/// The name behind what facts call a kind: "00" of "ring 00".
std::string behind(std::string_view subject, std::string_view kind) {
  Scan scan(subject);
  scan.skip(kind);
  return std::string(scan.blanks().rest());
}

/// NCCL's log, of one job: what several hosts say of one thing counts once, in their words' order.
Decisions decisions_of_log(const Facts& facts) {
  std::map<DecisionKey, std::set<std::string>> said;
  Decisions out;
  for (const Fact& fact : facts.all()) {
    const std::string_view what = fact.what;
    const auto say = [&](std::string_view kind, std::string of) {
      said[{std::string(kind), std::move(of), 0}].insert(fact.value);
    };
    if (what == std::string(fact::kVersion) + "NCCL") {
      say("NCCL", "");
    } else if (what.starts_with(fact::kEnv)) {
      say("environment", std::string(what.substr(fact::kEnv.size())));
    } else if (what == fact::kNodes) {
      say("nodes", "");
    } else if (what == fact::kGdr) {
      say("GPUDirect RDMA", fact.subject);
    } else if (what == std::string(fact::kLog) + "GDR") {
      // "GPU/0-18000 / HCA 0 (distance 4 <= 4), read 1": of what the NIC reads, else writes.
      const std::string pair = behind(fact.subject, "GDR for");
      const bool reads = holds(pair, "read 1");
      said[{"GPUDirect RDMA", std::string(Scan(pair).until(" (distance")), 0}].insert(
          fact.value != "on" ? fact.value : (reads ? "on for reads" : "on for writes"));
    } else if (what == std::string(fact::kLog) + "channels") {
      say("channels", "");
    } else if (what == std::string(fact::kLog) + "ring") {
      say("ring", behind(fact.subject, "ring"));
    } else if (what == std::string(fact::kLog) + "tree") {
      say("tree", behind(fact.subject, "tree"));
    } else if (what == std::string(fact::kLog) + "via") {
      say("connection", behind(fact.subject, "connection"));
    } else if (what == std::string(fact::kLog) + "choice") {
      const std::optional<DecisionKey> key = choice_key(behind(fact.subject, "choice"));
      const std::optional<Decision> choice = choice_in(fact.value);
      if (key && choice) out.emplace(*key, *choice);
    }
  }
  for (const auto& [key, values] : said) out[key] = {fmt::format("{}", fmt::join(values, ", ")), 0};
  return out;
}

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

/// What `weft nccl --json` writes, or what was captured in its form.
Decisions decisions_of_json(const Json& json) {
  Decisions out;
  const auto add = [&out](std::string_view kind, std::string of, std::string text) {
    out[{std::string(kind), std::move(of), 0}] = {std::move(text), 0};
  };
  add("NCCL", "", json.at("nccl").as_string());
  add("nodes", "", std::to_string(json.at("nodes").as_integer()));
  const Json& channels = json.at("channels");
  add("channels", "",
      fmt::format("{} coll channels, {} nvls channels, {} p2p channels, {} p2p channels per peer",
                  channels.at("coll").as_integer(), channels.at("nvls").as_integer(),
                  channels.at("p2p").as_integer(), channels.at("p2p_per_peer").as_integer()));
  for (const auto& [name, gdr] : json.at("gdr").members()) {
    add("GPUDirect RDMA", name, gdr.at("enabled").as_bool() ? "on" : "off");
  }
  for (const auto& [name, ring] : json.at("rings").members()) add("ring", name, numbers(ring, " "));
  for (const auto& [channel, tree] : json.at("trees").members()) {
    for (const auto& [rank, node] : tree.members()) {
      add("tree", fmt::format("{:0>2} of rank {}", channel, rank),
          fmt::format("down {}, up {}", children(node.at("down")), node.at("up").as_integer()));
    }
  }
  for (const Json& choice : json.at("choice").items()) {
    out[{std::string(kChoice), lower(choice.at("op").as_string()),
         choice.at("bytes").as_integer()}] =
        choice_of(choice.at("algo").as_string(), choice.at("proto").as_string(),
                  static_cast<unsigned>(
                      std::clamp<std::int64_t>(choice.at("channels").as_integer(), 0, 1024)));
  }
  return out;
}

/// nccl-tests' rows. What joins the GPUs is not asked: both sides are held against each other only.
std::vector<ResultRow> measured_rows(const std::string& text, const std::string& file) {
  std::vector<ResultRow> out;
  std::set<std::pair<std::string, std::int64_t>> seen;
  for (const MeasuredRow& row : parse_nccl_tests(text, file, {{"transport", "nvlink"}})) {
    if (!seen.emplace(row.op, row.bytes).second) {
      throw InputError(
          Place{file, row.line, 0},
          fmt::format("{} of {} B is given twice; a side is one run", row.op, row.bytes));
    }
    ResultRow of_row;
    of_row.op = row.op;
    of_row.bytes = row.bytes;
    of_row.ranks = static_cast<std::uint32_t>(row.ranks);
    of_row.nodes = static_cast<std::uint32_t>(row.hosts);
    of_row.time_us = row.us;
    of_row.algbw_gb_per_s = row.algbw_gb_per_s;
    of_row.busbw_gb_per_s = row.busbw_gb_per_s;
    out.push_back(std::move(of_row));
  }
  return out;
}

DiffInput of_json(const std::string& text, const std::string& file) {
  DiffInput out;
  if (kind_of(text) == TextKind::kMeasured) {
    out.result.rows = measured_rows(text, file);
    return out;
  }
  const Json json = Json::parse(text, file);
  try {
    const Json* schema = json.find("schema");
    if (schema != nullptr && schema->is_string() && schema->as_string() == "weft.nccl/1") {
      out.decisions = decisions_of_json(json);
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

/// What NCCL logged; nothing in nccl-tests' output without it.
Decisions logged(const std::string& text, const std::string& file, bool has_rows) {
  Evidence evidence;
  try {
    parse_evidence(text, file, "", evidence);
  } catch (const InputError&) {
    if (!has_rows) throw;
    return {};
  }
  Decisions out = decisions_of_log(evidence.facts);
  if (out.empty() && !has_rows) {
    throw InputError(Place{file, 0, 0}, "says nothing of what NCCL decided");
  }
  return out;
}

}  // namespace

DiffInput read_diff_input(const std::string& file) {
  const std::string text = read_text_file(file);
  if (is_json_object(text)) return of_json(text, file);
  DiffInput out;
  const bool has_rows = is_nccl_tests(text);
  if (!has_rows && kind_of(text) != TextKind::kEvidence) {
    refuse_other_kind(text, file, TextKind::kResult);
  }
  if (has_rows) out.result.rows = measured_rows(text, file);
  out.decisions = logged(text, file, has_rows);
  return out;
}

}  // namespace weft
