#include <fmt/format.h>

#include "models/collective/parameter_set.hpp"
#include "models/expect/gate.hpp"
#include "models/params/parts.hpp"
#include "replay/calibrate/report.hpp"
#include "replay/simulate/simulate.hpp"
#include "sim/input/prices.hpp"
#include "sim/input/scenario.hpp"
#include "sim/input/topology_yaml.hpp"
#include "sim/report/comparison.hpp"
#include "sim/report/diff.hpp"
#include "sim/result/measured.hpp"
#include "sim/result/run_result.hpp"
#include "tools/copies_json.hpp"
#include "tools/docs.hpp"
#include "tools/doctor_report.hpp"
#include "tools/expect_report.hpp"
#include "tools/explain_report.hpp"
#include "tools/nccl_view.hpp"
#include "tools/perftest_json.hpp"
#include "tools/sensitivity_report.hpp"
#include "tools/show_text.hpp"
#include "tools/step_json.hpp"
#include "tools/traffic_json.hpp"

namespace weft {
namespace {

/// In a cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '<') out += '\\';
    out += c;
  }
  return out;
}

constexpr const char* kHead =
    "<!-- Written by `weft docs {}` from what the readers and writers declare; change it there. "
    "-->\n";

/// Of the page of scenarios: what `weft compare` reads and writes.
std::string measured_text() {
  return "\n## Measured tables\n\n"
         "`weft compare FILE --machine TOPOLOGY` predicts every row of a measured table and says "
         "by how much the predictions\nare off. A table (`weft.measured/1`) is CSV with a "
         "header:\n\n"
         "```csv\n"
         "transport,hosts,ranks,algo,proto,op,bytes,us\n"
         "nvlink,1,4,Ring,Simple,allreduce,1048576,37.232\n"
         "nvlink,1,4,Ring,Simple,allreduce,67108864,320.505\n"
         "```\n\n"
         "A row is run as it was measured: `hosts` nodes of the machine with the first `ranks / "
         "hosts` GPUs of each\n(`gpu.count`), and NCCL's variables as the columns say them. Of "
         "`net`, the NICs become those of the columns\n(`nic.count`, `nic.rate` and `wire.rate`, "
         "`netswitch.latency` less two cables); NCCL decides for that rate unless\n"
         "`nic.reported_rate` is set. `--params FILE` ([below](#files-of-parameters)) and `--set` "
         "beat what\nrows "
         "say; `--env` beats their variables; a note names what "
         "they beat. A row that cannot be run as it was measured\nhas the reason in place of a "
         "prediction and is counted, never left out. `launch` is `nccl.launch`.\n\n"
         "A table of several machines names each row's own (`machine`, `set`, `env`, `nccl`) and "
         "needs "
         "no `--machine`;\n`tests/data/public-logs.csv` is one. `--by` also takes `nodes` (1, 2-3, "
         "4+) and `size` (64 MiB and more, less).\n\n"
         "What nccl-tests prints, or writes as JSON (-J), is read as well: sizes and times out of "
         "place, the operation, ranks,\nhosts, the release of NCCL (one without a model is noted, "
         "and as if not stated) and launches: CUDA graphs (header, JSON,\nor -G of the command "
         "line above the table), a wait after each (JSON or -z); several operations a launch (-m) "
         "and ranks\nthat are not spread evenly over hosts have no prediction. `--as "
         "transport=nvlink,algo=Ring` says what a file leaves out;\n`transport` always. Releases "
         "that do not print the operation: it is that of the program whose command line stands "
         "above\nthe table, or the one that alone has such columns (redop, root, busbw / algbw); a "
         "note says so. Where the list of\ndevices is missing, ranks and hosts, and with or "
         "without it NCCL_PROTO and NCCL_ALGO, are those of the command above it\n(mpirun, "
         "mpiexec, srun, -H, -g, -t), with a note: of a launcher, or of a program with its folder, "
         "behind a prompt or a\nvariable. NCCL_ALGO counts where it governs the operation (Ring of "
         "collectives, Tree of all-reduce); a list without some\nranks tells no count, and is "
         "refused unless --as says ranks and hosts. Rows whose busbw / algbw is not that of the op "
         "or\nranks that --as or the command says are refused. A last row that is cut off is left "
         "out, with a note. Errors by which it\nended, values out of bounds and wrong values "
         "(#wrong) are noted, too: results are not to be trusted then, and `weft\nexpect` exits 4. "
         "What mpirun, Hydra, srun, kubectl, stern, docker compose, pdsh, CloudWatch and terminals "
         "put before\nlines is taken away first, here as of evidence.\n\nWhat perftest prints "
         "(`ib_write_bw` and so on), or "
         "writes as JSON (--out_json), becomes rows between the first GPUs of\ntwo hosts, or "
         "these hosts' memories: a message's time at the average rate, or the typical latency "
         "(of -D the average),\nwith queue pairs, depth, moderation, MTU and kind of link as "
         "printed. The memory is `host` unless perftest says that it\nallocated on the GPU or "
         "`--as memory_path=gdr` does. `weft perftest` predicts them. What nvbandwidth prints, "
         "or writes\nas JSON (-j), becomes a row for each cell of a matrix, of 512 MiB unless "
         "`--as bytes=N` says what -b was; `weft copies`\npredicts them. A matrix without the "
         "line of its test is of that which the sum below names. A test that weft has no "
         "model\nof (atomics, other connections than RC, all-to-one copies, latencies of "
         "nvbandwidth) is a row of `other` with its name,\ncounted as not predicted. Tests that "
         "were waived or failed measured nothing and are no rows. A last row that is cut off\nis "
         "left out here, too.\n\n"
         "The error of a row is predicted / measured time - 1. *Bias* is the mean of a class's "
         "errors, *p90* what nine tenths of\ntheir sizes do not exceed. `--drop-stalls` leaves out "
         "rows that took over 1.5 times as long as a larger size of the\nsame configuration, and "
         "shows the total with and without them.\n" +
         sections_text({measured_format()}, "if left out") +
         "\n## Keys of a comparison\n\n`weft compare --json FILE` writes one JSON object "
         "(`--csv FILE` its rows).\n" +
         sections_text(comparison_format(), "present");
}

