#include "sim/result/measured.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/lower_case.hpp"
#include "sim/base/operation.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/random.hpp"
#include "sim/io/csv.hpp"
#include "sim/io/file.hpp"
#include "sim/io/text_kind.hpp"
#include "sim/io/tool_text.hpp"
#include "sim/result/log_text.hpp"
#include "sim/result/measured_env.hpp"
#include "sim/result/nccl_tests.hpp"
#include "sim/result/nvbandwidth_log.hpp"
#include "sim/result/perftest_log.hpp"

namespace weft {
namespace {

constexpr std::int64_t kMostTableBytes = 16LL << 20;
constexpr std::size_t kMostLineBytes = 4096;
constexpr double kShortestTime = 1e-6;  // weft's clock ticks in picoseconds
constexpr double kLargestNumber = 1e12;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

constexpr std::array<std::string_view, 4> kTransports{"nvlink", "shm", "net", "copy"};
constexpr std::array<std::string_view, 4> kMemoryPaths{"gdr", "host-staged", "nccl", "host"};
constexpr auto kOps = [] {
  std::array<std::string_view, kOpNames.size() + kPerftestOps.size() + kCopyOps.size() + 1> all;
  auto to = std::copy(kOpNames.begin(), kOpNames.end(), all.begin());
  to = std::copy(kPerftestOps.begin(), kPerftestOps.end(), to);
  to = std::copy(kCopyOps.begin(), kCopyOps.end(), to);
  *to = kOtherOp;
  return all;
}();
constexpr std::array<std::string_view, 8> kAlgos{
    "auto", "Ring", "Tree", "NVLS", "NVLSTree", "CollNetDirect", "CollNetChain", "PAT"};
constexpr std::array<std::string_view, 4> kProtos{"auto", "Simple", "LL", "LL128"};
constexpr std::array<std::string_view, 3> kLaunches{"back-to-back", "single", "graph"};
constexpr std::array<std::string_view, 2> kUses{"yes", "taught"};

constexpr std::string_view kWord = "one of";
constexpr std::string_view kWhole = "whole number";
constexpr std::string_view kText = "text";
constexpr std::string_view kNumber = "number, 0 to 1e12";
constexpr std::string_view kTime = "number, 1e-6 to 1e12";

constexpr std::array kColumns{
    MeasuredColumn{{"transport", kWord, kRequired,
                    "what joined the GPUs: NVLink, the host's shared memory (NCCL_P2P_DISABLE=1) "
                    "or NICs; copy: of nvbandwidth",
                    kTransports},
                   &MeasuredRow::transport},
    MeasuredColumn{
        {"memory_path", kWord, "empty; needed with `net`",
         "how NICs reached GPU memory: all by GPUDirect RDMA, all by pinned host buffers, or as "
         "NCCL decides (nccl); of perftest the memory at both ends, gdr: the GPUs', host: the "
         "hosts'",
         kMemoryPaths},
        &MeasuredRow::memory_path},
    MeasuredColumn{{"hosts", kWhole, "1", "hosts that took part", {}, 1, 1 << 20},
                   &MeasuredRow::hosts},
    MeasuredColumn{
        {"ranks", kWhole, kRequired, "GPUs of all hosts together", {}, 1, kMostToolRanks},
        &MeasuredRow::ranks},
    MeasuredColumn{
        {"nics_per_host", kWhole, "0", "NICs of a host that were used; 0: all it has", {}, 0, 1024},
        &MeasuredRow::nics_per_host},
    MeasuredColumn{{"nic_gbps", kNumber, "0", "line rate of a NIC, Gb/s; 0: the machine's"},
                   &MeasuredRow::nic_gbps},
    MeasuredColumn{{"nic_latency_us", kNumber, "0",
                    "from NIC to NIC, one way, microseconds; 0: the machine's"},
                   &MeasuredRow::nic_latency_us},
    MeasuredColumn{{"algo", kWord, "auto", "NCCL_ALGO; auto: NCCL's choice", kAlgos},
                   &MeasuredRow::algo},
    MeasuredColumn{{"proto", kWord, "auto", "NCCL_PROTO; auto: NCCL's choice", kProtos},
                   &MeasuredRow::proto},
    MeasuredColumn{{"channels",
                    kWhole,
                    "0",
                    "NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS; 0: NCCL's choice",
                    {},
                    0,
                    64},
                   &MeasuredRow::channels},
    MeasuredColumn{{"op", kWord, kRequired,
                    "the operation; of perftest its program, of nvbandwidth its test, other: one "
                    "that weft has no model of (`id` says which)",
                    kOps},
                   &MeasuredRow::op},
    MeasuredColumn{{"bytes",
                    kWhole,
                    kRequired,
                    "size as nccl-tests counts it: of all-gather all ranks' parts together, of "
                    "reduce-scatter a rank's input, of all-to-all a rank's send buffer, of "
                    "sendrecv what each rank sends",
                    {},
                    1,
                    1LL << 42},
                   &MeasuredRow::bytes,
                   false},
    MeasuredColumn{{"us", kTime, "from algbw or busbw", "time of one operation, microseconds"},
                   &MeasuredRow::us,
                   false},
    MeasuredColumn{{"algbw_GBps", kNumber, "bytes / time", "GB/s = 1e9 bytes/s"},
                   &MeasuredRow::algbw_gb_per_s,
                   false},
    MeasuredColumn{{"busbw_GBps", kNumber, "algbw x nccl-tests' factor", "GB/s"},
                   &MeasuredRow::busbw_gb_per_s,
                   false},
    MeasuredColumn{{"launch", kWord, "empty",
                    "many launches and one wait as in nccl-tests, a wait after each, or a CUDA "
                    "graph",
                    kLaunches},
                   &MeasuredRow::launch},
    MeasuredColumn{{"machine", kText, "that of --machine",
                    "the row's machine: a topology file, from the table's folder"},
                   &MeasuredRow::machine},
    MeasuredColumn{{"set", kText, "empty",
                    "what the machine has otherwise: KEY=VALUE as for --set, separated by ';'"},
                   &MeasuredRow::set},
    MeasuredColumn{
        {"env", kText, "empty",
         "NCCL's variables, VARIABLE=VALUE or VARIABLE='VALUE', separated by ';'; NCCL_ALGO, "
         "NCCL_PROTO, NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS (of old NCCL_MIN_NRINGS and "
         "NCCL_MAX_NRINGS), NCCL_P2P_DISABLE and NCCL_P2P_LEVEL say no other than the row's "
         "columns"},
        &MeasuredRow::env},
    MeasuredColumn{
        {"nccl", kText, "that of --nccl-version", "the release whose decisions to follow"},
        &MeasuredRow::nccl},
    MeasuredColumn{{"qps", kWhole, "1", "of perftest: queue pairs (-q)", {}, 1, 1 << 14},
                   &MeasuredRow::qps},
    MeasuredColumn{
        {"tx_depth", kWhole, "128", "of perftest: requests under way (-t)", {}, 1, 1 << 16},
        &MeasuredRow::tx_depth},
    MeasuredColumn{{"cq_mod",
                    kWhole,
                    "0",
                    "of perftest: requests a completion (-Q); 0: its own choice",
                    {},
                    0,
                    1 << 16},
                   &MeasuredRow::cq_mod},
    MeasuredColumn{{"post_list",
                    kWhole,
                    "1",
                    "of perftest: requests posted with one doorbell (-l)",
                    {},
                    1,
                    1 << 16},
                   &MeasuredRow::post_list},
    MeasuredColumn{
        {"row", kWhole, "0", "of nvbandwidth's matrix", {}, 0, 1023}, &MeasuredRow::row, false},
    MeasuredColumn{{"column", kWhole, "0", "likewise", {}, 0, 1023}, &MeasuredRow::column, false},
    MeasuredColumn{{"run", kText, "empty",
                    "which of several runs of the same kind: rows of one run err together; of a "
                    "verbs trace its file"},
                   &MeasuredRow::run},
    MeasuredColumn{
        {"use", kWord, "yes", "taught: a parameter's value was made from this row", kUses},
        &MeasuredRow::use,
        false},
    MeasuredColumn{{"id", kText, "empty", "the row's name"}, &MeasuredRow::id, false},
    MeasuredColumn{{"source", kText, "empty", "who published it"}, &MeasuredRow::source, false}};

std::vector<std::string> column_names() {
  std::vector<std::string> names;
  for (const MeasuredColumn& column : kColumns) names.emplace_back(column.key.name);
  return names;
}

const MeasuredColumn* find_column(std::string_view name) {
  const auto* const at =
      std::find_if(kColumns.begin(), kColumns.end(),
                   [&](const MeasuredColumn& column) { return column.key.name == name; });
  return at == kColumns.end() ? nullptr : at;
}

std::string unknown_column(const std::string& name) {
  const std::vector<std::string> names = column_names();
  return fmt::format("'{}': unknown column{}; known: {}", name, did_you_mean(name, names),
                     known_names(names, names.size()));
}

std::string not_allowed(const MeasuredColumn& column, const std::string& cell) {
  return fmt::format("'{}' is not allowed; write {}", cell, form_text(column.key));
}

/// The column's word that a cell spells; of columns without words the cell. Throws InputError
/// without a place; so do those that follow.
std::string word_of(const MeasuredColumn& column, const std::string& cell) {
  const auto& words = column.key.words;
  if (words.empty() || std::find(words.begin(), words.end(), cell) != words.end()) return cell;
  const auto at = std::find_if(words.begin(), words.end(),
                               [&](std::string_view word) { return is_same_word(word, cell); });
  if (at == words.end()) throw InputError(not_allowed(column, cell));
  return std::string(*at);
}

std::int64_t whole_of(const MeasuredColumn& column, const std::string& cell) {
  std::int64_t number{};
  const char* const end = cell.data() + cell.size();
  const auto [rest, error] = std::from_chars(cell.data(), end, number);
  if (error != std::errc{} || rest != end || number < column.key.min || number > column.key.max) {
    throw InputError(not_allowed(column, cell));
  }
  return number;
}

double number_of(const MeasuredColumn& column, const std::string& cell) {
  const std::optional<double> number = parse_number(cell);
  const double smallest = column.key.form == kTime ? kShortestTime : 0;
  if (!number || *number < smallest || *number > kLargestNumber) {
    throw InputError(not_allowed(column, cell));
  }
  return *number;
}

/// An empty cell is a column left out.
void read_cell(const MeasuredColumn& column, const std::string& cell, MeasuredRow& row) {
  if (cell.empty()) {
    if (column.key.fallback == kRequired)
      throw InputError("is empty; write " + form_text(column.key));
    return;
  }
  if (const auto* const word = std::get_if<std::string MeasuredRow::*>(&column.member)) {
    row.*(*word) = word_of(column, cell);
  } else if (const auto* const whole = std::get_if<std::int64_t MeasuredRow::*>(&column.member)) {
    row.*(*whole) = whole_of(column, cell);
  } else {
    row.*std::get<double MeasuredRow::*>(column.member) = number_of(column, cell);
  }
}

/// What cells say together; `name` becomes the column to blame.
void check_row(const MeasuredRow& row, std::string_view& name) {
  name = "ranks";
  if (row.ranks % row.hosts != 0 && row.unlike.empty()) {
    throw InputError(fmt::format("{} is not a multiple of hosts, {}", row.ranks, row.hosts));
  }
  name = "memory_path";
  if (row.transport == "net" && row.memory_path.empty()) {
    throw InputError("is empty; with net write gdr, host-staged or nccl");
  }
  if (row.transport != "net" && !row.memory_path.empty()) {
    throw InputError("only rows of net have one; leave it empty");
  }
  const bool of_tool = is_perftest(row) || row.op == kOtherOp;
  if (row.memory_path == "host" && !of_tool) {
    throw InputError("host is that of perftest; write gdr, host-staged or nccl");
  }
  if (is_perftest(row) && row.memory_path != "gdr" && row.memory_path != "host") {
    throw InputError("perftest's memory is gdr or host");
  }
  name = "transport";
  if (is_perftest(row) && (row.transport != "net" || row.hosts != 2 || row.ranks != 2)) {
    throw InputError("perftest's is net, between 2 hosts and 2 ranks");
  }
  if (is_copy(row) ? row.transport != "copy" : row.transport == "copy" && row.op != kOtherOp) {
    throw InputError("copy is that of nvbandwidth's tests, and only theirs");
  }
  name = "env";
  check_env(row);
}

/// Of algorithm bandwidth; 1 of what is no collective.
double factor_of(const MeasuredRow& row) {
  if (is_perftest(row) || is_copy(row) || row.op == kOtherOp) return 1;
  return busbw_factor(parse_op(row.op), static_cast<std::uint32_t>(row.ranks));
}

/// Two columns that say the same of a row; roughly, since logs round and may time otherwise.
void check_same(std::string_view column, double said, double by_others) {
  constexpr double kFactor = 1.5;
  constexpr double kRounded = 0.02;  // GB/s, as nccl-tests prints small ones
  if (said == 0 || by_others == 0 || std::abs(said - by_others) <= kRounded) return;
  if (said <= by_others * kFactor && said * kFactor >= by_others) return;
  throw InputError(fmt::format("{} is {}, but by the row's other columns {}", column,
                               format_number(said), format_number(by_others)));
}

/// Of time and bandwidths what the row leaves out.
void complete(MeasuredRow& row) {
  const double factor = factor_of(row);
  const double bytes = static_cast<double>(row.bytes);
  if (row.us == 0) {
    const double algbw = row.algbw_gb_per_s > 0 ? row.algbw_gb_per_s : row.busbw_gb_per_s / factor;
    row.us = bytes / algbw / 1e3;  // without any of them, or busbw of one rank: not a time
    if (!(row.us >= kShortestTime && row.us <= kLargestNumber)) {
      throw InputError("no time, and no bandwidth that tells it; write " + std::string(kTime));
    }
  }
  check_same("algbw_GBps", row.algbw_gb_per_s, bytes / row.us / 1e3);
  if (row.algbw_gb_per_s == 0) row.algbw_gb_per_s = bytes / row.us / 1e3;
  check_same("busbw_GBps", row.busbw_gb_per_s, row.algbw_gb_per_s * factor);
  if (row.busbw_gb_per_s == 0) row.busbw_gb_per_s = row.algbw_gb_per_s * factor;
}

/// Reads a table line by line.
class TableReader {
 public:
  TableReader(std::string_view text, const std::string& file, const StatedColumns& stated)
      : text_{text}, file_{file}, stated_{stated} {
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  }

