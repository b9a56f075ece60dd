#include "sim/report/decisions.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/base/quantity.hpp"
#include "sim/report/text.hpp"
#include "sim/result/fields.hpp"

namespace weft {
namespace {

/// Of one kind no more lines than these are shown; JSON has all.
constexpr std::size_t kMostLines = 6;

std::string text_of(const Decision& decision, bool with_channels) {
  if (!with_channels || decision.channels == 0) return decision.text;
  return fmt::format("{}, {} channel{}", decision.text, decision.channels,
                     decision.channels == 1 ? "" : "s");
}

/// The first words of a text.
std::string first_words(std::string_view text, std::size_t words) {
  std::size_t end = 0;
  for (; words > 0 && end < text.size(); --words) {
    end = std::min(text.find(' ', end + 1), text.size());
  }
  return std::string(text.substr(0, end));
}

std::size_t words_in(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), ' ')) + 1;
}

/// Channels count where both sides say them; of rings that are cut what both tell.
DecisionPair pair_of(const DecisionKey& key, const Decision& a, const Decision& b) {
  if (a.is_cut || b.is_cut) {
    const std::size_t words = std::min(words_in(a.text), words_in(b.text));
    return {key, first_words(a.text, words) + " ...", first_words(b.text, words) + " ..."};
  }
  const bool with_channels = a.channels != 0 && b.channels != 0;
  return {key, text_of(a, with_channels), text_of(b, with_channels)};
}

/// What a side has for a key: of a choice over one path also what holds for several.
const Decision* find(const Decisions& side, const DecisionKey& key) {
  if (const auto at = side.all.find(key); at != side.all.end()) return &at->second;
  if (key.path.empty()) return nullptr;
  const auto at = side.all.find({key.kind, key.of, key.bytes, ""});
  if (at == side.all.end()) return nullptr;
  const std::set<std::string>& paths = at->second.paths;
  return paths.empty() || paths.contains(key.path) ? &at->second : nullptr;
}

/// Pairs of one kind that differ alike: of a choice, sizes that follow one another.
struct Group {
  const DecisionPair* first;
  const DecisionPair* last;
  std::size_t count{1};
};

/// Of pairs of one kind.
std::vector<Group> groups_of(const std::vector<const DecisionPair*>& pairs) {
  using Alike = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;
  std::vector<Group> out;
  std::map<Alike, std::size_t> groups;
  const bool choices = pairs.front()->key.kind == kChoice;
  std::map<std::pair<std::string_view, std::string_view>, const DecisionPair*> before;
  for (const DecisionPair* pair : pairs) {
    const std::string_view of = choices ? std::string_view(pair->key.of) : "";
    const std::string_view path = pair->key.path;
    const DecisionPair*& last = before[{of, path}];
    if (pair->differs()) {
      const auto [at, is_new] = groups.try_emplace({of, path, pair->a, pair->b}, out.size());
      if (!is_new && (!choices || out[at->second].last == last)) {
        out[at->second].last = pair;
        ++out[at->second].count;
      } else {
        at->second = out.size();
        out.push_back({pair, pair});
      }
    }
    last = pair;
  }
  return out;
}

std::string line_of(const Group& group, std::size_t of_kind) {
  const auto& [key, a, b] = *group.first;
  std::string out = key.kind;
  if (!key.of.empty()) out += ' ' + key.of;
  if (!key.path.empty()) out += " over " + key.path;
  if (key.kind == kChoice) {
    out += ", " + format_size(Bytes{key.bytes});
    if (group.count > 1) out += " to " + format_size(Bytes{group.last->key.bytes});
  } else if (group.count > 1) {
    out += fmt::format(" and {} more of {}", group.count - 1, of_kind);
  }
  return out + ": " + or_none(a) + " -> " + or_none(b);
}

Json if_choice(const DecisionPair& pair, Json value) {
  return pair.key.kind == kChoice ? std::move(value) : Json();
}

using ChangeField = JsonField<DecisionPair>;
constexpr std::array kChangeFields{
    ChangeField{{"kind", "text", "",
                 "choice, ring, tree, channels, tuning, nodes, GPUDirect RDMA, environment, NIC "
                 "distance or connection"},
                [](const DecisionPair& p) -> Json { return p.key.kind; }},
    ChangeField{{"of", "text", "", "which of that kind: 00 of rings, an operation of choices"},
                [](const DecisionPair& p) -> Json { return p.key.of; }},
    ChangeField{{"bytes", "whole number", "of choices", "the operation's size"},
                [](const DecisionPair& p) { return if_choice(p, p.key.bytes); }},
    ChangeField{{"memory_path", "text", "of choices",
                 "the one that it holds for; empty: for all, or not said"},
                [](const DecisionPair& p) { return if_choice(p, p.key.path); }},
    ChangeField{{"a", "text", "", "A's, in NCCL's words; empty: A has none"},
                [](const DecisionPair& p) -> Json { return p.a; }},
    ChangeField{{"b", "text", "", "likewise B's"},
                [](const DecisionPair& p) -> Json { return p.b; }}};

