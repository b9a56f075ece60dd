#include <charconv>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/collective/parameter_set.hpp"
#include "models/collective/settings.hpp"
#include "models/registry/registry.hpp"
#include "replay/calibrate/traces.hpp"
#include "replay/device/rerun.hpp"
#include "replay/simulate/simulate.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "tools/assembled.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/predict_arguments.hpp"

namespace weft {
namespace {

struct ReplayArguments {
  std::string trace;
  std::string topology;
  std::string fidelity{"fluid"};
  bool is_open{false};
  bool is_closed{false};
  std::vector<std::string> map;
  std::string factor{"2"};
  std::string gpu;
  std::string seed;
  std::vector<std::string> set;
  std::string params;
  std::string json;
  std::string csv;
  std::string device;
  std::string peer;
  unsigned port{18520};
  std::string gpu_memory;
};

unsigned gpu_number(const std::string& text) {
  unsigned out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc{} && end == text.data() + text.size()) return out;
  throw InputError("--gpu-memory '" + text + "': a GPU's number, from 0 on");
}

double factor_of(const std::string& text) {
  const auto factor = parse_number(text);
  if (factor && *factor > 1) return *factor;
  throw InputError("--factor '" + text + "': a number above 1");
}

void run_on_device(const ReplayArguments& a) {
  const bool is_mixed = !a.topology.empty() || !a.json.empty() || !a.csv.empty() ||
                        !a.map.empty() || !a.set.empty() || !a.params.empty() || a.is_open ||
                        !a.gpu.empty() || !a.seed.empty() || a.fidelity != "fluid" ||
                        a.factor != "2";
  if (is_mixed) {
    throw InputError(
        "--device takes --peer, --port and --gpu-memory; the other options are the simulator's");
  }
  const replay::Recorded recorded = replay::read_recorded(a.trace);
  replay::RerunSettings settings{
      .device = a.device, .peer = a.peer, .port = static_cast<std::uint16_t>(a.port)};
  if (!a.gpu_memory.empty()) settings.gpu_memory = gpu_number(a.gpu_memory);
  std::cout << replay::rerun_text(recorded, replay::rerun(recorded, settings), settings)
            << std::flush;
}

/// The rows that parameters are fitted to, each with the interval of its class.
std::string intervals_text(const Comparison& comparison) {
  std::string out =
      fmt::format("\nwith the parameters' intervals, us\n  {:<18} {:>10} {:>12} {:>12} {:>26}\n",
                  "time of", "up to", "recorded", "predicted", "interval");
  for (const ComparedRow& row : comparison.rows) {
    const double us = row.predicted ? row.predicted->time_us : 0;
    out += fmt::format("  {:<18} {:>10} {:>12.4g} {:>12} {:>26}\n", row.measured.op,
                       format_size(Bytes{row.measured.bytes}), row.measured.us,
                       row.predicted ? fmt::format("{:.4g}", us) : "-",
                       row.interval ? fmt::format("{:.4g} to {:.4g}", us * row.interval->low,
                                                  us * row.interval->high)
                                    : "none for its class");
  }
  return out;
}

void run(const ReplayArguments& a) {
  if (!a.device.empty()) return run_on_device(a);
  if (!a.peer.empty()) throw InputError("--peer goes with --device");
  if (!a.gpu_memory.empty()) throw InputError("--gpu-memory goes with --device");
  if (a.topology.empty()) throw InputError("--topology FILE is required: where it is replayed");
  if (a.is_open && a.is_closed) throw InputError("--open and --closed: one of them");
  const replay::ReplayFacts facts{.trace = a.trace,
                                  .topology = a.topology,
                                  .fidelity = a.fidelity,
                                  .loop = a.is_open ? "open" : "closed",
                                  .factor = factor_of(a.factor)};
  const replay::Recorded recorded = replay::read_recorded(a.trace);
  const ParameterSet params = parameter_set(a.params);
  std::vector<ScenarioSetting> settings = params.set;
  for (const ScenarioSetting& s : parse_settings(a.set, a.gpu)) settings.push_back(s);
  for (const ScenarioSetting& seed : seed_setting(parse_seed(a.seed))) settings.push_back(seed);
  const TopologySpec machine = read_topology(a.topology, make_catalog());
  const Assembled on(machine, settings, replay::nodes_needed(recorded, a.map));
  for (const std::string& note : on.fabric.spec().notes) std::cerr << "note: " << note << '\n';
  const replay::Ends ends(on.machine, recorded, a.map);
  const replay::Replay replayed = replay::simulate(
      on.machine, recorded, ends, a.is_open ? replay::Loop::kOpen : replay::Loop::kClosed,
      a.fidelity == "packet" ? replay::ReplayFidelity::kPackets : replay::ReplayFidelity::kFluid);
  const replay::Comparison comparison = replay::compare(recorded, replayed, facts.factor);
  if (a.json != "-" && a.csv != "-") {
    std::cout << replay::replay_text(recorded, replayed, comparison, facts);
    if (!a.params.empty()) {
      Comparison rows = compared_rows(recorded, replayed);
      const Beside beside{
          &machine, {settings.begin() + std::ssize(params.set), settings.end()}, {}};
      std::vector<std::string> notes;
      add_intervals(rows, intervals_of(params, beside, notes));
      notes.insert(notes.end(), rows.notes.begin(), rows.notes.end());
      for (const std::string& note : notes) std::cout << "# note: " << note << '\n';
      std::cout << intervals_text(rows);
    }
    std::cout << std::flush;
  }
  if (!a.json.empty()) {
    write_text_file(a.json, replay::replay_json(recorded, replayed, comparison, facts).dump());
  }
  if (!a.csv.empty()) write_text_file(a.csv, replay::replay_csv(recorded, replayed));
}

}  // namespace