  std::vector<MeasuredRow> rows() {
    if (!next_line()) throw InputError(Place{file_, 0, 0}, "is empty");
    read_header();
    std::vector<MeasuredRow> rows;
    while (next_line()) {
      if (line_.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      if (rows.size() == kMostMeasuredRows)
        fail(0, fmt::format("more than {} rows; split the table", kMostMeasuredRows));
      rows.push_back(read_row());
    }
    if (rows.empty()) throw InputError(Place{file_, 0, 0}, "has no rows");
    return rows;
  }

 private:
  [[noreturn]] void fail_at(std::size_t byte, const std::string& why) const {
    throw InputError(Place{file_, number_, static_cast<int>(byte) + 1}, why);
  }

  [[noreturn]] void fail(std::size_t cell, const std::string& why) const {
    throw InputError(Place{file_, number_, static_cast<int>(csv_cell_column(line_, cell))}, why);
  }

  bool next_line() {
    if (text_.empty()) return false;
    const std::size_t end = std::min(text_.find('\n'), text_.size());
    line_ = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    ++number_;
    if (line_.size() > kMostLineBytes) {
      fail_at(kMostLineBytes, fmt::format("more than {} bytes in a line", kMostLineBytes));
    }
    // It would end the message in which its cell stands.
    if (const std::size_t nul = line_.find('\0'); nul != std::string_view::npos) {
      fail_at(nul, "a NUL byte; a table is text");
    }
    cells_ = csv_cells(line_, {file_, number_, 0});
    return true;
  }

  void read_header() {
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const MeasuredColumn* const column = find_column(cells_[i]);
      if (column == nullptr) fail(i, unknown_column(cells_[i]));
      if (std::find(columns_.begin(), columns_.end(), column) != columns_.end()) {
        fail(i, cells_[i] + ": column given twice");
      }
      columns_.push_back(column);
    }
    for (const MeasuredColumn& column : kColumns) {
      const std::string name(column.key.name);
      if (column.key.fallback != kRequired || stated_.contains(name)) continue;
      if (cell_of(name) < columns_.size()) continue;
      fail(0, fmt::format("column '{}' is missing", column.key.name));
    }
  }

