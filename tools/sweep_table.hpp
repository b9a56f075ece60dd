#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/collective/sensitivity.hpp"
#include "sim/input/prices.hpp"
#include "sim/input/scenario.hpp"
#include "sim/report/csv_report.hpp"
#include "tools/sweep_grid.hpp"

namespace weft {

/// What is the same at every point of a sweep.
struct Sweep {
  ParamCatalog catalog;
  Scenario scenario;
  PredictOptions options;  ///< its `set` is what --gpu, --launch and --seed say
  std::vector<SweepAxis> axes;
  std::vector<SweepPoint> points;
  TopologySpec topology{};                         ///< before anything is set
  Predictor predictor{};                           ///< of its points
  bool has_prices{false};                          ///< the table then has what each point costs
  std::vector<std::optional<BillTotal>> totals{};  ///< by point; absent where it cannot be built
  bool has_front{false};                           ///< and which rows are on the Pareto front
  double tolerance{0};  ///< of the front: times that differ by this share or less are equal

  /// What its rows are of.
  RowsOf rows_of() const;
};

/// A point's lines of the table, cell by cell. One whose settings are refused has a single line,
/// which says why.
struct Block {
  std::vector<std::vector<std::string>> rows;
  bool refused{false};
};
/// By their points' digests.
using Blocks = std::map<std::string, Block>;

/// The lines of a point that was run, and of one that was refused.
Block block_of(const Sweep& sweep, std::size_t point, const RunResult& result);
Block refused_block(const Sweep& sweep, std::size_t point, const std::string& why);
/// What ran in the blocks' rows, and where: operation, ranks, nodes, algorithm; nothing else.
std::vector<ResultRow> rows_of(const Sweep& sweep, const Blocks& blocks);
/// As they stand in a table, for a journal.
std::string lines_of(const Block& block);

/// Splits a table, without its header, into blocks; those that lack a row are left out, so that
/// their points run again. Throws InputError naming `file`: not a table of this sweep.
Blocks read_blocks(const Sweep& sweep, std::string_view text, const std::string& file);
/// The blocks of the table in `file`; none if there is no file.
Blocks read_sweep_table(const Sweep& sweep, const std::string& file);

/// The table of these points, by their numbers. A point without a block has one line that says so,
/// and that the readers above leave out. `is_all`: the front is marked.
std::string sweep_table(const Sweep& sweep, const std::vector<std::size_t>& points,
                        const Blocks& blocks, bool is_all);

}  // namespace weft
