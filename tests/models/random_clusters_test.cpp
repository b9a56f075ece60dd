// Random symmetric clusters, folded and rank by rank: the same times, and the same causes of them.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/collective/sample.hpp"
#include "sim/base/random.hpp"
#include "tests/models/prediction.hpp"
#include "tests/seeds.hpp"

namespace weft::test::models_random_clusters {
namespace {

using Settings = std::vector<std::string>;

std::vector<ResultRow> run(const Scenario& scenario, const Settings& settings, bool folds) {
  PredictOptions options;
  options.threads = 1;
  options.folds = folds;
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  return predict(scenario, options, make_catalog()).rows;
}

/// Shares of time by kind of cause: where it was is one of several that are alike.
std::map<std::string, double> shares(const ResultRow& row) {
  std::map<std::string, double> out;
  for (const CauseShare& share : row.limited_by) out[share.cause] += share.share;
  return out;
}

void expect_same(const Scenario& scenario, const Settings& settings) {
  std::string all;
  for (const std::string& text : settings) all += " " + text;
  SCOPED_TRACE(scenario.topology + " " + scenario.op + " " +
               std::to_string(scenario.sizes[0].count()) + " B x" +
               std::to_string(scenario.nodes.value()) + all);
  const std::vector<ResultRow> whole = run(scenario, settings, false);
  const std::vector<ResultRow> folded = run(scenario, settings, true);
  ASSERT_EQ(folded.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    SCOPED_TRACE(whole[i].memory_path + " " + whole[i].algo + " " + whole[i].proto);
    EXPECT_TRUE(folded[i].extended.empty());
    EXPECT_NEAR(folded[i].time_us / whole[i].time_us, 1, 1e-9);
    EXPECT_NEAR(folded[i].nic_gb_per_s, whole[i].nic_gb_per_s, 1e-9 * whole[i].nic_gb_per_s);
    std::map<std::string, double> apart = shares(folded[i]);
    for (const auto& [cause, share] : shares(whole[i])) apart[cause] -= share;
    for (const auto& [cause, share] : apart) EXPECT_NEAR(share, 0, 1e-6) << cause;
  }
}

const std::vector<Settings> kSeveralSwitches{
    {"network.kind=leaf-spine", "network.ports=32"},
    {"network.kind=leaf-spine", "network.ports=32", "network.placement=round-robin"},
    {"network.kind=rail-optimised", "network.ports=64"},
    {"network.kind=leaf-spine", "network.ports=32", "network.oversubscription=2"}};

/// What seeds choose from.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : stream_{random_stream(seed, "fold")} {}

  template <class T>
  const T& of(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(from.size()))];
  }
  std::uint64_t below(std::uint64_t n) { return uniform_below(stream_, n); }

 private:
  std::mt19937_64 stream_;
};

TEST(RandomClusters, FewNodesFoldToTheWholeRun) {
  const std::vector<std::string> ops{"allreduce", "allgather", "reducescatter", "broadcast",
                                     "reduce",    "alltoall",  "sendrecv"};
  const std::vector<std::string> topologies{
      "hgx-h100-8nic.yaml", "hgx-h100-4nic.yaml",        "hgx-h100-2nic.yaml",
      "dgx-h100.yaml",      "genoa-2p-same-switch.yaml", "hgx-h800-4nic.yaml",
      "hgx-a100.yaml",      "sapphire-rapids-2p.yaml",   "hgx-b200-8nic-cx8.yaml"};
  std::vector<Settings> networks = kSeveralSwitches;
  networks.insert(networks.end(),
                  {{}, {"network.kind=leaf-spine", "network.ports=32", "wire.routing=ecmp"}});
  for (std::uint64_t seed = 1; seed <= seeds(12); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Choices choose(seed);
    const std::string op = choose.of(ops);
    const std::string topology = choose.of(topologies);
    const auto most = is_chain(parse_op(op)) ? Sample::kOfRings : 6;  // beyond few stand for all
    const auto nodes = static_cast<std::uint32_t>(2 + choose.below(most - 1));
    const Bytes bytes{static_cast<std::int64_t>(1) << (10 + choose.below(14))};
    expect_same(scenario_of(topology, nodes, op, bytes), choose.of(networks));
  }
}

/// An operation as it is forced to run.
struct Forced {
  std::string op;
  std::string algorithm;
  std::string protocol;
};

/// All that can be forced over several nodes. Chains are left out: a few of their nodes stand for
/// all (Sample).
std::vector<Forced> all_forced() {
  std::vector<Forced> out;
  for (const char* protocol : {"LL", "LL128", "Simple"}) {
    for (const char* op : {"allreduce", "allgather", "reducescatter"}) {
      out.push_back({op, "Ring", protocol});
    }
    out.push_back({"allreduce", "Tree", protocol});
  }
  out.push_back({"allreduce", "NVLSTree", "Simple"});
  out.push_back({"allgather", "PAT", "Simple"});
  out.push_back({"reducescatter", "PAT", "Simple"});
  out.push_back({"alltoall", "", ""});
  out.push_back({"sendrecv", "", ""});
  return out;
}

// Up to 256 GPUs on several switches, of whose nodes none is a sample's: those run are classes.
TEST(RandomClusters, UpTo256GpusFoldToTheWholeRun) {
  const std::vector<std::string> topologies{"hgx-h100-8nic.yaml", "hgx-h100-4nic.yaml",
                                            "dgx-h100.yaml", "hgx-b200-8nic-cx8.yaml"};
  for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Choices choose(seed);
    for (const Forced& forced : all_forced()) {
      for (const std::uint32_t nodes : {16U, 32U}) {
        const std::string topology = choose.of(topologies);
        const Bytes bytes{static_cast<std::int64_t>(1) << (10 + choose.below(11))};
        Settings settings = choose.of(kSeveralSwitches);
        if (forced.algorithm == "PAT") settings.emplace_back("gpu.count=1");
        if (!forced.algorithm.empty()) {
          settings.push_back("nccl.algo=" + forced.algorithm);
          settings.push_back("nccl.proto=" + forced.protocol);
          settings.emplace_back("nccl.channels=2");
        }
        Scenario scenario = scenario_of(topology, nodes, forced.op, bytes);
        scenario.memory_paths = {choose.of(std::vector<std::string>{"gdr", "host-staged"})};
        expect_same(scenario, settings);
      }
    }
  }
}

}  // namespace
}  // namespace weft::test::models_random_clusters