/// Of the same page: what `weft calibrate` writes.
std::string calibration_text() {
  return "\n## Files of parameters\n\n"
         "What `--params` reads: a YAML map of `key: value` as a scenario's `set`, by hand, or as "
         "`weft calibrate -o FILE` writes it,\nwith what the values were fitted to and, by class, "
         "between which multiples of its prediction a measured time lies in\neight cases of ten "
         "(`weft run` and `weft compare` then show `low` and `high`).\n" +
         sections_text(parameter_set_format(), "if left out") +
         "\n## Keys of a calibration\n\n`weft calibrate --json FILE` writes one JSON object "
         "([method](../replay/calibrate/README.md)).\n" +
         sections_text(calibration_format(), "present");
}

/// Of the same page: questions of many points, what they cost, and who answers them.
std::string capacity_text() {
  return "\n## Sweeps\n\n"
         "`weft sweep SCENARIO --set KEY=a,b --set KEY=c,d --csv FILE` runs every combination: "
         "nodes "
         "(`nodes`), NICs a node\n(`nic.count`), rails, leaves, spines, oversubscription "
         "(`network.*`), classes of switches and cables (`netswitch.part`, `spine.latency`,\n"
         "`wire.cable_length`, `leaf.uplink_length`, "
         "`nic.part`), what has failed and what lies ready (below). The scenario may be of any "
         "workload: one line a point, size and memory "
         "path, "
         "of jobs a line each (`job`,\n`alone_us`), of a training step its time (`time_us`) and "
         "what of it GPUs compute on its critical path (`computing_us`), and for how long a GPU, "
         "on "
         "average, waits for communication (`exposed_us`),\nof irregular traffic its "
         "time; these have no bytes and no busbw. A point that cannot be has a line that says "
         "why\n(`not_run`), and the exit code is then 2. The column `point` is a digest "
         "of all that decides a point's results: weft's\nversion and sources, scenario, topology, "
         "traces and matrix, "
         "prices, settings, variables, NCCL's release. What stands in FILE under the same\ndigest "
         "is not run again, so a sweep that was killed, stopped (Ctrl-C, SIGTERM) or ran into "
         "`--time-limit` goes on where\nit was (FILE.part keeps what is finished while it "
         "runs).\n\n"
         "`--prices FILE` adds `cost` and `power_kW` of each point: parts times count, counted "
         "from "
         "the topology and its network.\nweft has no prices of its own; a part without one is an "
         "error. `--pareto` marks the rows (`pareto`: yes, no) of which no\nother marked one of "
         "the same "
         "operation, size, job, memory path and number of GPUs is as fast for less, or faster for "
         "as much. Times that differ by `--tolerance` (0.02)\nor less count as equal: messages "
         "meet "
         "in other phases wherever a value moves, and that alone moves the model's times\nby up to "
         "2 %, up or down, of many short messages now and then by more (16 MiB all-to-alls over "
         "cables of 1 to 100 m: 7 %).\n"
         "Believe no smaller difference between two points of a sweep, unless it has the same sign "
         "wherever it is looked for. Of a chain\nof points of ever more cost, each as fast as the "
         "one before, those are marked that are faster than the last one marked; so\nthe very "
         "fastest may not be (`--tolerance 0` marks it).\n\n"
         "```yaml\n"
         "prices: an invented list, to show the form\n"
         "currency: USD\n"
         "parts:\n"
         "  - {is: node, cost: 200000, watts: 6000}\n"
         "  - {is: nic, cost: 1000, watts: 25}\n"
         "  - {is: switch, ports: 64, cost: 20000, watts: 1500}\n"
         "  - {is: nic-cable, up_to: 3 m, cost: 100}\n"
         "  - {is: nic-cable, cost: 200, watts: 20}\n"
         "  - {is: switch-cable, cost: 500, watts: 30}\n"
         "```\n" +
         sections_text(prices_format(), "if left out") +
         "\n### What has failed, and what lies ready\n\n"
         "`failed.nodes`, `failed.nics` and `failed.uplinks` say how many have failed, "
         "`spare.nodes`, `spare.nics` and `spare.uplinks` how many were bought to take their "
         "place: "
         "whole numbers,\nor shares of what was bought without spares (`failed.nodes=2 %`), "
         "rounded "
         "up. `cost` has "
         "the spares and all that has failed since; a spare node has its NICs and cables, and a "
         "network that holds it.\nWhat no spare makes good is missing: of `nodes` the last ones, "
         "of "
         "leaves one after the other a link to a spine, as with `network.failed_uplinks`. Each NIC "
         "takes a node of its own with it.\nThe network stays as it was built for all nodes, and "
         "those that are left are where they were, as a job on the first nodes would be. "
         "A spare stands wherever what it replaces stood: which leaf it "
         "is on in life is not modelled.\nLinks of one leaf alone: "
         "`network.failed_uplinks=leaf3:2`; of one spine to cores: `spine5:1` there.\n\n"
         "```\nweft sweep scenarios/planning/networks.yaml --set \"failed.nodes=0,5 %\" --set "
         "spare.nodes=0,1,2 \\\n  --set \"failed.uplinks=0,2 %\" --prices "
         "scenarios/planning/prices.yaml\n```\n"
         "\n### Past one machine\n\n"
         "`--shard I/N` runs every N-th point from the I-th on, into FILE.I-of-N; shards share "
         "nothing, not even a disk while they\nrun. `--merge N` puts their tables together into "
         "FILE: the bytes are those of one sweep alone, and merging again changes\nnothing. A "
         "shard that is missing or unfinished is named. With Slurm "
         "([script](../tools/sweep.sbatch)):\n\n"
         "```\n"
         "job=$(sbatch --parsable --array=1-16 tools/sweep.sbatch scenarios/capacity-1024.yaml "
         "--set nodes=128,256 --csv out.csv)\n"
         "srun --dependency=afterany:$job weft sweep scenarios/capacity-1024.yaml --set "
         "nodes=128,256 --csv out.csv --merge 16\n"
         "```\n\n"
         "A task that Slurm ends early goes on when it is submitted again; of some tasks alone, "
         "`SHARDS=16 sbatch --array=3,7 ...` says\nhow many shards there are in all. (`afterany`: "
         "a shard with a refused point exits with 2, and is whole.)\n"
         "\n## Keys of a sensitivity\n\n"
         "`weft sensitivity SCENARIO --json FILE` writes one JSON object "
         "([method](../models/collective/sensitivity.md)).\n" +
         sections_text(sensitivity_format(), "present") +
         "\n## Keys of a diagnosis\n\n"
         "`weft doctor EVIDENCE... --json FILE` writes one JSON object "
         "([checks](../models/doctor/README.md)).\n" +
         sections_text(doctor_format(), "present") +
         "\n## Keys of expectations\n\n"
         "`weft expect MACHINE --json FILE` writes one JSON object "
         "([method](../models/expect/README.md)).\n" +
         sections_text(expect_format(), "present") +
         "\n## Keys of a gate\n\n"
         "`weft expect MACHINE --gate FILE` writes one JSON object; `weft expect FILE --measured "
         "LOG` holds a log against it.\n" +
         sections_text(gate_format(), "present") +
         "\n## Keys of an explanation\n\n"
         "`weft explain SLOW [HEALTHY] --json FILE` writes one JSON object "
         "([method](../models/explain/README.md)).\n" +
         sections_text(explain_format(), "present");
}

}  // namespace