  /// Where a column's cells stand; the number of columns if there is none.
  std::size_t cell_of(std::string_view name) const {
    const auto at = std::find(columns_.begin(), columns_.end(), find_column(name));
    return static_cast<std::size_t>(at - columns_.begin());
  }

  MeasuredRow read_row() const {
    if (cells_.size() != columns_.size()) {
      fail(0, fmt::format("{} cells, not {}", cells_.size(), columns_.size()));
    }
    MeasuredRow row;
    row.line = number_;
    std::string_view name;
    try {
      for (const auto& [column, cell] : stated_) {
        name = column;
        read_cell(measured_column(column), cell, row);
      }
      for (std::size_t i = 0; i < cells_.size(); ++i) {
        name = columns_[i]->key.name;
        const auto stated = stated_.find(std::string(name));
        if (stated != stated_.end() && !cells_[i].empty()) {
          check_agrees(word_of(*columns_[i], cells_[i]), stated->second);
        }
        read_cell(*columns_[i], cells_[i], row);
      }
      check_row(row, name);
      name = "us";
      complete(row);
    } catch (const InputError& e) {
      const std::size_t cell = cell_of(name);
      fail(cell < columns_.size() ? cell : 0, std::string(name) + ": " + e.what());
    }
    return row;
  }

  std::string_view text_;
  const std::string& file_;
  const StatedColumns& stated_;
  std::string_view line_;
  int number_{0};
  std::vector<std::string> cells_;
  std::vector<const MeasuredColumn*> columns_;  ///< the file's, in its order
};

/// What other tools print of a machine is no table, nor is text whose first line has no comma: what
/// a tool printed, without what tells which. `log`: the text without prefixes.
void refuse_no_table(std::string_view text, std::string_view log, const std::string& file) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  const std::string_view line = trimmed(text.substr(0, text.find_first_of("\r\n")));
  const bool is_table = find_column(line.substr(0, line.find(','))) != nullptr;
  if (!is_table && kind_of(log) == TextKind::kEvidence) {
    throw InputError(file +
                     ": is another tool's output without rows of nccl-tests, perftest or "
                     "nvbandwidth; " +
                     std::string(readers_of(TextKind::kEvidence)));
  }
  const std::string why = is_table ? "" : ended_early(log);
  if (!why.empty()) throw InputError(file + ": " + why);
  if (line.empty() || line.find(',') != std::string_view::npos) return;
  if (line.starts_with(kByteOrderMark) || find_column(line) != nullptr) return;
  if (line.find_first_of(";\t") != std::string_view::npos &&
      find_column(line.substr(0, line.find_first_of(";\t"))) != nullptr) {
    throw InputError(file + ": separate columns by commas");
  }
  throw InputError(
      file +
      ": is neither a table (CSV, scenarios/README.md) nor what nccl-tests, perftest or "
      "nvbandwidth print; their rows need the line of column names above them, as printed");
}

}  // namespace

