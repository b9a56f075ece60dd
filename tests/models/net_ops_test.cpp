// When NCCL's proxies posted sends and receives, and saw them end, on H200s with emulated NICs
// (tests/data/h200/net-ops.csv), against when they do so here.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/nccl/execute/collective_plan.hpp"
#include "models/nccl/schedule.hpp"
#include "models/transport/fluid_transport.hpp"
#include "sim/io/csv.hpp"
#include "sim/run/runner.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_net_ops {
namespace {

using Times = std::map<std::string, std::vector<double>>;  // microseconds, by "send time"...

/// From when a message was posted until it was done, and between posts of a connection.
class Watch final : public RunObserver {
 public:
  /// `call`: what a proxy works on a send before it says that it has begun.
  Watch(const Plan& plan, const EventQueue& events, Duration call) : events_{events}, call_{call} {
    for (const NamedFlag& n : plan.names) of_flag_[n.flag] = &n;
  }
  void on_signalled(FlagIndex flag, std::uint64_t tokens) override {
    const auto found = of_flag_.find(flag);
    if (found == of_flag_.end()) return;
    for (std::uint64_t t = 0; t < tokens; ++t) {
      see(*found->second, (events_.now() - Time{}).as_us());
    }
  }
  const Times& times() const { return times_; }

 private:
  void see(const NamedFlag& n, double now) {
    const bool is_send = n.what == "send begun" || n.what == "sent";
    std::deque<double>& open = open_[n.of + (is_send ? " send" : " recv")];
    if (n.what == "sent" || n.what == "received") {
      times_[is_send ? "send time" : "recv time"].push_back(now - open.front());
      open.pop_front();
      return;
    }
    if (is_send) {
      now -= call_.as_us();
      const auto [last, is_first] = last_.try_emplace(n.of, now);
      if (!is_first) times_["send gap"].push_back(now - last->second);
      last->second = now;
    }
    open.push_back(now);
  }

  const EventQueue& events_;
  Duration call_;
  std::map<FlagIndex, const NamedFlag*> of_flag_;
  std::map<std::string, std::deque<double>> open_;
  std::map<std::string, double> last_;
  Times times_;
};

Times predicted(MemoryPath path, Bytes bytes) {
  MachineUnderTest m("h200-vm.yaml",
                     {"gpu.count=1", "nic.count=1", "nccl.algo=Ring", "nccl.proto=Simple",
                      "nccl.channels=2", "nic.rate=200 Gb/s", "wire.rate=200 Gb/s"},
                     4);
  const Schedule schedule = make_schedule(m.devices(), path);
  const Plan plan = make_plan(m.devices(), schedule, Op::kAllReduce, bytes);
  EventQueue events;
  CauseTable causes;
  FluidTransport transport(m.machine(), events, causes);
  const char* call = path == MemoryPath::kGdr ? "nic.copy_call" : "nic.message_time";
  Watch watch(plan, events, m.devices().duration(call, m.id("emu0")));
  Runner runner(transport, events, causes);
  runner.add(plan, &watch);
  runner.run();
  return watch.times();
}

/// The largest distance of two distributions, of which one is known by its 5 % quantiles
/// (Kolmogorov-Smirnov's, to 5 %).
double distance(const std::vector<double>& quantiles, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  double most = 0;
  for (std::size_t q = 0; q < quantiles.size(); ++q) {
    const auto below = std::upper_bound(times.begin(), times.end(), quantiles[q]) - times.begin();
    const double share = static_cast<double>(below) / static_cast<double>(times.size());
    most = std::max(most, std::abs(share - 0.05 * static_cast<double>(q + 1)));
  }
  return most;
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

struct MeasuredTimes {
  std::string path, what;
  std::int64_t bytes;
  std::vector<double> quantiles;
};

std::vector<MeasuredTimes> measured() {
  std::ifstream file(std::string(WEFT_SOURCE_DIR) + "/tests/data/h200/net-ops.csv");
  std::vector<MeasuredTimes> out;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = csv_cells(line);
    MeasuredTimes row{cells.at(0), cells.at(2) + " " + cells.at(3), std::stoll(cells.at(1)), {}};
    for (std::size_t c = 6; c < cells.size(); ++c) row.quantiles.push_back(std::stod(cells[c]));
    out.push_back(std::move(row));
  }
  return out;
}

// The whole all-reduces of these runs were not fitted, others of their kind were
// (models/nic/emulated.md).
TEST(NetOps, TimesOfProxiesAgreeInDistribution) {
  std::map<std::string, double> distances;  // mean, by memory path
  for (const MeasuredTimes& row : measured()) {
    const bool is_gdr = row.path == "gdr";
    const Times times =
        predicted(is_gdr ? MemoryPath::kGdr : MemoryPath::kHostStaged, Bytes{row.bytes});
    const std::vector<double>& here = times.at(row.what);
    const double apart = distance(row.quantiles, here);
    std::printf("%s, %lld B, %s: median %.1f us, measured %.1f, distance %.2f\n", row.path.c_str(),
                static_cast<long long>(row.bytes), row.what.c_str(), median(here), row.quantiles[9],
                apart);
    distances[row.path] += apart / 9;
    if (!is_gdr) continue;
    EXPECT_NEAR(median(here) / row.quantiles[9], 1, 0.35) << row.what << row.bytes;
  }
  EXPECT_LE(distances.at("gdr"), 0.38);
  EXPECT_LE(distances.at("host-staged"), 0.45);
}

}  // namespace
}  // namespace weft::test::models_net_ops
