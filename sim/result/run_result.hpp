#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/params.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"
#include "sim/result/error_interval.hpp"
#include "sim/result/probes.hpp"
#include "sim/result/timeline.hpp"

namespace weft {

/// A share of a run's time along its critical path.
struct CauseShare {
  std::string cause;  ///< the kind of thing: "PCIe uplink, switch to CPU"
  std::string where;  ///< the one of that kind that took most: "pcisw0 -> cpu0 @0"
  double share{0};    ///< of the time; all shares of a row sum to 1
};

/// One collective of one size over one memory path.
struct ResultRow {
  std::string op;
  std::int64_t bytes{0};
  std::uint32_t ranks{0};
  std::uint32_t nodes{0};
  std::string memory_path;  ///< "gdr", "host-staged" or "nccl"
  std::string algo;
  std::string proto;
  std::uint32_t channels{0};
  std::string nccl_choice;  ///< what NCCL would run where weft does not execute it ("PAT"); or ""
  double time_us{0};
  double algbw_gb_per_s{0};            ///< GB/s = 1e9 bytes/s
  double busbw_gb_per_s{0};            ///< algbw x busbw_factor() (sim/base/operation.hpp)
  std::vector<CauseShare> limited_by;  ///< largest first
  /// Of its class, if the parameters have one; not read back from JSON.
  std::optional<ErrorInterval> interval{};
  /// The bus bandwidth at which its busiest link would never idle, and that link; of collectives
  /// the busiest NIC's. 0: not known. Not read back from JSON.
  double most_gb_per_s{0};
  std::string most_by{};
  double nic_gb_per_s{0};          ///< payload that the busiest NIC sends; 0: none does
  std::optional<Probes> probes{};  ///< of packets; not read back from JSON
  /// Of fluid runs, where it was asked for: the share of its capacity that each direction of a link
  /// ("pcisw0 -> cpu0") uses, on average over time_us: a launch's over the time from one to
  /// the next, which may come to a little over 1 where launches overlap. Not read back from JSON.
  std::vector<std::pair<std::string, double>> link_use{};
  /// Of a large cluster that is not simulated whole: its time is extended from smaller ones. Not
  /// read back from JSON.
  struct Extended {
    /// What it has more of: "level" of its trees, "node", "byte"; "chain": nodes that a broadcast
    /// passes, each_us 0 where many launches overlap; "nearer level": those over
    /// shorter hops than were simulated, which take less; "switch": fewer ran in the place of the
    /// network's, each_us the slowest way from NIC to NIC; "hash": its fullest link carries what it
    /// does on average over all that a hash may draw; "ring": an even number of nodes ran in place
    /// of an odd one; "round": what links between switches add to each distance in nodes that
    /// an all-to-all sends over, on average; "unlike node": what one that is not like the others
    /// adds to a ring each time around, which comes less often (negative steps) in the cluster.
    std::string by;
    std::vector<std::int64_t> from;  ///< simulated: nodes, or bytes, descending
    std::int64_t steps;              ///< how many of these it has more
    double each_us;                  ///< what each adds
  };
  std::vector<Extended> extended{};
  /// What happened, and when, as one number (sim/run/trajectory.hpp); not read back from JSON.
  std::uint64_t trajectory{0};
  std::string job{};   ///< of a scenario with several; "" else
  double alone_us{0};  ///< of a job: what the same took alone on the fabric
  /// Of a job: how often it was launched, one behind the other; its times are of one. 0: of no job.
  /// Not read back from JSON.
  std::uint32_t launches{0};
  /// Of a training step, which has no bytes: what of time_us GPUs compute, on its critical path.
  double computing_us{0};
  double exposed_us{0};  ///< likewise: for which a GPU, on average, waits for communication
  /// Of one launch, where it was asked for; not read back from JSON.
  std::shared_ptr<const Timeline> timeline{};

  /// Nodes of the largest cluster that the time was extended from; 0: not extended.
  std::uint32_t extended_from_nodes() const;
};

/// One parameter as a run used it.
struct ProvenanceParam {
  std::string key;
  std::string device;  ///< the first by name that has this value; "" for values without device
  std::string value;   ///< with its unit
  std::string origin;
  std::string source;
};

/// What a result was made from: enough to make it again and to judge it.
struct Provenance {
  std::string weft_version;
  std::string weft_commit;
  std::string scenario;
  std::string scenario_digest;  ///< FNV-1a of the file's bytes
  std::string topology;
  std::string topology_digest;
  std::string topology_source;
  std::uint64_t seed{0};
  std::string fidelity;
  std::string nccl_version;            ///< whose decisions were followed; "" in older files
  std::vector<std::string> overrides;  ///< "wire.mtu=1024", in the order given
  std::vector<std::string> env;        ///< "NCCL_NVLS_ENABLE=0"
  std::vector<ProvenanceParam> params;
};

/// The parameters of a run, for its provenance.
std::vector<ProvenanceParam> provenance_of(const UsedParams& used, const ParamCatalog& catalog);

/// A row that a run did not come to before it was stopped.
struct RowNotRun {
  std::string op;
  std::int64_t bytes{0};
  std::string memory_path;
  std::string job{};  ///< where a scenario has several
};

/// What `weft run` yields.
struct RunResult {
  std::vector<ResultRow> rows;
  std::vector<std::string> verdict;  ///< sentences for people
  std::vector<std::string> notes;    ///< what was not run and why, choices of NCCL, warnings
  Provenance provenance;
  std::vector<RowNotRun> not_run{};  ///< it was stopped before these; not read back from JSON
};

/// As in a result; without the scenario's keys where there was none.
Json to_json(const Provenance& provenance);

/// Reads what `weft run --json` writes; of `weft step` and `traffic` a row each memory path, no
/// bytes. Throws InputError: another schema, missing keys, numbers out of range, rows given twice.
RunResult run_result_from_json(const Json& json);

/// The versioned JSON of design.md section 5 ("schema": "weft.run/1").
Json to_json(const RunResult& result);
/// Every object of that JSON with its keys, as to_json writes them.
std::vector<FormatSection> run_result_format();

}  // namespace weft
