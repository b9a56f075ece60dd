// Soft-RoCE over links that netem shapes (tests/data/rxe), against weft with the same delay and
// rate.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "replay/simulate/simulate.hpp"
#include "replay/trace/transform.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tests/trace/traces.hpp"

namespace weft::test::replay_rxe {
namespace {

using namespace weft::replay;

/// What a queue pair's operations show, recorded and replayed.
struct Shown {
  std::uint64_t bytes{0};
  double first_us{1e300};
  double last_us{0};
  std::vector<double> completions_us;

  void add(const Operation& o, double posted_us, std::optional<double> done_us) {
    bytes += o.bytes;
    first_us = std::min(first_us, posted_us);
    if (!done_us) return;
    last_us = std::max(last_us, *done_us);
    completions_us.push_back(*done_us - posted_us);
  }
  double megabytes_per_s() const { return static_cast<double>(bytes) / (last_us - first_us); }
  double median_completion_us() const {
    std::vector<double> sorted = completions_us;
    std::sort(sorted.begin(), sorted.end());
    return sorted.at(sorted.size() / 2);
  }
};

struct Both {
  Shown recorded;
  Shown predicted;
};

/// By device of the sender.
using Replayed = std::map<std::string, Both>;

Replayed replayed(const std::vector<std::string>& runs, const std::vector<std::string>& settings,
                  ReplayFidelity fidelity) {
  const TraceFolder folder;
  std::vector<std::string> files;
  for (const std::string& run : runs) {
    for (const char* end : {"client", "server"}) {
      files.push_back(std::string(WEFT_SOURCE_DIR) + "/tests/data/rxe/" + run + '.' + end +
                      ".weft");
    }
  }
  std::vector<trace::Source> sources;
  trace::merge_traces(files, folder.file("merged"), sources);
  const Recorded recorded = read_recorded(folder.file("merged"));
  const MachineUnderTest m("../tests/data/rxe/rxe-vm.yaml", settings, nodes_needed(recorded, {}));
  const Ends ends(m.machine(), recorded, {});
  const Replay replay = simulate(m.machine(), recorded, ends, Loop::kClosed, fidelity);
  Replayed out;
  for (std::size_t i = 0; i < recorded.operations.size(); ++i) {
    const Operation& o = recorded.operations[i];
    if (is_receive(o) || o.left_out != nullptr) continue;
    Both& both = out[recorded.devices.at(recorded.pairs.at(o.pair).device).name];
    const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e3; };
    const std::optional<double> done = o.done_ns == 0 ? std::nullopt : std::optional(us(o.done_ns));
    both.recorded.add(o, us(o.posted_ns), done);
    const Predicted& p = replay.operations[i];
    both.predicted.add(o, p.posted.value().as_us(),
                       p.done ? std::optional(p.done->as_us()) : std::nullopt);
  }
  return out;
}

class Rxe : public testing::TestWithParam<ReplayFidelity> {
 protected:
  void near(const std::string& what, double predicted, double recorded, double allowed = 0.10) {
    const double error = predicted / recorded - 1;
    std::printf("%-24s recorded %9.4g, predicted %9.4g: %+.1f %%\n", what.c_str(), recorded,
                predicted, 100 * error);
    EXPECT_NEAR(error, 0, allowed) << what;
  }
};

// 10 ms each way: what is sent is acknowledged after 20 ms.
TEST_P(Rxe, ADelayIsAWiresLength) {
  const Replayed got = replayed({"delay-10ms"}, {"wire.cable_length=1000000 m"}, GetParam());
  ASSERT_EQ(got.size(), 2U);
  for (const auto& [device, both] : got) {
    near("delay of " + device + ", us", both.predicted.median_completion_us(),
         both.recorded.median_completion_us());
    EXPECT_GT(both.predicted.median_completion_us(), 20'000);
  }
}

TEST_P(Rxe, ARateIsALinks) {
  const Replayed got =
      replayed({"rate-80mbit"}, {"wire.rate=80 Mb/s", "wire.cable_length=100000 m"}, GetParam());
  const Both& both = got.at("rxe0");
  near("rate, MB/s", both.predicted.megabytes_per_s(), both.recorded.megabytes_per_s());
  near("completion, us", both.predicted.median_completion_us(),
       both.recorded.median_completion_us());
}

const std::vector<std::string> kStar{"wire.rate=20 Mb/s", "wire.cable_length=10000 m"};

TEST_P(Rxe, AStarsPortIsShared) {
  const double alone =
      replayed({"star-alone"}, kStar, GetParam()).at("n0").predicted.megabytes_per_s();
  const Replayed got = replayed({"star-incast-0", "star-incast-1"}, kStar, GetParam());
  double sum = 0;
  for (const char* device : {"n0", "n1"}) {
    const Both& both = got.at(device);
    near(std::string("incast of ") + device + ", MB/s", both.predicted.megabytes_per_s(),
         both.recorded.megabytes_per_s());
    sum += both.predicted.megabytes_per_s();
  }
  EXPECT_LT(sum, 1.15 * alone);
  EXPECT_GT(sum, 0.95 * alone);
}

TEST_P(Rxe, PairsThatShareNoPortDoNotMeet) {
  near("alone, MB/s",
       replayed({"star-alone"}, kStar, GetParam()).at("n0").predicted.megabytes_per_s(),
       replayed({"star-alone"}, kStar, GetParam()).at("n0").recorded.megabytes_per_s());
  const Replayed got = replayed({"star-disjoint-0", "star-disjoint-2"}, kStar, GetParam());
  for (const char* device : {"n0", "n2"}) {
    const Both& both = got.at(device);
    near(std::string("disjoint, ") + device + ", MB/s", both.predicted.megabytes_per_s(),
         both.recorded.megabytes_per_s());
  }
}

INSTANTIATE_TEST_SUITE_P(Both, Rxe,
                         testing::Values(ReplayFidelity::kFluid, ReplayFidelity::kPackets),
                         [](const auto& of) {
                           return of.param == ReplayFidelity::kFluid ? "fluid" : "packets";
                         });

}  // namespace
}  // namespace weft::test::replay_rxe
