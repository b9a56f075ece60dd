// All-reduces as NCCL posted them to emulated NICs (tests/data/README.md), replayed on real ones of
// the same rate.
#include <algorithm>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "replay/simulate/simulate.hpp"
#include "replay/trace/transform.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tests/trace/traces.hpp"

namespace weft::test::replay_net_ops {
namespace {

using namespace weft::replay;

std::vector<std::string> captures(int gdr) {
  std::vector<std::string> out;
  for (int rank = 0; rank < 4; ++rank) {
    out.push_back(std::string(WEFT_SOURCE_DIR) + "/tests/data/h200/net-ops/allreduce-Ring-gdr" +
                  std::to_string(gdr) + "-rank" + std::to_string(rank) + ".csv.gz");
  }
  return out;
}

/// From the first post to the last completion of some sends.
struct Span {
  double from_us{1e300};
  double to_us{0};

  void add(double from, double to) {
    from_us = std::min(from_us, from);
    to_us = std::max(to_us, to);
  }
  double us() const { return to_us - from_us; }
};

struct AllReduce {
  Span recorded;
  Span predicted;
};

// The five all-reduces of 64 MiB: sends 120 to 359 of each queue pair. Of each all-reduce a rank
// sends on each of two channels 3/4 of the data twice, 48 messages of 1 MiB.
std::vector<AllReduce> all_reduces_of_64_mib(const Recorded& recorded, const Replay& replay) {
  std::map<std::uint32_t, std::size_t> sent;
  std::vector<AllReduce> out(5);
  for (std::size_t i = 0; i < recorded.operations.size(); ++i) {
    const Operation& o = recorded.operations[i];
    if (is_receive(o)) continue;
    const std::size_t n = sent[o.pair]++;
    if (n < 120) continue;
    AllReduce& one = out.at((n - 120) / 48);
    one.recorded.add(static_cast<double>(o.posted_ns) / 1e3, static_cast<double>(o.done_ns) / 1e3);
    const Predicted& p = replay.operations[i];
    one.predicted.add(p.posted.value().as_us(), p.done.value().as_us());
  }
  return out;
}

std::vector<AllReduce> replayed(int gdr, Loop loop) {
  const TraceFolder folder;
  trace::import_net_operations(captures(gdr), folder.file("t"));
  const Recorded recorded = read_recorded(folder.file("t"));
  EXPECT_TRUE(recorded.left_out.empty());
  const MachineUnderTest m("hgx-h200-8nic.yaml", {"wire.rate=200 Gb/s"}, 4);
  const Ends ends(m.machine(), recorded, {});
  return all_reduces_of_64_mib(recorded,
                               simulate(m.machine(), recorded, ends, loop, ReplayFidelity::kFluid));
}

// Two that were timed, behind three that warmed up. 2 x 3/4 x 64 MiB at 25 GB/s are 4027 us.
TEST(NetOps, LargeAllReducesTakeTheirRecordedTime) {
  for (const int gdr : {1, 0}) {
    for (const Loop loop : {Loop::kClosed, Loop::kOpen}) {
      const std::vector<AllReduce> all = replayed(gdr, loop);
      for (const std::size_t i : {std::size_t{3}, std::size_t{4}}) {
        const double error = all[i].predicted.us() / all[i].recorded.us() - 1;
        EXPECT_NEAR(error, 0, 0.15) << gdr << ' ' << i;
        EXPECT_GT(all[i].predicted.us(), 4027);
        RecordProperty(
            std::to_string(gdr) + (loop == Loop::kOpen ? "open" : "closed") + std::to_string(i),
            std::to_string(error));
      }
    }
  }
}

}  // namespace
}  // namespace weft::test::replay_net_ops