std::string sections_text(const std::vector<FormatSection>& sections, std::string_view left_out) {
  std::string out;
  for (const FormatSection& section : sections) {
    if (!section.path.empty()) out += fmt::format("\n### `{}`\n", section.path);
    out += fmt::format("\n{}\n\n| key | what it holds | {} | meaning |\n|---|---|---|---|\n",
                       section.meaning, left_out);
    for (const KeySpec& key : section.keys) {
      out += fmt::format("| `{}` | {} | {} | {} |\n", key.name, cell(form_text(key)),
                         cell(key.fallback.empty() ? "always" : key.fallback), cell(key.meaning));
    }
  }
  return out;
}

std::string topology_page() {
  return fmt::format(kHead, "topology") +
         "# Topologies\n\n"
         "Machines as files. `weft check FILE` validates one, `weft show FILE` prints it. A file "
         "is weft's YAML, described\nhere, or NCCL's topology XML (also RCCL's); weft tells them "
         "apart by the first character.\n\n"
         "Numbers carry their units; one without is an error that names file, line and column. "
         "Unknown keys, keys given\ntwice, anchors, aliases and tags are refused. A parameter "
         "(in `defaults` and `set`) is written as `400 Gb/s`,\nwith the origin \"assumed\" and "
         "its line as source, or as `{value: ..., origin: ..., source: ...}`; `weft list-params`\n"
         "lists them all.\n\n"
         "A small one:\n\n"
         "```yaml\n"
         "topology: two GPUs and a NIC\n"
         "nodes: 2\n"
         "node:\n"
         "  devices:\n"
         "    cpu0: {kind: cpu, part: sapphire-rapids}\n"
         "    pcisw0: {kind: switch, part: pex89144, upstream: cpu0}\n"
         "    gpu{i}: {repeat: 2, kind: gpu, part: h100-pcie, upstream: pcisw0}  # gpu0, gpu1\n"
         "    nic0: {kind: nic, part: connectx-7, upstream: pcisw0, network: fabric, set: "
         "{pcie_width: 8}}\n"
         "network:\n"
         "  fabric: {kind: one-switch, part: quantum-2}\n"
         "```\n\n"
         "## Keys of a topology\n" +
         sections_text(topology_format(), "if left out") +
         "\n## Keys of a part\n\n"
         "What `part` names is a file of models/params, built into the program.\n" +
         sections_text(part_format(), "if left out") +
         "\n## Keys of a machine shown\n\n"
         "`weft show FILE --format json` writes one JSON object. Devices, links and pairs are "
         "those "
         "of one node.\n" +
         sections_text(show_format(), "present") +
         "\n## Keys of decisions\n\n"
         "`weft nccl FILE --json FILE` writes one JSON object, in NCCL's words and numbers "
         "([what it decides](../models/nccl/decide/decisions.md)).\n" +
         sections_text(nccl_format(), "present");
}

