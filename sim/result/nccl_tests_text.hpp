#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result/log_text.hpp"
#include "sim/result/nccl_tests_command.hpp"

/// What nccl-tests prints, in its own words.
namespace weft::nccl_tests {

/// What a list of devices says as a whole.
struct Devices {
  std::int64_t ranks{0};
  std::int64_t hosts{0};
  std::string missing;  ///< ranks below the highest that it lacks, "0, 2 to 14"; "": it is whole
  std::string uneven;   ///< how its ranks are spread over hosts, "4 + 2"; "": evenly
  std::vector<std::string> gpus{};  ///< their names, each once, some at most
};

/// The list line by line.
class DeviceList {
 public:
  /// Throws InputError: several groups of ranks.
  void add(std::string_view group, std::string_view host);
  /// Throws InputError: a rank that it has already.
  void add_number(std::int64_t rank);
  void add_gpu(std::string name);
  Devices summary() const;

 private:
  std::string missing() const;
  std::string uneven() const;

  std::int64_t ranks_{0};
  std::map<std::string, std::int64_t, std::less<>> hosts_;  ///< with their ranks
  std::set<std::int64_t> numbers_;                          ///< of the ranks, from 0
  std::set<std::string> gpus_;
};

/// What is said of all rows that follow.
struct Run {
  std::string op;
  std::string nccl;  ///< the release of the library
  Devices devices{};
  std::optional<bool> graph{};               ///< CUDA graphs; if it says so
  std::optional<std::int64_t> aggregated{};  ///< operations a launch; likewise
  bool is_blocking{false};

  std::string_view launch() const {
    if (graph.value_or(false)) return "graph";
    return is_blocking ? "single" : "";
  }
  /// As MeasuredRow has it.
  std::string unlike() const;
};

/// "2.21.5" of 22105, and of releases before 2.9 of a number such as 2804. nccl.h's NCCL_VERSION.
std::string release_of(std::int64_t code);

/// A row as it is printed.
struct Printed {
  int line;
  Words words;
};

/// What one run printed: the header, and the rows below it.
struct Table {
  int line;  ///< of the header
  Words header;
  Run run;
  TestCommand command;  ///< that lines before it name
  std::vector<Printed> rows{};
  std::vector<std::string> failures{};  ///< each with its place

  std::size_t columns() const { return header.size() - 1; }
  /// The first column of that name, out of place where there are two; columns() if there is none.
  std::size_t column(std::string_view name) const {
    return static_cast<std::size_t>(std::find(header.begin() + 1, header.end(), name) -
                                    header.begin()) -
           1;
  }
  /// All-to-all of old releases leaves redop blank.
  void fill_op(Words& row) const;
  /// "time", or "cputime" with -C.
  std::size_t time_column() const { return std::min(column("time"), column("cputime")); }
  /// The most elements that a row has wrong, out of place or in place; 0 where nothing was checked
  /// ("N/A"), and in releases before 2.13.
  double wrong(const Printed& row) const;
};

/// Whether it is the line over the rows: "# size count type redop root time ...", of old releases
/// with redop and root only where an operation has them.
bool is_header(const Words& words);

std::string failed_text(std::string_view what);
std::string out_of_bounds_text(std::string_view count);

/// What is printed, line by line; what else is in between (NCCL's own log) is skipped. A row's
/// beginning is printed before its operation runs, so what NCCL logs then stands in it: "1048576
/// 262144 float sum -1host:5:6 [0] NCCL INFO ...", further lines, then the rest of the row.
/// Throws InputError with the place.
std::vector<Table> tables_of(std::string_view text, const std::string& file);

}  // namespace weft::nccl_tests
