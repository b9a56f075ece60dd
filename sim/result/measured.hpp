#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// One row of a measured table: an operation of one size, as it was run, and how long it took.
struct MeasuredRow {
  int line{0};              ///< in the file
  std::string transport;    ///< between the GPUs: "nvlink", "shm" or "net"
  std::string memory_path;  ///< of net: "gdr" or "host-staged"; else ""
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
  std::string launch;   ///< "back-to-back", "single", "graph"; "" if the table does not say
  std::string machine;  ///< its topology, from the table's folder; "": as the reader says
  std::string set;      ///< "KEY=VALUE; KEY=VALUE": what of the machine the topology has otherwise
  std::string env;      ///< the same of NCCL's variables
  std::string nccl;     ///< the release whose decisions to follow; "": as the reader says
  std::string use{"yes"};  ///< "yes", or "taught": a parameter was made from it
  std::string id;          ///< what its source, or who collected it, calls it
  std::string source;      ///< who published it
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

/// All of them, in the order in which they are written.
std::span<const MeasuredColumn> measured_columns();
/// Throws InputError with the names there are.
const MeasuredColumn& measured_column(std::string_view name);

/// All that a row was measured with but its size: the same text for two rows of one configuration.
std::string configuration_of(const MeasuredRow& row);

/// The most rows of a table or log.
inline constexpr std::size_t kMostMeasuredRows = 100'000;

/// "weft.measured/1": what was run on a real machine, and how long it took.
struct MeasuredTable {
  std::string file;
  std::uint64_t digest{0};  ///< FNV-1a of the text that was read
  std::vector<MeasuredRow> rows;
};

/// Cells by column, as a table has them.
using StatedColumns = std::map<std::string, std::string>;
/// Reads "transport=nvlink,algo=Ring", as --as has it. Throws InputError.
StatedColumns parse_stated(const std::string& text);
/// A row of such cells. Throws InputError, without a place: one that is not allowed or missing.
MeasuredRow measured_row(const StatedColumns& cells);

/// Reads a table, its columns in any order, or a log of nccl-tests (nccl_tests.hpp), which it knows
/// by their content. `stated` are columns that the file leaves out, the same for all rows. Throws
/// InputError with file, line, column and what is allowed.
MeasuredTable read_measured(const std::string& file, const StatedColumns& stated = {});
/// The same from text; `file` is the name that messages use.
MeasuredTable parse_measured(std::string_view text, const std::string& file,
                             const StatedColumns& stated = {});

/// The form of the table, for its page.
FormatSection measured_format();

}  // namespace weft