std::string scenario_page() {
  return fmt::format(kHead, "scenario") +
         "# Scenarios and results\n\n"
         "A scenario is a question: what runs on which machine. `weft run FILE` answers it, `weft "
         "sweep` at many values,\n`weft check FILE` validates it. Command line options add to "
         "what the file says; `--set` beats `set`.\n\n"
         "```yaml\n"
         "scenario: half the nodes\n"
         "topology: ../topologies/hgx-h100-8nic.yaml\n"
         "nodes: 2\n"
         "workload: {op: allreduce, min: 1 MiB, max: 1 GiB, factor: 4}\n"
         "memory_paths: [gdr]\n"
         "env: {NCCL_NVLS_ENABLE: \"0\"}\n"
         "set: {wire.kind: infiniband, nic3.pcie_width: 8}\n"
         "```\n\n"
         "## Keys of a scenario\n" +
         sections_text(scenario_format(), "if left out") +
         "\n## Keys of a result\n\n"
         "`weft run --json FILE` writes one JSON object. Keys are only ever added within a schema; "
         "times are in microseconds,\nGB/s = 1e9 bytes/s. The same scenario, options and files "
         "give the same bytes with the same build of weft.\n" +
         sections_text(run_result_format(), "present") +
         "\n## Keys of a training step\n\n`weft step --json FILE` writes one JSON object.\n" +
         sections_text(step_result_format(), "present") +
         "\n## Keys of traffic\n\n`weft traffic --json FILE` writes one JSON object.\n" +
         sections_text(traffic_result_format(), "present") +
         "\n## Keys of a perftest\n\n`weft perftest --json FILE` writes one JSON object.\n" +
         sections_text(perftest_format(), "present") +
         "\n## Keys of copies\n\n`weft copies --json FILE` writes one JSON object.\n" +
         sections_text(copies_format(), "present") +
         "\n## Keys of a difference\n\n`weft diff A B --json FILE` writes one JSON object.\n" +
         sections_text(diff_format(), "present") +
         "\n## Keys of a replay\n\n"
         "`weft replay TRACE --json FILE` writes one JSON object ([how](../replay/README.md)).\n" +
         sections_text(replay::replay_format(), "present") +
         "\n## Columns of a replay\n\n`weft replay TRACE --csv FILE` writes one line an "
         "operation.\n" +
         sections_text({replay::replay_csv_format()}, "not empty") + measured_text() +
         calibration_text() + capacity_text();
}

}  // namespace weft
