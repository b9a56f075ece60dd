#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// What rows of perftest call their operation: its program, of both ways with _bidirectional.
inline constexpr std::array<std::string_view, 9> kPerftestOps{"write_bw",
                                                              "read_bw",
                                                              "send_bw",
                                                              "write_bw_bidirectional",
                                                              "read_bw_bidirectional",
                                                              "send_bw_bidirectional",
                                                              "write_lat",
                                                              "read_lat",
                                                              "send_lat"};
/// The tests of nvbandwidth that have a model.
inline constexpr std::array<std::string_view, 11> kCopyOps{"host_to_device_memcpy_ce",
                                                           "device_to_host_memcpy_ce",
                                                           "host_to_device_bidirectional_memcpy_ce",
                                                           "device_to_host_bidirectional_memcpy_ce",
                                                           "device_to_device_memcpy_read_ce",
                                                           "device_to_device_memcpy_write_ce",
                                                           "host_to_device_memcpy_sm",
                                                           "device_to_host_memcpy_sm",
                                                           "host_to_device_bidirectional_memcpy_sm",
                                                           "device_to_host_bidirectional_memcpy_sm",
                                                           "device_to_device_memcpy_write_sm"};
/// A test of either that has none; the row's id says which.
inline constexpr std::string_view kOtherOp = "other";

/// One row of a measured table: an operation of one size, as it was run, and how long it took; a
/// copy or message of perftest and nvbandwidth likewise.
struct MeasuredRow {
  int line{0};              ///< in the file
  std::string transport;    ///< between the GPUs: "nvlink", "shm" or "net"; "copy" of nvbandwidth
  std::string memory_path;  ///< of net: "gdr", "host-staged", of perftest "host"; else ""
  std::int64_t hosts{1};
  std::int64_t ranks{0};  ///< GPUs of all hosts together: a multiple of them
  std::int64_t nics_per_host{0};
  double nic_gbps{0};  ///< 0: as the machine has it; so is the latency
  double nic_latency_us{0};
  std::string algo{"auto"};
  std::string proto{"auto"};
  std::int64_t channels{0};  ///< 0: NCCL's choice
  std::string op;
  std::int64_t bytes{0};  ///< as nccl-tests counts them
  double us{0};
  double algbw_gb_per_s{0};
  double busbw_gb_per_s{0};
  double wrong{0};      ///< elements that nccl-tests found wrong (#wrong): the result is corrupt
  std::string launch;   ///< "back-to-back", "single", "graph"; "" if the table does not say
  std::string machine;  ///< its topology, from the table's folder; "": as the reader says
  std::string set;      ///< "KEY=VALUE; KEY=VALUE": what of the machine the topology has otherwise
  std::string env;      ///< the same of NCCL's variables
  std::string nccl;     ///< the release whose decisions to follow; "": as the reader says
  std::int64_t qps{1};  ///< of perftest, as the three that follow
  std::int64_t tx_depth{128};
  std::int64_t cq_mod{0};  ///< 0: perftest's own
  std::int64_t post_list{1};
  std::int64_t row{0};  ///< of nvbandwidth's matrix, and so its column
  std::int64_t column{0};
  std::string run;         ///< which of several alike: rows of one run err together
  std::string use{"yes"};  ///< "yes", or "taught": a parameter was made from it
  std::string id;          ///< what its source, or who collected it, calls it
  std::string source;      ///< who published it
  /// Of a tool's log: why weft does not run it as it was measured; "" where nothing speaks against
  /// it. No column: a table that is written has only what can be run.
  std::string unlike;
};

/// A column of the table, declared once: what the reader takes, what it refuses, what is written.
struct MeasuredColumn {
  using Member =
      std::variant<std::string MeasuredRow::*, std::int64_t MeasuredRow::*, double MeasuredRow::*>;
  KeySpec key;
  Member member;
  bool is_configuration{true};  ///< what was run, but for its size: not bytes and what was measured

  std::string text(const MeasuredRow& row) const;
  Json json(const MeasuredRow& row) const;
};

/// Whether a row's operation is one of perftest's, or of nvbandwidth's.
bool is_perftest(const MeasuredRow& row);
bool is_copy(const MeasuredRow& row);

/// All of them, in the order in which they are written.
std::span<const MeasuredColumn> measured_columns();
/// Throws InputError with the names there are.
const MeasuredColumn& measured_column(std::string_view name);

/// All that a row was measured with but its size: the same text for two rows of one configuration.
std::string configuration_of(const MeasuredRow& row);
/// What rows share that may err together: their run, if they say it, else their configuration.
std::string run_of(const MeasuredRow& row);

/// The most rows of a table or log.
inline constexpr std::size_t kMostMeasuredRows = 100'000;

/// "weft.measured/1": what was run on a real machine, and how long it took.
struct MeasuredTable {
  std::string file;
  std::uint64_t digest{0};  ///< FNV-1a of the text that was read
  std::vector<MeasuredRow> rows;
  std::vector<std::string> notes{};  ///< what was left out or found out, each with its place
  /// Why results are not to be trusted, as the tool says itself; they stand in `notes`, too.
  std::vector<std::string> failures{};
  std::vector<int> runs{};          ///< of nccl-tests' output: the lines of its runs' headers
  std::vector<std::string> gpus{};  ///< by the names that nccl-tests' lists have, each once
  bool is_log{false};  ///< what a tool wrote of its runs, not a table that somebody made

  /// The place of the run that a row is of; of a table, which does not tell runs apart, the file.
  Place run_place(const MeasuredRow& row) const;
};

/// What is to be said of rows whose results are corrupt: none or one, with the first one's place.
std::vector<std::string> failures_of_wrong(const std::string& file,
                                           const std::vector<MeasuredRow>& rows);

/// Cells by column, as a table has them.
using StatedColumns = std::map<std::string, std::string>;
/// Reads "transport=nvlink,algo=Ring", as --as has it. Throws InputError.
StatedColumns parse_stated(const std::string& text);
/// Throws InputError, without a place, if a cell of the file is another than what is stated of it.
void check_agrees(const std::string& in_file, const std::string& stated);
/// A row of such cells, run unlike weft does or not. Throws InputError, without a place: one that
/// is not allowed or missing; of rows with `unlike`, ranks need be no multiple of hosts.
MeasuredRow measured_row(const StatedColumns& cells, const std::string& unlike = "");

/// Reads a table, its columns in any order, or what nccl-tests, perftest or nvbandwidth print or
/// write as JSON (nccl_tests.hpp, perftest_log.hpp, nvbandwidth_log.hpp), which it knows by their
/// content. `stated` are columns that the file leaves out, the same for all rows. Throws
/// InputError with file, line, column and what is allowed.
MeasuredTable read_measured(const std::string& file, const StatedColumns& stated = {});
/// The same from text; `file` is the name that messages use.
MeasuredTable parse_measured(std::string_view text, const std::string& file,
                             const StatedColumns& stated = {});

/// The form of the table, for its page.
FormatSection measured_format();

}  // namespace weft