std::string MeasuredColumn::text(const MeasuredRow& row) const {
  if (const auto* const word = std::get_if<std::string MeasuredRow::*>(&member))
    return row.*(*word);
  if (const auto* const whole = std::get_if<std::int64_t MeasuredRow::*>(&member)) {
    return std::to_string(row.*(*whole));
  }
  return format_number(row.*std::get<double MeasuredRow::*>(member));
}

Json MeasuredColumn::json(const MeasuredRow& row) const {
  return std::visit([&](const auto at) { return Json(row.*at); }, member);
}

bool is_perftest(const MeasuredRow& row) {
  return std::find(kPerftestOps.begin(), kPerftestOps.end(), row.op) != kPerftestOps.end();
}

bool is_copy(const MeasuredRow& row) {
  return std::find(kCopyOps.begin(), kCopyOps.end(), row.op) != kCopyOps.end();
}

Place MeasuredTable::run_place(const MeasuredRow& row) const {
  const auto next = std::upper_bound(runs.begin(), runs.end(), row.line);
  return {file, next == runs.begin() ? 0 : *(next - 1), 0};
}

std::span<const MeasuredColumn> measured_columns() { return kColumns; }

const MeasuredColumn& measured_column(std::string_view name) {
  const MeasuredColumn* const column = find_column(name);
  if (column == nullptr) throw InputError(unknown_column(std::string(name)));
  return *column;
}

