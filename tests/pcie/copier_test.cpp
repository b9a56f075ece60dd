#include "models/transport/copier.hpp"

#include <array>
#include <map>

#include <gtest/gtest.h>

#include "tests/pcie/host_under_test.hpp"

namespace weft::test::pcie_copier {
namespace {

std::vector<std::string> with_large_buffers(std::vector<std::string> settings) {
  settings.emplace_back("cpu.dma_buffers=large");
  return settings;
}

/// A GPU under a socket of the measured H200 machine and what its copies took.
class Copies {
 public:
  explicit Copies(const std::vector<std::string>& settings = {})
      : h_{"h200-vm.yaml", with_large_buffers(settings)}, copier_{h_.host(), h_.id("gpu0")} {}

  void copy(bool from_host, std::int64_t bytes, std::uint64_t tag) {
    const DeviceId gpu = h_.id("gpu0");
    const DeviceId cpu = h_.id("cpu0");
    const Leg leg = from_host ? copy_leg(gpu, cpu, gpu) : copy_leg(gpu, gpu, cpu);
    copier_.copy(copier_.engine(leg), {.offset = std::uint64_t{from_host} << 28,
                                       .bytes = Bytes{bytes},
                                       .tag = tag,
                                       .client = &ended_.at(from_host)});
  }
  void run() { h_.host().network().events().run(); }
  double ended_us(bool from_host, std::uint64_t tag) const {
    return (ended_.at(from_host).at.at(tag) - Time{}).as_us();
  }
  HostUnderTest& host() { return h_; }

 private:
  /// When the copies of one direction ended, by tag.
  struct Ended final : Copier::Client {
    explicit Ended(PacketHost& h) : host{h} {}
    void on_copied(std::uint64_t tag) override { at[tag] = host.network().now(); }
    PacketHost& host;
    std::map<std::uint64_t, Time> at{};
  };

  HostUnderTest h_;
  Copier copier_;
  std::array<Ended, 2> ended_{Ended{h_.host()}, Ended{h_.host()}};
};

// Theory. A round trip to the host, R, is twice the root complex's 200 ns, DRAM's 100 ns, the GPU's
// own 835 ns and the wires: 1.335 us and less than 0.05 us more. A copy of 64 B to the host is the
// start, HBM's latency and the flush: 0.041 + 0.700 + R. One from the host has its own round trip
// and the flush's: 0.041 + 2 R.
TEST(Copier, ASmallCopyIsAStartAndOneOrTwoRoundTrips) {
  Copies c;
  c.copy(false, 64, 1);
  c.run();
  const double to_host = c.ended_us(false, 1);
  EXPECT_GT(to_host, 0.741 + 1.335);
  EXPECT_LT(to_host, 0.741 + 1.335 + 0.05);
  Copies d;
  d.copy(true, 64, 1);
  d.run();
  EXPECT_GT(d.ended_us(true, 1), 0.041 + 2 * 1.335);
  EXPECT_LT(d.ended_us(true, 1), 0.041 + 2 * (1.335 + 0.05));
}

// Theory. While a long copy from the host runs, 768 requests of 256 B are in flight or served: at
// the link's 57.6 GB/s their data need 3.41 us, and the flush's answer comes behind all of them
// instead of after R.
TEST(Copier, AFlushComesBackBehindTheDataOnTheirWay) {
  Copies c;
  c.copy(true, 4 << 20, 1);
  for (std::uint64_t i = 0; i < 12; ++i) c.copy(false, 64, i);
  c.run();
  ASSERT_LT(c.ended_us(false, 11), c.ended_us(true, 1));
  const double each = (c.ended_us(false, 11) - c.ended_us(false, 1)) / 10;
  EXPECT_NEAR(each, 0.741 + 768 * 256 / 57.6e3, 0.05 * each);
}

// Theory. As many writes as reads may be in flight, 192 KiB, and HBM is faster than the link: they
// stand in the port's queue at once. A load of an SM that comes then waits until they have left,
// 128 KiB / 57.6 GB/s = 2.28 us less what has gone by, instead of behind a TLP or two.
TEST(Copier, WritesRunAheadAndALoadWaitsForThem) {
  Copies c;
  DmaEngine::Settings sm = c.host().host().sm_engine(c.host().id("gpu0"), 1);
  DmaEngine& thread = c.host().host().add_engine(sm);
  struct Loader final : DmaClient, EventTarget {
    void on_event(std::uint64_t /*what*/) override {
      began = events->now();
      engine->submit(
          {.routes = routes, .is_read = true, .address = at, .bytes = Bytes{4}, .client = this});
    }
    void on_dma_done(std::uint64_t /*tag*/) override { took = events->now() - began; }
    EventQueue* events{nullptr};
    DmaEngine* engine{nullptr};
    PcieRoutesId routes{};
    std::uint64_t at{0};
    Time began{};
    Duration took{};
  } loader;
  loader.events = &c.host().host().network().events();
  loader.engine = &thread;
  loader.routes = c.host().host().routes(c.host().id("gpu0"), c.host().id("cpu0"), true);
  loader.at = PacketHost::memory_at(c.host().id("cpu0")) + (1 << 27);
  c.copy(false, 128 << 10, 1);
  // A tenth of a microsecond after the burst.
  loader.events->schedule_after(Duration::ns(841), Phase::kCompute, loader, 0);
  c.run();
  EXPECT_NEAR(loader.took.as_us(), 1.335 + (128 << 10) / 57.6e3 - 0.1, 0.1);
}

// Theory. A window of writes, W = 192 KiB, leaves at the link's rate and is acknowledged W / rate
// after: 6.554 us at 30 GB/s. 1 MiB is five windows and a third, which leaves at the link's rate. A
// part whose copies were not measured has no such window, only a link that is always busy.
TEST(Copier, TheRateOfWritesIsTheirWindowOverTheTimeOfItsAcknowledgement) {
  const auto ended = [](const std::vector<std::string>& settings) {
    Copies c(settings);
    c.copy(false, 1 << 20, 1);
    c.run();
    return c.ended_us(false, 1);
  };
  constexpr double kLone = 0.741 + 1.335;
  EXPECT_NEAR(ended({"gpu.copy_rate=30 GB/s"}), kLone + 5 * 6.554 + (64 << 10) / 57.6e3, 0.1);
  EXPECT_NEAR(ended({"gpu.copy_rate=0 GB/s"}), kLone + (1 << 20) / 57.6e3, 0.1);
}

}  // namespace
}  // namespace weft::test::pcie_copier
