#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/collective/settings.hpp"
#include "models/perftest/perftest.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "tools/assembled.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/perftest_json.hpp"
#include "tools/predict_arguments.hpp"

namespace weft {
namespace {

struct PerftestArguments {
  std::string topology;
  std::string size;  // none: 64 KiB
  std::string seed;
  std::string json;
  PerftestRequest request;
  std::vector<std::string> set;
  std::string params;
};

std::vector<Bytes> sizes_of(const PerftestArguments& arguments) {
  if (arguments.request.all && !arguments.size.empty()) {
    throw InputError("--all and --size: give one");
  }
  if (arguments.request.all) return all_perftest_sizes();
  if (arguments.size.empty()) return {Bytes::kib(64)};
  std::vector<Bytes> out;
  for (const std::string& size : comma_separated(arguments.size)) out.push_back(parse_size(size));
  return out;
}

constexpr const char* kColumns =
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]   "
    "latency[usec]   limited by\n";

std::string row_text(const PerftestRow& row) {
  return fmt::format(" {:<10} {:<14} {:<18.2f} {:<20.2f} {:<15.6f} {:<15.2f} {}\n",
                     row.bytes.count(), row.iterations, row.peak.as_gigabits_per_s(),
                     row.average.as_gigabits_per_s(), row.messages_per_s / 1e6, row.latency.as_us(),
                     row.limited_by);
}

std::string text_of(const Registration& r) {
  return fmt::format("{} x {} in {:.1f} us", r.pages, format_size(r.page), r.time.as_us());
}

/// "100", or "100, above 8 KiB 1" where sizes have different ones.
std::string moderation_text(const PerftestOptions& options, const std::vector<Bytes>& sizes) {
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  const std::uint32_t small = cq_moderation(options, *least);
  const std::uint32_t large = cq_moderation(options, *most);
  return small == large ? fmt::format("{}", small)
                        : fmt::format("{}, above 8 KiB {}", small, large);
}

void tell(const std::string& note) {
  if (!note.empty()) std::cerr << "note: " << note << '\n';
}

void run(const PerftestArguments& arguments) {
  const std::vector<Bytes> sizes = sizes_of(arguments);
  PerftestRequest request = arguments.request;
  request.seed = parse_seed(arguments.seed);
  const PerftestOptions options = perftest_options(request, sizes);
  std::vector<ScenarioSetting> settings = parameter_set(arguments.params).set;
  for (ScenarioSetting& s : perftest_settings(request, parse_settings(arguments.set))) {
    settings.push_back(std::move(s));
  }
  const Assembled on(read_topology(arguments.topology, make_catalog()), settings,
                     perftest_nodes(options));
  for (const std::string& note : on.fabric.spec().notes) tell(note);
  tell(no_effect_on_perftest(parse_settings(arguments.set), on.machine));
  const PerftestEnds ends = perftest_ends(on.machine, options);
  tell(without_effect(request, options));
  const bool quiet = arguments.json == "-";
  const auto name = [&on](DeviceId device) { return on.fabric.full_name(device); };
  if (!quiet) {
    std::cout << fmt::format(
        "# weft perftest: RDMA {}, {} ({}) -> {} ({}), {} memory{}\n"
        "# {} queue pair{}, tx depth {}, CQ moderation {}, MTU {} B; rates while steady, latency "
        "of "
        "one message alone\n",
        request.op, name(ends.from), name(ends.from_nic), name(ends.to), name(ends.to_nic),
        request.memory, options.bidirectional ? ", both ways" : "", options.qps,
        options.qps == 1 ? "" : "s", options.tx_depth, moderation_text(options, sizes),
        on.params.number("wire.mtu"));
    std::cout << kColumns << std::flush;
  }
  PerftestReport report{
      request, options, name(ends.from), name(ends.to), name(ends.from_nic), name(ends.to_nic), {}};
  for (const Bytes size : sizes) {
    const PerftestRow& row = report.rows.emplace_back(perftest(on.machine, options, size));
    if (quiet) continue;
    std::cout << row_text(row) << std::flush;
    if (report.rows.size() == sizes.size()) {
      std::cout << fmt::format("# registered for {}: {} ({}), {} ({})\n", format_size(size),
                               text_of(row.from_registration), report.from,
                               text_of(row.to_registration), report.to);
    }
  }
  tell(seed_note(request, report.rows));
  tell(outage_before_rates(on.machine, ends, report.rows));
  if (!arguments.json.empty()) write_text_file(arguments.json, to_json(report).dump());
}

}  // namespace

void add_perftest_command(CommandLine& line) {
  const auto arguments = std::make_shared<PerftestArguments>();
  line.add("perftest",
           "Point-to-point RDMA between two GPUs or sockets, as ib_write_bw and its kin measure it")
      .argument("topology", arguments->topology, "topology YAML or NCCL XML")
      .option("--op", arguments->request.op, "what is posted", {"write", "read", "send"})
      .option("--mem", arguments->request.memory,
              "where the data are: the GPUs (GPUDirect RDMA), host memory, or the GPUs by way of "
              "pinned host memory",
              {"gpu", "host", "staged"})
      .option(
          "--post", arguments->request.post,
          "who posts: a CPU thread; a thread of the GPU for each queue pair (IBGDA); or these by "
          "way of a CPU thread",
          {"cpu", "gpu", "proxy"})
      .option("--from", arguments->request.options.from, "GPU or CPU that posts, and its node")
      .option("--to", arguments->request.options.to, "the other end")
      .option("--from-nic", arguments->request.options.from_nic,
              "its NIC; the nearest unless given")
      .option("--to-nic", arguments->request.options.to_nic, "the other end's")
      .option("--size", arguments->size, "message sizes, separated by commas; 64 KiB unless given")
      .flag("--all", arguments->request.all, "all powers of two from 2 B to 8 MiB")
      .option("--iters", arguments->request.iterations,
              "messages of each queue pair; 0: as many as show a steady rate", kMostIterations)
      .option("--tx-depth", arguments->request.tx_depth,
              "requests that a queue pair may have in flight", kMostDepth)
      .option("--qp", arguments->request.qps, "queue pairs", kMostQps)
      .option("--cq-mod", arguments->request.cq_moderation,
              "one completion for so many requests; 0: as perftest, 100 and above 8 KiB 1, with "
              "--all always 100",
              kMostModeration)
      .option("--rx-depth", arguments->request.rx_depth,
              "receives that a queue pair has posted, for sends", kMostDepth)
      .option("--post-list", arguments->request.post_list,
              "requests that are posted with one doorbell", kMostDepth)
      .flag("--bidirectional", arguments->request.options.bidirectional,
            "both ends post; bandwidths are of both together")
      .option("--gpu", arguments->request.gpu, "which GPUs these are, such as h100-sxm")
      .option("--set", arguments->set, "a parameter, KEY=VALUE with its unit; repeatable")
      .option("--params", arguments->params, kParamsHelp)
      .option("--seed", arguments->seed, "seed of all that is random, as wire.seed; 1 unless given")
      .output("--json", arguments->json, "write results as JSON; '-' is standard output")
      .example("weft perftest topologies/hgx-h100-8nic.yaml --op write --mem gpu --size 64K,1M")
      .action([arguments] { run(*arguments); });
}

}  // namespace weft