Json changes_json(const DecisionsDiff& diff) {
  Json out = Json::array();
  for (const DecisionPair& pair : diff.pairs) {
    if (pair.differs()) out.push(object_of(pair, kChangeFields));
  }
  return out;
}

Json counts_json(const std::map<std::string, std::size_t>& by_kind) {
  Json out = Json::object();
  for (const auto& [kind, count] : by_kind) out.set(kind, static_cast<std::int64_t>(count));
  return out;
}

Json compared_json(const DecisionsDiff& diff) {
  std::map<std::string, std::size_t> by_kind;
  for (const DecisionPair& pair : diff.pairs) ++by_kind[pair.key.kind];
  return counts_json(by_kind);
}

using DecisionsField = JsonField<DecisionsDiff>;
constexpr std::array kDecisionsFields{
    DecisionsField{{"changes", "list", "", "those that differ, by kind, name and size"},
                   changes_json},
    DecisionsField{{"compared", "map by kind of whole numbers", "", "how many both sides tell"},
                   compared_json},
    DecisionsField{{"not_compared", "map by kind of whole numbers", "",
                    "how many one side alone tells, or by other names"},
                   [](const DecisionsDiff& d) { return counts_json(d.not_compared); }}};

}  // namespace

Decisions decisions_of(const RunResult& result) {
  // By operation and size, then by path.
  std::map<DecisionKey, std::map<std::string, Decision>> choices;
  for (const ResultRow& row : result.rows) {
    if (row.algo.empty()) continue;
    choices[{std::string(kChoice), row.op, row.bytes}][row.memory_path] = {
        row.algo + ' ' + row.proto, row.channels};
  }
  Decisions out;
  for (auto& [key, by_path] : choices) {
    Decision first = by_path.begin()->second;
    const auto is_first = [&first](const auto& path) {
      return path.second.text == first.text && path.second.channels == first.channels;
    };
    const bool are_alike = std::all_of(by_path.begin(), by_path.end(), is_first);
    for (const auto& [path, decision] : by_path) {
      if (!path.empty()) first.paths.insert(path);
      if (!are_alike) out.all[{key.kind, key.of, key.bytes, path}] = decision;
    }
    if (are_alike) out.all[key] = first;
  }
  return out;
}

DecisionsDiff diff_decisions(const Decisions& a, const Decisions& b) {
  std::set<DecisionKey> keys;
  for (const Decisions* side : {&a, &b}) {
    for (const auto& [key, decision] : side->all) keys.insert(key);
  }
  DecisionsDiff out;
  std::set<DecisionKey> used;  // by a pair, under this name or with its path
  for (const DecisionKey& key : keys) {
    const Decision* const of_a = find(a, key);
    const Decision* const of_b = find(b, key);
    if (of_a == nullptr || of_b == nullptr) continue;
    out.pairs.push_back(pair_of(key, *of_a, *of_b));
    used.insert(key);
    used.insert({key.kind, key.of, key.bytes, ""});
  }
  for (const DecisionKey& key : keys) {
    if (used.contains(key)) continue;
    if (!a.whole.contains(key.kind) || !b.whole.contains(key.kind)) {
      ++out.not_compared[key.kind];
      continue;
    }
    const Decision* const of_a = find(a, key);
    const Decision* const of_b = find(b, key);
    out.pairs.push_back(
        {key, of_a == nullptr ? "" : of_a->text, of_b == nullptr ? "" : of_b->text});
  }
  std::sort(out.pairs.begin(), out.pairs.end(),
            [](const DecisionPair& x, const DecisionPair& y) { return x.key < y.key; });
  return out;
}

std::string decisions_text(const DecisionsDiff& diff, std::string_view begin) {
  std::map<std::string, std::vector<const DecisionPair*>> kinds;
  for (const DecisionPair& pair : diff.pairs) kinds[pair.key.kind].push_back(&pair);
  std::string out;
  std::string same;
  const auto line = [&](const std::string& text) { out += fmt::format("{}{}\n", begin, text); };
  const auto listed = [](std::string& list, const std::string& kind, std::size_t count) {
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", kind, count);
  };
  for (const auto& [kind, pairs] : kinds) {
    const std::vector<Group> groups = groups_of(pairs);
    for (std::size_t i = 0; i < std::min(groups.size(), kMostLines); ++i) {
      line(line_of(groups[i], pairs.size()));
    }
    if (groups.size() > kMostLines) {
      line(fmt::format("{}: {} more changes, in --json", kind, groups.size() - kMostLines));
    }
    if (groups.empty()) listed(same, kind, pairs.size());
  }
  if (!same.empty()) line("decided alike: " + same);
  std::string apart;
  for (const auto& [kind, count] : diff.not_compared) listed(apart, kind, count);
  if (!apart.empty()) line("told by one side only, or by other names: " + apart);
  return out;
}

Json decisions_json(const DecisionsDiff& diff) { return object_of(diff, kDecisionsFields); }

std::vector<FormatSection> decisions_format() {
  return {{"decisions", "NCCL's decisions.", keys_of(kDecisionsFields)},
          {"decisions.changes[]", "One that differs.", keys_of(kChangeFields)}};
}

}  // namespace weft