void add_replay_command(CommandLine& line) {
  const auto arguments = std::make_shared<ReplayArguments>();
  line.add("replay",
           "Run a verbs trace on the simulator, and compare with what was recorded; or on a device")
      .argument("trace", arguments->trace, "a verbs trace (weft trace)")
      .option("--topology", arguments->topology,
              "where it is replayed: topology YAML or NCCL XML; required unless on a device")
      .option("--fidelity", arguments->fidelity, "shared rates, or every packet",
              {"fluid", "packet"})
      .flag("--open", arguments->is_open, "threads post at the recorded times")
      .flag("--closed", arguments->is_closed,
            "threads post so long after the completion that they took before, as it was recorded; "
            "the default")
      .option("--map", arguments->map,
              "a device of the trace and its NIC: mlx5_0=nic0@1, or mlx5_0@1=nic0@1 with the "
              "trace's host, from 0; repeatable. Unless given the i-th device of host h is the "
              "i-th NIC of node h")
      .option("--factor", arguments->factor,
              "an operation diverges whose time is off by more, up or down")
      .option("--gpu", arguments->gpu, "which GPUs these are, such as h100-sxm")
      .option("--params", arguments->params,
              "a set of parameters, such as weft calibrate writes; its intervals are shown beside "
              "the times that it was fitted to; --set beats it")
      .option("--set", arguments->set, "a parameter, KEY=VALUE with its unit; repeatable")
      .option("--seed", arguments->seed, "seed of all that is random, as wire.seed; 1 unless given")
      .output("--json", arguments->json, "write the comparison as JSON; '-' is standard output")
      .output("--csv", arguments->csv,
              "write each operation's times as CSV; '-' is standard output")
      .option(
          "--device", arguments->device,
          "do the operations again on this device (mlx5_0), each once what was completed before "
          "it is; a second process does the other ends")
      .option("--peer", arguments->peer,
              "with --device: the host where the second process runs, which was started without")
      .option("--port", arguments->port, "with --device: TCP port of the two processes", 65535)
      .option("--gpu-memory", arguments->gpu_memory,
              "with --device: messages lie in the memory of this GPU (0, as CUDA counts), exported "
              "by DMA-BUF; else in the host's")
      .example("weft replay run.weft --topology topologies/hgx-h100-8nic.yaml")
      .action([arguments] { run(*arguments); });
}

}  // namespace weft
