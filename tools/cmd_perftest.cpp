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
#include "sim/io/json.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"

namespace weft {
namespace {

struct PerftestArguments {
  std::string topology;
  std::string op{"write"};
  std::string memory{"gpu"};
  std::string post{"cpu"};
  std::string size{"65536"};
  std::string gpu;
  std::string json;
  bool all{false};
  PerftestOptions options;
  unsigned iterations{0};
  unsigned tx_depth{128};
  unsigned qps{1};
  unsigned cq_moderation{0};
  unsigned rx_depth{512};
  unsigned post_list{1};
  std::vector<std::string> set;
};

// perftest's own bounds; sizes above its 8 MiB were seen in the wild.
constexpr unsigned kMostDepth = 15'000;
constexpr unsigned kMostQps = 256;
constexpr unsigned kMostModeration = 1024;
constexpr unsigned kMostIterations = 100'000'000;
constexpr unsigned kFewestIterations = 5;
constexpr Bytes kLargest = Bytes::mib(64);
constexpr Bytes kLargestOfAll = Bytes::mib(8);
constexpr Bytes kMostSimulated = Bytes::gib(8);

std::vector<Bytes> sizes_of(const PerftestArguments& arguments) {
  std::vector<Bytes> out;
  if (arguments.all) {
    for (Bytes size{2}; size <= kLargestOfAll; size = size * 2) out.push_back(size);
    return out;
  }
  for (std::size_t begin = 0; begin <= arguments.size.size();) {
    const std::size_t end = std::min(arguments.size.find(',', begin), arguments.size.size());
    const Bytes size = parse_size(arguments.size.substr(begin, end - begin));
    if (size < Bytes{1} || size > kLargest) {
      throw InputError(fmt::format("--size {}: allowed are 1 B to {}", format_size(size),
                                   format_size(kLargest)));
    }
    out.push_back(size);
    begin = end + 1;
  }
  return out;
}

PerftestOptions options_of(const PerftestArguments& arguments, const std::vector<Bytes>& sizes) {
  const auto at_least_one = [](const char* option, unsigned value) {
    if (value == 0) throw InputError(std::string(option) + " must be at least 1");
  };
  at_least_one("--tx-depth", arguments.tx_depth);
  at_least_one("--qp", arguments.qps);
  at_least_one("--rx-depth", arguments.rx_depth);
  at_least_one("--post-list", arguments.post_list);
  if (arguments.iterations != 0 && arguments.iterations < kFewestIterations) {
    throw InputError(
        fmt::format("--iters {}: at least {}, or 0", arguments.iterations, kFewestIterations));
  }
  PerftestOptions options = arguments.options;
  options.op = arguments.op == "read"   ? RdmaOp::kRead
               : arguments.op == "send" ? RdmaOp::kSend
                                        : RdmaOp::kWrite;
  options.memory = arguments.memory == "gpu"    ? PerftestMemory::kGpu
                   : arguments.memory == "host" ? PerftestMemory::kHost
                                                : PerftestMemory::kStaged;
  options.post = arguments.post == "gpu"     ? PerftestPost::kGpu
                 : arguments.post == "proxy" ? PerftestPost::kProxy
                                             : PerftestPost::kCpu;
  options.iterations = arguments.iterations;
  options.tx_depth = arguments.tx_depth;
  options.qps = arguments.qps;
  options.cq_moderation = arguments.cq_moderation;
  options.all_sizes = arguments.all;
  options.rx_depth = arguments.rx_depth;
  options.post_list = arguments.post_list;
  double most = 0;
  for (const Bytes size : sizes) most += size.as_double() * options.iterations * options.qps;
  const double messages =
      static_cast<double>(sizes.size()) * options.iterations * options.qps * 4096.0;
  if (std::max(most, messages) > kMostSimulated.as_double()) {
    throw InputError(fmt::format(
        "--iters {}: more than the {} of packets that one run may simulate; 0 takes as many as "
        "show a steady rate",
        options.iterations, format_size(kMostSimulated)));
  }
  return options;
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

Json json_of(const Registration& r) {
  return Json::object({{"bytes", r.bytes.count()},
                       {"page", r.page.count()},
                       {"pages", r.pages},
                       {"time_us", r.time.as_us()},
                       {"bar1_used", r.bar1_used.count()}});
}

Json row_json(const PerftestArguments& arguments, const PerftestRow& row) {
  return Json::object({{"op", arguments.op},
                       {"mem", arguments.memory},
                       {"post", arguments.post},
                       {"bytes", row.bytes.count()},
                       {"iterations", static_cast<std::int64_t>(row.iterations)},
                       {"cq_moderation", static_cast<std::int64_t>(row.cq_moderation)},
                       {"bw_Gbps", row.average.as_gigabits_per_s()},
                       {"bw_peak_Gbps", row.peak.as_gigabits_per_s()},
                       {"msg_rate_Mpps", row.messages_per_s / 1e6},
                       {"latency_us", row.latency.as_us()},
                       {"registration", Json::object({{"from", json_of(row.from_registration)},
                                                      {"to", json_of(row.to_registration)}})},
                       {"limited_by", row.limited_by},
                       {"probes", to_json(row.probes)},
                       {"trajectory", fmt::format("{:016x}", row.trajectory)}});
}

void run(const PerftestArguments& arguments) {
  const std::vector<Bytes> sizes = sizes_of(arguments);
  const PerftestOptions options = options_of(arguments, sizes);
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  Params params(catalog);
  TopologySpec spec = read_topology(arguments.topology, catalog);
  apply_settings(parse_settings(arguments.set, arguments.gpu), spec, params);
  const std::uint32_t nodes = std::max(spec.nodes, perftest_nodes(options));
  const Fabric fabric(std::move(spec), nodes);
  DeviceParams devices(fabric, params, parts);
  const Machine machine(devices);
  for (const std::string& note : fabric.spec().notes) std::cerr << "note: " << note << '\n';

  const PerftestEnds ends = perftest_ends(machine, options);
  const bool quiet = arguments.json == "-";
  const auto name = [&fabric](DeviceId device) { return fabric.full_name(device); };
  if (!quiet) {
    std::cout << fmt::format(
        "# weft perftest: RDMA {}, {} ({}) -> {} ({}), {} memory{}\n"
        "# {} queue pair{}, tx depth {}, CQ moderation {}, MTU {} B; rates while steady, latency "
        "of "
        "one message alone\n",
        arguments.op, name(ends.from), name(ends.from_nic), name(ends.to), name(ends.to_nic),
        arguments.memory, options.bidirectional ? ", both ways" : "", options.qps,
        options.qps == 1 ? "" : "s", options.tx_depth, moderation_text(options, sizes),
        params.number("wire.mtu"));
    std::cout << kColumns << std::flush;
  }
  Json results = Json::array();
  for (const Bytes size : sizes) {
    const PerftestRow row = perftest(machine, options, size);
    if (!quiet) {
      std::cout << row_text(row) << std::flush;
      if (size == sizes.back()) {
        std::cout << fmt::format("# registered for {}: {} ({}), {} ({})\n", format_size(size),
                                 text_of(row.from_registration), name(ends.from),
                                 text_of(row.to_registration), name(ends.to));
      }
    }
    results.push(row_json(arguments, row));
  }
  if (arguments.json.empty()) return;
  Json out = Json::object({{"schema", "weft.perftest/1"},
                           {"from", name(ends.from)},
                           {"to", name(ends.to)},
                           {"from_nic", name(ends.from_nic)},
                           {"to_nic", name(ends.to_nic)},
                           {"tx_depth", options.tx_depth},
                           {"qps", options.qps},
                           {"bidirectional", options.bidirectional}});
  out.set("results", std::move(results));
  write_text_file(arguments.json, out.dump());
}

}  // namespace

void add_perftest_command(CommandLine& line) {
  const auto arguments = std::make_shared<PerftestArguments>();
  line.add("perftest",
           "Point-to-point RDMA between two GPUs or sockets, as ib_write_bw and its kin measure it")
      .argument("topology", arguments->topology, "topology YAML or NCCL XML")
      .option("--op", arguments->op, "what is posted", {"write", "read", "send"})
      .option("--mem", arguments->memory,
              "where the data are: the GPUs (GPUDirect RDMA), host memory, or the GPUs by way of "
              "pinned host memory",
              {"gpu", "host", "staged"})
      .option(
          "--post", arguments->post,
          "who posts: a CPU thread; a thread of the GPU for each queue pair (IBGDA); or these by "
          "way of a CPU thread",
          {"cpu", "gpu", "proxy"})
      .option("--from", arguments->options.from, "GPU or CPU that posts, and its node")
      .option("--to", arguments->options.to, "the other end")
      .option("--from-nic", arguments->options.from_nic, "its NIC; the nearest unless given")
      .option("--to-nic", arguments->options.to_nic, "the other end's")
      .option("--size", arguments->size, "message sizes, separated by commas")
      .flag("--all", arguments->all, "all powers of two from 2 B to 8 MiB")
      .option("--iters", arguments->iterations,
              "messages of each queue pair; 0: as many as show a steady rate", kMostIterations)
      .option("--tx-depth", arguments->tx_depth, "requests that a queue pair may have in flight",
              kMostDepth)
      .option("--qp", arguments->qps, "queue pairs", kMostQps)
      .option("--cq-mod", arguments->cq_moderation,
              "one completion for so many requests; 0: as perftest, 100 and above 8 KiB 1, with "
              "--all always 100",
              kMostModeration)
      .option("--rx-depth", arguments->rx_depth, "receives that a queue pair has posted, for sends",
              kMostDepth)
      .option("--post-list", arguments->post_list, "requests that are posted with one doorbell",
              kMostDepth)
      .flag("--bidirectional", arguments->options.bidirectional,
            "both ends post; bandwidths are of both together")
      .option("--gpu", arguments->gpu, "which GPUs these are, such as h100-sxm")
      .option("--set", arguments->set, "a parameter, KEY=VALUE with its unit; repeatable")
      .option("--json", arguments->json, "write results as JSON; '-' is standard output")
      .example("weft perftest topologies/hgx-h100-8nic.yaml --op write --mem gpu --size 64K,1M")
      .action([arguments] { run(*arguments); });
}

}  // namespace weft
