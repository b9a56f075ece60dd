#include "sim/result/perftest_ends.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace weft {
namespace {

/// "0x6d058e" behind such a word; 0 if it is none, or above 24 bits.
std::uint64_t number_behind(const Words& words, std::string_view name) {
  constexpr std::string_view kHex = "0x";
  constexpr std::uint64_t kMost = (1U << 24) - 1;
  const auto at = std::find(words.begin(), words.end(), name);
  if (words.end() - at < 2 || !(at + 1)->starts_with(kHex)) return 0;
  const std::string_view digits = (at + 1)->substr(kHex.size());
  std::uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, number, 16);
  return error == std::errc{} && rest == end && number <= kMost ? number : 0;
}

}  // namespace

void PerftestEnds::begin(std::size_t rows) {
  const bool is_begun = !tests_.empty() && tests_.back().first == rows &&
                        tests_.back().local.empty() && tests_.back().remote.empty();
  if (!is_begun) tests_.push_back({.first = rows});
}

void PerftestEnds::read(const Words& words) {
  if (tests_.empty() || words.size() < 2) return;
  Test& test = tests_.back();
  if (words[0] == "TX" && words[1] == "depth") test.is_client = true;
  if (words[1] != "address:" || (words[0] != "local" && words[0] != "remote")) return;
  const std::uint64_t qpn = number_behind(words, "QPN");
  const std::uint64_t psn = number_behind(words, "PSN");
  const Address address = qpn == 0 || psn == 0 ? 0 : qpn << 24 | psn;
  (words[0] == "local" ? test.local : test.remote).push_back(address);
}

void PerftestEnds::table() {
  if (!tests_.empty()) ++tests_.back().tables;
}

std::size_t PerftestEnds::end_of(std::size_t test, const MeasuredTable& table) const {
  return test + 1 < tests_.size() ? tests_[test + 1].first : table.rows.size();
}

std::size_t PerftestEnds::rows_of(std::size_t test, const MeasuredTable& table) const {
  return end_of(test, table) - tests_[test].first;
}

std::set<std::int64_t> PerftestEnds::sizes_of(std::size_t test, const MeasuredTable& table) const {
  std::set<std::int64_t> out;
  for (std::size_t row = tests_[test].first; row < end_of(test, table); ++row) {
    out.insert(table.rows[row].bytes);
  }
  return out;
}

/// Whether both ends printed their addresses into one head.
bool PerftestEnds::are_both_ends(const Test& test) {
  if (test.local.size() < 2 || test.local.size() != test.remote.size()) return false;
  std::vector<Address> local = test.local;
  std::vector<Address> remote = test.remote;
  std::sort(local.begin(), local.end());
  std::sort(remote.begin(), remote.end());
  const bool are_known = local.front() != 0;
  const bool are_apart = std::adjacent_find(local.begin(), local.end()) == local.end();
  return are_known && are_apart && local == remote;
}

/// Tests of which one's addresses are the other's the other way around, each in one pair.
std::vector<PerftestEnds::Pair> PerftestEnds::pairs() const {
  std::vector<Pair> out;
  std::map<std::pair<Address, Address>, std::size_t> open;  // by local and remote address
  for (std::size_t t = 0; t < tests_.size(); ++t) {
    const Test& test = tests_[t];
    if (test.local.empty() || test.local.size() != test.remote.size()) continue;
    const Address local = test.local.front();
    const Address remote = test.remote.front();
    if (local == 0 || remote == 0 || local == remote) continue;
    const auto other = open.find({remote, local});
    if (other != open.end() && tests_[other->second].local == test.remote &&
        tests_[other->second].remote == test.local) {
      out.emplace_back(other->second, t);
      open.erase(other);
    } else {
      open.insert_or_assign({local, remote}, t);
    }
  }
  return out;
}

/// Both of one test, of memory of one kind; what is of another is noted.
bool PerftestEnds::are_alike(Pair pair, MeasuredTable& table) const {
  const MeasuredRow& above = table.rows[tests_[pair.first].first];
  const MeasuredRow& below = table.rows[tests_[pair.second].first];
  if (above.op != below.op) return false;
  if (above.memory_path == below.memory_path) return true;
  table.notes.push_back(fmt::format(
      "{}: the other end of the run at line {}, whose memory is of another kind ({}, not {}): "
      "neither is left out",
      Place{table.file, below.line, 0}.text(), above.line, below.memory_path, above.memory_path));
  return false;
}

/// The end whose rows stay, then the other.
PerftestEnds::Pair PerftestEnds::kept_first(Pair pair, const MeasuredTable& table) const {
  const auto [above, below] = pair;
  const std::size_t sizes_above = sizes_of(above, table).size();
  const std::size_t sizes_below = sizes_of(below, table).size();
  const bool is_client_below = tests_[below].is_client && !tests_[above].is_client;
  const bool is_below_kept =
      sizes_below > sizes_above || (sizes_below == sizes_above && is_client_below);
  return is_below_kept ? Pair{below, above} : pair;
}

void PerftestEnds::take_other_end(Pair kept_and_other, MeasuredTable& table,
                                  std::vector<bool>& drop) const {
  const auto [kept, other] = kept_and_other;
  const std::set<std::int64_t> known = sizes_of(kept, table);
  const MeasuredRow* first_out = nullptr;
  for (std::size_t row = tests_[other].first; row < end_of(other, table); ++row) {
    if (!known.contains(table.rows[row].bytes)) continue;
    drop[row] = true;
    if (first_out == nullptr) first_out = &table.rows[row];
  }
  if (first_out == nullptr) return;
  table.notes.push_back(fmt::format(
      "{}: the other end of the run at line {}, whose address it has as its remote "
      "one: its rows of sizes that are there are left out",
      Place{table.file, first_out->line, 0}.text(), table.rows[tests_[kept].first].line));
}

void PerftestEnds::take_half(std::size_t test, MeasuredTable& table,
                             std::vector<bool>& drop) const {
  if (tests_[test].tables < 2) return;
  std::map<std::int64_t, std::vector<std::size_t>> rows;  // by size
  for (std::size_t row = tests_[test].first; row < end_of(test, table); ++row) {
    rows[table.rows[row].bytes].push_back(row);
  }
  std::size_t first_out = table.rows.size();
  for (const auto& [bytes, alike] : rows) {
    if (alike.size() != 2) continue;
    drop[alike.back()] = true;
    first_out = std::min(first_out, alike.back());
  }
  if (first_out == table.rows.size()) return;
  table.notes.push_back(fmt::format(
      "{}: both ends of this run printed here: of sizes that stand twice this and the other second "
      "rows are left out",
      Place{table.file, table.rows[first_out].line, 0}.text()));
}

void PerftestEnds::take_out(MeasuredTable& table) const {
  std::vector<bool> drop(table.rows.size());
  for (std::size_t t = 0; t < tests_.size(); ++t) {
    if (are_both_ends(tests_[t])) take_half(t, table, drop);
  }
  for (const auto& [above, below] : pairs()) {
    const bool has_above = rows_of(above, table) > 0;
    if (has_above && rows_of(below, table) > 0) {
      const Pair pair{above, below};
      if (are_alike(pair, table)) take_other_end(kept_first(pair, table), table, drop);
    } else {
      take_half(has_above ? above : below, table, drop);
    }
  }
  std::vector<MeasuredRow> left;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (!drop[row]) left.push_back(std::move(table.rows[row]));
  }
  table.rows = std::move(left);
}

}  // namespace weft
