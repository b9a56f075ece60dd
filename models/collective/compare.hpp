#pragma once

#include <set>
#include <string>

#include "models/collective/predict.hpp"
#include "sim/report/comparison.hpp"
#include "sim/result/measured.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// The entries of a cell "KEY=VALUE; KEY='VALUE'", without quotes. Throws InputError: one without a
/// value.
std::vector<ScenarioSetting> settings_of_cell(const std::string& text);

/// Predicts every row of a measured table on a machine. A row says how many nodes, GPUs and NICs
/// there are, the NICs' rate and latency, what else of the machine, NCCL's variables and release;
/// what `options` say beats it. A row that weft cannot predict as it was measured has the reason
/// instead, and so has one that a stop came before (ComparedRow::is_stopped). `options.on_progress`
/// hears how many of the rows that are run are done. Throws InputError where the machine or options
/// are wrong whatever the row.
Comparison compare(const MeasuredTable& table, const TopologySpec& machine,
                   const PredictOptions& options, const ParamCatalog& catalog);
/// The same, each row on the machine that it names. Throws InputError where one names none.
Comparison compare(const MeasuredTable& table, const PredictOptions& options,
                   const ParamCatalog& catalog);
/// Takes the releases of NCCL that weft does not model out of a tool's log, which are then those of
/// the options, and notes it. compare() does so itself; of a table that somebody made such a row
/// is not predicted.
void drop_unmodelled_releases(MeasuredTable& table);

/// The files of the machines that a table's rows name.
std::set<std::string> machine_files(const MeasuredTable& table);

/// The releases of NCCL whose decisions the rows that are predicted follow; perftest's and
/// nvbandwidth's follow none.
std::set<std::string> releases_of(const Comparison& comparison, const PredictOptions& options);

/// What a row states beside size and time, as a scenario on a machine: nodes, operation, settings,
/// NCCL's variables and release, less what `options` say otherwise. `table`: its file, for
/// messages. Throws InputError: more GPUs or NICs than the machine has, what is no setting.
Scenario scenario_of(const MeasuredRow& row, const std::string& table, const TopologySpec& machine,
                     const PredictOptions& options, const ParamCatalog& catalog);

/// Gives each row of a result the interval of its class: that of rows which were measured with its
/// algorithm and protocol forced, else with NCCL's choice (auto); of its release of NCCL, and where
/// that is the default else of none.
void add_intervals(RunResult& result, const TopologySpec& machine, const ErrorIntervals& intervals);

}  // namespace weft
