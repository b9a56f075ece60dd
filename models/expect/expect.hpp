#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/expect/error_band.hpp"
#include "models/expect/healthy.hpp"
#include "sim/base/operation.hpp"
#include "sim/result/measured.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// What to expect something of.
struct ExpectRequest {
  std::vector<std::string> ops;  ///< nccl-tests' ("allreduce"), or perftest's ("write_bw")
  std::vector<Bytes> sizes;      ///< ascending
  std::optional<std::uint32_t> nodes;
  std::string memory_path;  ///< "gdr", "host-staged"; of perftest "gdr", "host"; "": NCCL's rule
  std::int64_t qps{1};      ///< of perftest, as the next
  std::int64_t tx_depth{128};
  PredictOptions options;  ///< but for `set`, which is the subject's
};

/// Rounded down to three digits, so that what is at the floor passes.
double rounded_down(double value);

/// One operation of one size: what weft predicts and how far off that may be.
struct ExpectedRow {
  ResultRow row;
  ErrorBand band;
  std::int64_t qps{1};  ///< of perftest, as the next
  std::int64_t tx_depth{128};

  /// The interval of its bus bandwidth, GB/s: eight cases of ten where a class covers it; no more
  /// than its busiest link carries.
  double low() const { return row.busbw_gb_per_s / band.time.high; }
  double high() const;
  /// What the interval comes from, and what its upper end is where a link bounds it.
  std::string basis() const;
  /// The interval's lower end, rounded down; none where nothing validates it.
  std::optional<double> floor() const;
};

/// What is expected of a machine in one state.
struct ExpectedState {
  std::string state;  ///< "healthy", "found"
  std::vector<ExpectedRow> rows;
  std::vector<std::string> notes;
};

/// What is expected of a machine.
struct Expected {
  ExpectedState healthy;
  std::set<std::string> gpus;          ///< the parts of its GPUs
  std::optional<ExpectedState> found;  ///< where any row differs
  std::string why_not_found;           ///< why the machine as found cannot be predicted
  std::vector<std::string> mended;     ///< as Subject has them
  std::vector<std::string> notes;
  Provenance provenance;  ///< of the healthy one
};

/// Adds those that are not there yet, each after `prefix`.
void add_notes(const std::vector<std::string>& notes, const std::string& prefix,
               std::vector<std::string>& out);

/// The parts of a node's GPUs, of those that have one.
std::set<std::string> gpu_parts_of(const NodeSpec& node);

/// The memory path that NCCL takes by itself for an operation on this machine: "gdr",
/// "host-staged", or "nccl" where it is either for some GPUs, NICs and directions. Throws
/// InputError as predict() does.
std::string memory_path_of(Op op, const MachineCase& machine,
                           const std::vector<ScenarioSetting>& set, std::uint32_t nodes,
                           const PredictOptions& options, const ParamCatalog& catalog);
/// Where data goes that a prediction is asked for.
enum class Where : std::uint8_t { kInNode, kBetweenNodes, kPerftest };
/// Why no published run is of a machine like this one, or was run like this; "" if one is. Each
/// GPU must be joined with each by NVLink, of a product that was measured or one beside, NICs be
/// ConnectX or BlueField, or their rate be said, NCCL's algorithm and protocol its own choice or
/// one that was measured, and GPUDirect RDMA its choice at all ends of its rings or at none. Throws
/// InputError as predict() does.
std::string unlike_measured(const MachineCase& machine, const std::vector<ScenarioSetting>& set,
                            Where where, const PredictOptions& options,
                            const ParamCatalog& catalog);
/// Of several nodes, what only runs inside a node were published of, so that errors are those of
/// other products; "" if nothing is. Throws InputError as predict() does.
std::string beside_measured(const MachineCase& machine, const std::vector<ScenarioSetting>& set,
                            const PredictOptions& options, const ParamCatalog& catalog);
/// What joins the GPUs of a node: "nvlink", "shm" where NCCL_P2P_DISABLE is set, else "pcie".
std::string transport_inside(const MachineCase& machine, const std::vector<ScenarioSetting>& set,
                             const PredictOptions& options, const ParamCatalog& catalog);

/// Predicts every operation and size on the machine as it should be, and as it was found where that
/// differs. Throws InputError as predict() does, and Stopped.
Expected expect(const Subject& subject, const ExpectRequest& request, const ParamCatalog& catalog);

/// Whether it is a latency test of perftest: of one message at a time.
bool is_latency(std::string_view op);
/// The time of so many bytes at a bus bandwidth in GB/s, where the two are one: of perftest.
double latency_us(std::int64_t bytes, double gb_per_s);

/// Whether these are operations of perftest. Throws InputError where some are and some are not.
bool are_perftest(const std::vector<std::string>& ops);

}  // namespace weft
