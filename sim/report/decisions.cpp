#include "sim/report/decisions.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// Of one kind no more lines than these are shown; JSON has all.
constexpr std::size_t kMostLines = 6;

std::string text_of(const Decision* decision, bool with_channels) {
  if (decision == nullptr) return "";
  if (!with_channels || decision->channels == 0) return decision->text;
  return fmt::format("{}, {} channel{}", decision->text, decision->channels,
                     decision->channels == 1 ? "" : "s");
}

/// Channels count where both sides say them.
DecisionPair pair_of(const DecisionKey& key, const Decision* a, const Decision* b) {
  const bool with_channels = a == nullptr || b == nullptr || (a->channels != 0 && b->channels != 0);
  return {key, text_of(a, with_channels), text_of(b, with_channels)};
}

/// Pairs of one kind that differ alike: of a choice, sizes that follow one another.
struct Group {
  const DecisionPair* first;
  const DecisionPair* last;
  std::size_t count{1};
};

/// Of pairs of one kind.
std::vector<Group> groups_of(const std::vector<const DecisionPair*>& pairs) {
  std::vector<Group> out;
  const bool choices = pairs.front()->key.kind == kChoice;
  const DecisionPair* before = nullptr;
  for (const DecisionPair* pair : pairs) {
    const auto alike = [&](const Group& group) {
      return group.first->a == pair->a && group.first->b == pair->b &&
             (!choices || (group.last == before && group.first->key.of == pair->key.of));
    };
    if (pair->differs()) {
      const auto at = std::find_if(out.begin(), out.end(), alike);
      if (at == out.end()) {
        out.push_back({pair, pair});
      } else {
        at->last = pair;
        ++at->count;
      }
    }
    before = pair;
  }
  return out;
}

std::string shown(const std::string& text) { return text.empty() ? "(none)" : text; }

std::string line_of(const Group& group, std::size_t of_kind) {
  const auto& [key, a, b] = *group.first;
  std::string out = key.kind;
  if (!key.of.empty()) out += ' ' + key.of;
  if (key.kind == kChoice) {
    out += ", " + format_size(Bytes{key.bytes});
    if (group.count > 1) out += " to " + format_size(Bytes{group.last->key.bytes});
  } else if (group.count > 1) {
    out += fmt::format(" and {} more of {}", group.count - 1, of_kind);
  }
  return out + ": " + shown(a) + " -> " + shown(b);
}

}  // namespace

Decisions decisions_of(const RunResult& result) {
  // By operation and size, then by path.
  std::map<DecisionKey, std::map<std::string, Decision>> paths;
  for (const ResultRow& row : result.rows) {
    if (row.algo.empty()) continue;
    paths[{std::string(kChoice), row.op, row.bytes}][row.memory_path] = {row.algo + ' ' + row.proto,
                                                                         row.channels};
  }
  Decisions out;
  for (const auto& [key, by_path] : paths) {
    const auto is_first = [&first = by_path.begin()->second](const auto& path) {
      return path.second.text == first.text && path.second.channels == first.channels;
    };
    if (std::all_of(by_path.begin(), by_path.end(), is_first)) {
      out[key] = by_path.begin()->second;
      continue;
    }
    for (const auto& [path, decision] : by_path) {
      out[{key.kind, key.of + " over " + path, key.bytes}] = decision;
    }
  }
  return out;
}

DecisionsDiff diff_decisions(const Decisions& a, const Decisions& b) {
  std::set<DecisionKey> keys;
  for (const Decisions* side : {&a, &b}) {
    for (const auto& [key, decision] : *side) keys.insert(key);
  }
  std::set<std::string> kinds;
  std::set<std::string> compared;
  for (const DecisionKey& key : keys) {
    kinds.insert(key.kind);
    if (a.contains(key) && b.contains(key)) compared.insert(key.kind);
  }
  DecisionsDiff out;
  for (const DecisionKey& key : keys) {
    if (!compared.contains(key.kind)) continue;
    const auto in = [&key](const Decisions& side) {
      const auto at = side.find(key);
      return at == side.end() ? nullptr : &at->second;
    };
    out.pairs.push_back(pair_of(key, in(a), in(b)));
  }
  std::set_difference(kinds.begin(), kinds.end(), compared.begin(), compared.end(),
                      std::back_inserter(out.not_compared));
  return out;
}

std::string decisions_text(const DecisionsDiff& diff, std::string_view begin) {
  std::map<std::string, std::vector<const DecisionPair*>> kinds;
  for (const DecisionPair& pair : diff.pairs) kinds[pair.key.kind].push_back(&pair);
  std::string out;
  std::string same;
  const auto line = [&](const std::string& text) { out += fmt::format("{}{}\n", begin, text); };
  for (const auto& [kind, pairs] : kinds) {
    const std::vector<Group> groups = groups_of(pairs);
    for (std::size_t i = 0; i < std::min(groups.size(), kMostLines); ++i) {
      line(line_of(groups[i], pairs.size()));
    }
    if (groups.size() > kMostLines) {
      line(fmt::format("{}: {} more changes, in --json", kind, groups.size() - kMostLines));
    }
    if (groups.empty()) {
      same += fmt::format("{}{} ({})", same.empty() ? "" : ", ", kind, pairs.size());
    }
  }
  if (!same.empty()) line("decided alike: " + same);
  if (!diff.not_compared.empty()) {
    line(
        fmt::format("not told by both, or by other names: {}", fmt::join(diff.not_compared, ", ")));
  }
  return out;
}

Json decisions_json(const DecisionsDiff& diff) {
  Json out = Json::array();
  for (const DecisionPair& pair : diff.pairs) {
    if (!pair.differs()) continue;
    Json change = Json::object({{"kind", pair.key.kind}, {"of", pair.key.of}});
    if (pair.key.kind == kChoice) change.set("bytes", pair.key.bytes);
    change.set("a", pair.a);
    change.set("b", pair.b);
    out.push(std::move(change));
  }
  return out;
}

}  // namespace weft
