#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/pcie/host_under_test.hpp"

namespace weft::test::pcie_h200_copies {
namespace {

/// One row of data/h200/pcie-copies.csv.
struct Row {
  std::string test;
  std::string gpus;  ///< "0+1"
  std::string direction;
  std::int64_t bytes{0};
  double us{0};
  double gigabytes_per_s{0};
};

std::vector<Row> rows() {
  std::ifstream in(std::string(WEFT_SHARED_DIR) + "/data/h200/pcie-copies.csv");
  std::vector<Row> out;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream cells(line);
    Row r;
    std::string bytes;
    std::string us;
    std::string rate;
    std::getline(cells, r.test, ',');
    std::getline(cells, r.gpus, ',');
    std::getline(cells, r.direction, ',');
    std::getline(cells, bytes, ',');
    std::getline(cells, us, ',');
    std::getline(cells, rate, ',');
    r.bytes = std::stoll(bytes);
    r.us = std::stod(us);
    r.gigabytes_per_s = std::stod(rate);
    out.push_back(r);
  }
  return out;
}

/// The machine that was measured, with what was fitted to it: models/params/h200-vm.yaml and
/// h200-vm-host.yaml.
class H200 {
 public:
  H200() : h_{"h200-vm.yaml", {}, "h200-vm-host"} {}

  DmaStream copy(const std::string& gpu, bool from_host, std::int64_t bytes) {
    const DeviceId id = h_.id("gpu" + gpu);
    return {.engine = &h_.host().add_engine(h_.host().copy_engine(id)),
            .initiator = id,
            .target = h_.id("cpu0"),
            .is_read = from_host,
            .size = Bytes{bytes},
            .transfers = 3,
            .at_a_time = 1,
            .setup = h_.m().machine().devices().duration("gpu.copy_start", id)};
  }
  /// Both or one of the directions, on each GPU.
  std::vector<DmaStream> copies(const Row& row, std::int64_t bytes) {
    std::vector<DmaStream> out;
    std::istringstream gpus(row.gpus);
    for (std::string gpu; std::getline(gpus, gpu, '+');) {
      if (row.direction != "H2D") out.push_back(copy(gpu, false, bytes));
      if (row.direction != "D2H") out.push_back(copy(gpu, true, bytes));
    }
    return out;
  }
  DmaStream kernel(const std::string& gpu, std::uint32_t blocks, bool reads) {
    const DeviceId id = h_.id("gpu" + gpu);
    DmaEngine::Settings sm = h_.host().sm_engine(id, 512 * blocks);
    // The kernel has one 16 B access a thread in flight, not NCCL's four.
    sm.tags = 512 * blocks * 16 / 128;
    return {.engine = &h_.host().add_engine(sm),
            .initiator = id,
            .target = h_.id("cpu0"),
            .is_read = reads,
            .size = Bytes{1024},
            .transfers = 800,
            .at_a_time = 160};
  }
  DmaTrafficResult run(const std::vector<DmaStream>& streams) { return h_.run(streams); }

 private:
  HostUnderTest h_;
};

/// Microseconds of one copy of a run of copies back to back, on the slowest stream.
double copy_us(const Row& row, std::int64_t bytes) {
  H200 h;
  return h.run(h.copies(row, bytes)).elapsed.as_us() / 3;
}

/// Payload rate of the slowest stream while all engines are always busy, in bytes a microsecond.
double steady_rate(const Row& row) {
  H200 h;
  std::vector<DmaStream> streams = h.copies(row, 16 << 10);
  for (DmaStream& s : streams) {
    s.setup = Duration{};
    s.at_a_time = 16;
    s.transfers = 56;
  }
  double slowest = 1e300;
  for (const DmaStreamResult& r : h.run(streams).streams) {
    slowest = std::min(slowest, r.rate.as_bytes_per_s() / 1e6);
  }
  return slowest;
}

/// The same for any size: what is beyond 256 KiB comes at the rate of engines that are always busy.
/// Remembers what it simulated.
class Copies {
 public:
  double us(const Row& row) {
    constexpr std::int64_t kLargest = 256 << 10;
    const std::int64_t first = std::min(row.bytes, kLargest);
    const double begin = remember(row, std::to_string(first), [&] { return copy_us(row, first); });
    if (row.bytes <= kLargest) return begin;
    const double rate = remember(row, "steady", [&] { return steady_rate(row); });
    return begin + static_cast<double>(row.bytes - kLargest) / rate;
  }

