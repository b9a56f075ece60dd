// What registering memory costs, how it fails, and what the NIC keeps of it.
#include "models/machine/registration.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "models/nic/icm.hpp"
#include "models/perftest/perftest.hpp"
#include "sim/base/error.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_registration {
namespace {

// A fixed cost, a page's, and a GPU's pin; BAR1 fills up, and errors are those of ibv_reg_mr.
TEST(Registration, CostsPagesAndFailsAsTheDriverDoes) {
  const auto said = [](const std::vector<std::string>& settings, const char* memory, Bytes bytes) {
    const MachineUnderTest m("hgx-h100-8nic.yaml", settings);
    return register_memory(m.machine(), m.id(memory), m.id("nic0"), bytes);
  };
  // UCX's 0.06 ns a byte: 62 us a MiB.
  EXPECT_NEAR(said({}, "cpu0", Bytes::mib(1)).time.as_us(), 16 + 62, 1);
  EXPECT_EQ(said({}, "cpu0", Bytes::mib(1)).pages, 256);
  const Registration gpu = said({}, "gpu0", Bytes::mib(1) + Bytes{1});
  EXPECT_EQ(gpu.pages, 17);
  EXPECT_NEAR(gpu.time.as_us(), 1346 + 16 + 17 * 0.245, 0.01);
  EXPECT_EQ(gpu.bar1_used, Bytes::mib(3) + Bytes::kib(64));
  EXPECT_EQ(gpu.error, "");
  // 256 MiB of BAR1, 2 in use: 254 fit, and not a byte more.
  const std::vector<std::string> t4{"gpu.bar1_size=256 MiB"};
  EXPECT_EQ(said(t4, "gpu0", Bytes::mib(254)).error, "");
  EXPECT_EQ(said(t4, "gpu0", Bytes::mib(254) + Bytes{1}).error, "ENOMEM");
  // DMA-BUF: BAR1 as ever, translations by the kernel's page.
  const Registration dma_buf = said({"gpu.peer_mapping=dma-buf"}, "gpu0", Bytes::mib(1) + Bytes{1});
  EXPECT_EQ(dma_buf.pages, 17 * 16);
  EXPECT_EQ(dma_buf.bar1_used, gpu.bar1_used);
  EXPECT_NEAR(dma_buf.time.as_us(), 1346 + 16 + 17 * 16 * 0.245, 0.01);
  // nv_peer_mem behind an IOMMU registers, and no transfer gets through.
  EXPECT_EQ(said({"gpu.peer_mapping=nv_peer_mem", "cpu.iommu=translate"}, "gpu0", Bytes{1}).error,
            "");
  EXPECT_EQ(said({"cpu.memlock_limit=64 KiB"}, "cpu0", Bytes::mib(1)).error, "ENOMEM");
  EXPECT_EQ(said({"gpu.peer_mapping=none"}, "gpu0", Bytes{1}).error, "EFAULT");
  EXPECT_EQ(said({"nic.peer_memory_api=off"}, "gpu0", Bytes{1}).error, "EFAULT");
  EXPECT_EQ(said({"gpu.peer_mapping=dma-buf", "nic.dma_buf=off"}, "gpu0", Bytes{1}).error,
            "EOPNOTSUPP");
  PerftestOptions options;
  options.qps = 64;
  const MachineUnderTest m("hgx-h100-8nic.yaml", t4);
  EXPECT_THROW(perftest(m.machine(), options, Bytes::mib(8)), InputError);
}

// N entries used in turn, room for C: a share m misses with 1 - m = exp(-m N / C).
TEST(IcmCache, MissesOfEntriesInTurnFollowTheClosedForm) {
  for (const double over : {0.5, 1.0, 1.2, 2.0, 5.0}) {
    constexpr std::int64_t kRoom = 1000;
    IcmCache cache(Bytes{kRoom * 64});
    const auto entries = static_cast<std::uint64_t>(kRoom * over);
    std::uint64_t misses = 0;
    for (int round = 0; round < 40; ++round) {
      for (std::uint64_t key = 0; key < entries; ++key) {
        if (cache.holds(key, 64)) continue;
        cache.insert(key, 64);
        if (round >= 20) ++misses;
      }
    }
    double m = over > 1 ? 1 : 0;
    for (int i = 0; i < 200; ++i) m = 1 - std::exp(-m * over);
    EXPECT_NEAR(static_cast<double>(misses) / (20.0 * static_cast<double>(entries)), m, 0.01)
        << over;
  }
}

// Contexts and lines of translations in turn: what a large entry leaves free is no room that was
// filled before anyone looked, and a larger cache never misses more.
TEST(IcmCache, ALargerCacheNeverMissesMore) {
  const auto misses = [](std::int64_t capacity) {
    IcmCache cache{Bytes{capacity}};
    std::uint64_t out = 0;
    const auto use = [&](std::uint64_t key, std::int64_t bytes) {
      if (cache.holds(key, bytes)) return;
      cache.insert(key, bytes);
      ++out;
    };
    for (int round = 0; round < 100; ++round) {
      for (std::uint64_t pair = 0; pair < 200; ++pair) {
        use(2 * pair, 375);
        use(2 * pair + 1, 64);
      }
    }
    return out;
  };
  std::uint64_t last = misses(4096);
  EXPECT_GT(last, 39'900U);  // room for a twentieth: all but all of them
  for (std::int64_t capacity = 5120; capacity < 90'000; capacity += capacity / 4) {
    const std::uint64_t now = misses(capacity);
    EXPECT_LE(now, last) << capacity;
    last = now;
  }
  EXPECT_EQ(misses(200 * 439), 0U);
}

}  // namespace
}  // namespace weft::test::models_registration