std::string configuration_of(const MeasuredRow& row) {
  std::string out;
  for (const MeasuredColumn& column : kColumns) {
    if (column.is_configuration) out += column.text(row) + ',';
  }
  return out;
}

std::string run_of(const MeasuredRow& row) {
  return row.run.empty() ? configuration_of(row) : "run " + row.run;
}

StatedColumns parse_stated(const std::string& text) {
  StatedColumns out;
  if (text.empty()) return out;
  for (const std::string& part : comma_separated(text)) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) throw InputError("--as '" + part + "': write COLUMN=VALUE");
    const std::string name = part.substr(0, equals);
    std::string cell = part.substr(equals + 1);
    MeasuredRow any;
    try {
      const MeasuredColumn& column = measured_column(name);
      read_cell(column, cell, any);
      if (!cell.empty()) cell = word_of(column, cell);
    } catch (const InputError& e) {
      throw InputError("--as: " + std::string(e.what()));
    }
    if (!out.emplace(name, std::move(cell)).second) {
      throw InputError("--as: '" + name + "': column given twice");
    }
  }
  return out;
}

void check_agrees(const std::string& in_file, const std::string& stated) {
  if (in_file != stated) throw InputError(in_file + " in the file, " + stated + " by --as");
}

MeasuredRow measured_row(const StatedColumns& cells, const std::string& unlike) {
  MeasuredRow row;
  row.unlike = unlike;
  std::string_view name;
  try {
    for (const auto& [column, cell] : cells) {
      name = column;
      read_cell(measured_column(column), cell, row);
    }
    for (const MeasuredColumn& column : kColumns) {
      name = column.key.name;
      if (column.key.fallback == kRequired && !cells.contains(std::string(name))) {
        throw InputError("is not stated; --as " + std::string(name) +
                         "=VALUE says it: " + form_text(column.key));
      }
    }
    check_row(row, name);
  } catch (const InputError& e) {
    throw InputError(std::string(name) + ": " + e.what());
  }
  complete(row);
  return row;
}