 private:
  template <class Simulate>
  double remember(const Row& row, const std::string& what, Simulate&& simulate) {
    const std::string key = row.gpus + row.direction + what;
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    return known_[key] = simulate();
  }
  std::map<std::string, double> known_;
};

double predicted_kernel(const Row& row) {
  H200 h;
  const auto blocks = static_cast<std::uint32_t>(std::stoul(row.test.substr(9)));
  return h.run({h.kernel(row.gpus, blocks, row.direction == "read")})
      .streams[0]
      .rate.as_gigabytes_per_s();
}

/// Relative errors of one kind of row, of times: above 0 is too slow.
struct Errors {
  std::string what;
  std::vector<double> of{};

  double bias() const {
    double sum = 0;
    for (const double e : of) sum += e;
    return sum / static_cast<double>(of.size());
  }
  std::vector<double> sorted() const {
    std::vector<double> out;
    for (const double e : of) out.push_back(std::abs(e));
    std::sort(out.begin(), out.end());
    return out;
  }
  double median() const { return sorted()[of.size() / 2]; }
  double worst() const { return sorted().back(); }
  void print() const {
    std::printf("%-34s n %3zu  bias %+5.1f %%  median %4.1f %%  worst %4.1f %%\n", what.c_str(),
                of.size(), 100 * bias(), 100 * median(), 100 * worst());
  }
};

// Fitted: the rate of copies to the host of 256 MiB by one GPU, the time of one of 64 B, and the
// two sums of four GPUs. All else is predicted; the machine is the same, so it is no independent
// one.
TEST(H200Copies, AreNearTheMeasuredOnes) {
  const std::vector<Row> measured = rows();
  if (measured.empty()) GTEST_SKIP() << "no ../shared/data/h200";
  Errors small{"one GPU, below 64 KiB"};
  Errors to_host{"one GPU, to the host"};
  Errors from_host{"one GPU, from the host"};
  Errors both{"one GPU, both ways"};
  Errors many{"several GPUs at once"};
  Errors kernels{"kernels on host memory"};
  Errors all{"all of 64 KiB and more, not fitted"};
  Copies copies;
  for (const Row& row : measured) {
    double error = 0;
    Errors* kind = nullptr;
    bool fitted = false;
    if (row.test.starts_with("copy_")) {
      error = copies.us(row) / row.us - 1;
      const bool single = row.gpus.size() == 1;
      kind = !single                  ? &many
             : row.bytes < 65536      ? &small
             : row.direction == "D2H" ? &to_host
             : row.direction == "H2D" ? &from_host
                                      : &both;
      fitted = (row.gpus == "0+1+2+3" && row.direction != "BIDIR") ||
               (row.test == "copy_single" && row.direction == "D2H");
    } else if (row.test.starts_with("zerocopy_")) {
      error = row.gigabytes_per_s / predicted_kernel(row) - 1;
      kind = &kernels;
    } else {
      continue;
    }
    kind->of.push_back(error);
    if (!fitted && kind != &small) all.of.push_back(error);
  }
  for (const Errors* e : {&small, &to_host, &from_host, &both, &many, &kernels, &all}) e->print();
  EXPECT_EQ(all.of.size(), 100U);
  EXPECT_LE(all.median(), 0.03);
  EXPECT_LE(std::abs(all.bias()), 0.03);
  // Two rows are off by more than 20 %: copies of 128 and 256 KiB in both directions at once, which
  // took 1.5 and 2 us longer than either alone. Nothing here explains that.
  const std::vector<double> sorted = all.sorted();
  EXPECT_LE(sorted[sorted.size() - 3], 0.18);
  EXPECT_LE(all.worst(), 0.25);
}

}  // namespace
}  // namespace weft::test::pcie_h200_copies
