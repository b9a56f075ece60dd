#include "tools/explain_request.hpp"

#include <cstdint>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "models/collective/compare.hpp"
#include "models/collective/settings.hpp"
#include "models/expect/error_band.hpp"
#include "models/expect/expect.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/input/evidence/machine.hpp"
#include "sim/input/topology_file.hpp"
#include "tools/listed_gpus.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostSizes = 8;  // of one operation

/// What of the machine is known, before the run says how many GPUs took part.
struct Known {
  std::optional<Evidence> evidence;
  std::optional<Patient> patient;
  MachineCase healthy;
  std::string name;
  NcclVersion version;
  std::vector<std::string> notes;
};

/// A check that is ok on one host rules out nothing on another.
void refuse_several_hosts(const Evidence& evidence) {
  const std::vector<std::string> hosts = hosts_with_more(evidence, compare_hosts(evidence.facts));
  if (hosts.size() < 2) return;
  throw InputError(fmt::format(
      "the evidence is of {} hosts ({}): explain weighs causes by that of one host; give the "
      "slow one's alone (weft doctor examines and compares several)",
      hosts.size(), known_names(hosts, 3)));
}

void read_known(const ExplainAsked& asked, const Measurement& measured, const ParamCatalog& catalog,
                const PartLibrary& parts, Known& known) {
  if (!asked.evidence.empty()) {
    known.evidence = read_evidence(asked.evidence);
    refuse_several_hosts(*known.evidence);
    known.patient.emplace(*known.evidence, catalog, parts,
                          static_cast<std::uint32_t>(measured.hosts), asked.gpu);
    known.notes = known.evidence->notes;  // what was not read
    if (measured.hosts > 1) {
      known.notes.push_back(fmt::format(
          "the evidence is of one of {} hosts; what it rules out may be so on another: give the "
          "slow one's",
          measured.hosts));
    }
  }
  if (asked.machine) {
    known.name = asked.machine->file;
    known.healthy.spec = parse_topology(asked.machine->read(), known.name, catalog);
    return;
  }
  if (!known.patient) {
    throw InputError(
        "which machine is it? write --machine FILE (a topology), or --evidence FILE "
        "(what its tools print)");
  }
  known.healthy = mended_machine(*known.patient);
  known.name = "the evidence's machine, mended";
  known.version = known.patient->context().version;
  known.notes = known.patient->spec().notes;
}

/// What the run's rows and the command line say of the machine and of NCCL.
void apply_run(const Measurement& measured, const std::string& file, const PredictOptions& options,
               const ParamCatalog& catalog, Known& known) {
  const Scenario scenario = scenario_of(measured.row, file, known.healthy.spec, options, catalog);
  known.healthy.set = scenario.set;
  known.healthy.set.insert(known.healthy.set.end(), options.set.begin(), options.set.end());
  for (const auto& [name, value] : scenario.env) known.healthy.env[name] = value;
  for (const auto& [name, value] : options.env) known.healthy.env[name] = value;
  if (!scenario.nccl_version.empty()) known.version = scenario_nccl_version(scenario);
  if (options.nccl_version) known.version = *options.nccl_version;
}

ErrorModel errors_of(const MachineCase& healthy, bool has_healthy, const ParamCatalog& catalog) {
  Params params(catalog);
  TopologySpec spec = healthy.spec;
  apply_settings(healthy.set, spec, params);
  return error_model(params, has_healthy);
}