MeasuredTable read_measured(const std::string& file, const StatedColumns& stated) {
  return parse_measured(read_text_file(file, kMostTableBytes), file, stated);
}

MeasuredTable parse_measured(std::string_view text, const std::string& file,
                             const StatedColumns& stated) {
  MeasuredTable out;
  refuse_other_kind(text, file, TextKind::kMeasured);
  const std::string log = without_prefixes(text, file);
  if (is_perftest_log(log)) {
    out = parse_perftest_log(log, file, stated);
  } else if (is_nvbandwidth_log(log)) {
    out = parse_nvbandwidth_log(log, file, stated);
  } else if (is_nccl_tests(log)) {
    out = parse_nccl_tests(log, file, stated);
  } else {
    refuse_no_table(text, log, file);
    out.rows = TableReader(text, file, stated).rows();
  }
  out.file = file;
  out.digest = fnv1a(text);
  return out;
}

FormatSection measured_format() {
  FormatSection section{"", "A row for each operation and size; the columns in any order.", {}};
  for (const MeasuredColumn& column : kColumns) section.keys.push_back(column.key);
  return section;
}

std::vector<std::string> failures_of_wrong(const std::string& file,
                                           const std::vector<MeasuredRow>& rows) {
  const auto is_wrong = [](const MeasuredRow& row) { return row.wrong > 0; };
  const auto first = std::find_if(rows.begin(), rows.end(), is_wrong);
  if (first == rows.end()) return {};
  const auto count = std::count_if(rows.begin(), rows.end(), is_wrong);
  return {fmt::format(
      "{}: {} wrong values (#wrong), {} of {} rows have some: results are corrupt, and their "
      "times not to be trusted",
      Place{file, first->line, 0}.text(), format_number(first->wrong), count, rows.size())};
}

}  // namespace weft