/// Where predictions stand in for a healthy run: what is asked that no published run validates them
/// for, so that they may be further off than the error that the answer reckons with.
void note_unmeasured(const MachineCase& healthy, const Measurement& measured,
                     const PredictOptions& options, const ParamCatalog& catalog,
                     std::vector<std::string>& notes) {
  const bool is_one = measured.hosts == 1;
  const std::vector<KnownError> known = known_errors();
  ErrorQuery query;
  query.transport = is_one ? transport_inside(healthy, healthy.set, options, catalog) : "net";
  query.nodes = measured.hosts;
  query.ranks = measured.ranks;
  query.unlike = unlike_measured(healthy, healthy.set,
                                 is_one ? Where::kInNode : Where::kBetweenNodes, options, catalog);
  std::set<std::string> ops;
  for (const Point& point : measured.points) {
    if (!ops.insert(point.op).second) continue;
    query.op = point.op;
    query.bytes = point.bytes;
    if (!is_one && query.unlike.empty()) {
      query.memory_path =
          !point.path.empty()
              ? point.path
              : memory_path_of(parse_op(point.op), healthy, healthy.set,
                               static_cast<std::uint32_t>(measured.hosts), options, catalog);
    }
    const ErrorBand band = error_band(query, known);
    if (band.is_covered) continue;
    notes.push_back(fmt::format(
        "{}: {}; a measured time of {:.2f} to {:.2f} times the predicted one may be healthy, "
        "whatever the expected error says: a healthy run of this machine (HEALTHY) would tell",
        point.op, band.basis, band.time.low, band.time.high));
  }
}

/// Predictions are by one release.
void note_other_release(const MeasuredTable& slow, MeasuredTable& healthy) {
  const std::string& of_slow = slow.rows.front().nccl;
  const std::string& of_healthy = healthy.rows.front().nccl;
  if (of_slow.empty() || of_healthy.empty() || of_slow == of_healthy) return;
  healthy.notes.push_back(fmt::format("{} is of NCCL {}, {} of {}: predictions are by the latter",
                                      healthy.file, of_healthy, slow.file, of_slow));
}

}  // namespace

void explain_asked(const ExplainAsked& asked, const std::function<void(const ExplainView&)>& show) {
  const ParamCatalog catalog = make_catalog();
  const StatedColumns stated = parse_stated(asked.as);
  MeasuredTable slow = parse_run(asked.slow.read(), asked.slow.file, stated);
  drop_unmodelled_releases(slow);
  std::optional<MeasuredTable> healthy;
  if (asked.healthy) {
    healthy = parse_run(asked.healthy->read(), asked.healthy->file, stated);
    refuse_other_gpus(slow, *healthy);
    note_other_release(slow, *healthy);
  }
  const Measurement measured = measurement_of(slow, healthy ? &*healthy : nullptr, kMostSizes);
  const PartLibrary parts(catalog);
  Known known;
  read_known(asked, measured, catalog, parts, known);
  if (std::string other = other_gpus(slow, known.healthy.spec); !other.empty()) {
    known.notes.insert(known.notes.begin(), std::move(other));
  }
  apply_run(measured, slow.file, asked.predict, catalog, known);
  const CaseContext context{catalog, parts, known.version,
                            static_cast<std::uint32_t>(measured.hosts)};
  const std::vector<CauseEntry>& entries = catalogue();
  const Site site(known.healthy, context);
  std::vector<Suspect> suspects = suspects_of(entries, site);
  if (known.patient) weigh_by(*known.patient, site, !asked.machine, suspects);
  try {
    const Effects effects(known.healthy, context, measured.points, std::move(suspects),
                          asked.predict.threads, asked.predict.stop);
    const Explanation explanation =
        explain(gaps_of(effects), effects, errors_of(known.healthy, healthy.has_value(), catalog));
    if (!healthy) {
      note_unmeasured(known.healthy, measured, asked.predict, catalog, known.notes);
    }
    known.notes.insert(known.notes.begin(), slow.notes.begin(), slow.notes.end());
    known.notes.insert(known.notes.begin(), asked.notes.begin(), asked.notes.end());
    if (healthy) {
      known.notes.insert(known.notes.end(), healthy->notes.begin(), healthy->notes.end());
    }
    known.notes.insert(known.notes.end(), effects.notes().begin(), effects.notes().end());
    show({explanation, effects, measured, entries, slow.file, healthy ? healthy->file : "",
          known.name, known.version.text(), known.notes, !slow.failures.empty()});
  } catch (const Stopped&) {
    throw Stopped("stopped before all causes were predicted");
  }
}

}  // namespace weft
