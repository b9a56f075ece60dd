// NICs' queue pairs without a program around them: caches, failures, timeouts, ordering.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "models/transport/packet_cluster.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_queue_pairs {
namespace {

/// Requests from GPU to GPU, and how each ended.
struct Requests final : RdmaClient {
  explicit Requests(const std::vector<std::string>& settings)
      : m{"hgx-h100-8nic.yaml", settings}, cluster{m.machine(), {0, 1}} {}

  RdmaQpId connect() { return cluster.connect(nic(0), nic(1), 0); }
  DeviceId nic(std::uint32_t node) const { return m.id("nic0", node); }
  void post(RdmaQpId qp, RdmaOp op, std::uint64_t tag) {
    const bool is_read = op == RdmaOp::kRead;
    cluster.nics().post(qp, {.op = op,
                             .bytes = Bytes::kib(16),
                             .local = cluster.buffer(nic(0), m.id("gpu0"), !is_read, 0),
                             .remote = cluster.buffer(nic(1), m.id("gpu0", 1), is_read, 0),
                             .tag = tag,
                             .client = this});
  }
  void on_completion(std::uint64_t tag) override { ended.emplace_back(tag, RdmaStatus::kSuccess); }
  void on_received(std::uint64_t tag) override { received.push_back(tag); }
  void on_visible(std::uint64_t /*tag*/) override { seen = cluster.events().now(); }
  void on_error(std::uint64_t tag, RdmaStatus status) override { ended.emplace_back(tag, status); }

  MachineUnderTest m;
  PacketCluster cluster;
  Time seen;  ///< the last data
  std::vector<std::pair<std::uint64_t, RdmaStatus>> ended;
  std::vector<std::uint64_t> received;
};

/// Rate of small writes, millions a second, over many queue pairs in turn, or to many pages.
double small_writes(const std::vector<std::string>& settings, std::uint32_t qps, Bytes stride,
                    std::uint64_t strides) {
  std::vector<std::string> all{"nic.doorbell_latency=0 ns"};
  all.insert(all.end(), settings.begin(), settings.end());
  Requests r(all);
  std::vector<RdmaQpId> ids;
  for (std::uint32_t i = 0; i < qps; ++i) ids.push_back(r.connect());
  RdmaBuffer local = r.cluster.buffer(r.nic(0), r.m.id("cpu0"), true, 0);
  const RdmaBuffer remote = r.cluster.buffer(r.nic(1), r.m.id("cpu0", 1), false, 0);
  local.page = Bytes::mib(2);
  const auto post = [&](std::uint64_t messages) {
    for (std::uint64_t i = 0; i < messages; ++i) {
      RdmaBuffer to = remote;
      // A stride that meets all places in another order: 7919 is a prime.
      to.address += i * 7919 % strides * static_cast<std::uint64_t>(stride.count());
      r.cluster.nics().post(ids[i % qps], {.bytes = Bytes{16},
                                           .local = local,
                                           .remote = to,
                                           .is_inline = true,
                                           .is_signalled = false,
                                           .client = &r});
    }
    const Time began = r.cluster.events().now();
    r.cluster.events().run();
    return static_cast<double>(messages) / (r.seen - began).as_us();
  };
  post(2 * std::max<std::uint64_t>(qps, strides));  // fills the caches
  return post(20'000);
}

// Connections beyond what the NIC keeps cost reads of host memory: a ConnectX-5 has half its rate
// with 5,000 (Kalia et al., NSDI 2019). 2 MiB hold 5,592 contexts of 375 B, less translations.
TEST(Rdma, ThousandsOfQueuePairsMissTheContextCache) {
  const std::vector<std::string> cx5{"nic.part=connectx-5"};
  const double few = small_writes(cx5, 500, Bytes{64}, 1);
  const double fitting = small_writes(cx5, 4000, Bytes{64}, 1);
  const double many = small_writes(cx5, 8000, Bytes{64}, 1);
  const double too_many = small_writes(cx5, 16'000, Bytes{64}, 1);
  EXPECT_GT(fitting, 0.9 * few);
  EXPECT_LT(many, 0.7 * few);
  EXPECT_LT(too_many, 0.5 * few);
}

// Translations: 8 B a page. 256 MiB in pages of 4 KiB need 512 KiB of them, of 2 MiB 1 KiB.
TEST(Rdma, LargeRegistrationsOfSmallPagesMissTheTranslationCache) {
  const auto rate = [](const char* page, Bytes memory) {
    constexpr std::int64_t kStride = 32'768;
    return small_writes({std::string("nic.host_page=") + page, "nic.icm_cache=256 KiB"}, 16,
                        Bytes{kStride}, static_cast<std::uint64_t>(memory.count() / kStride));
  };
  const double small = rate("4 KiB", Bytes::mib(64));
  const double huge = rate("2 MiB", Bytes::mib(256));
  const double thrashing = rate("4 KiB", Bytes::mib(256));
  EXPECT_NEAR(huge, small, 0.05 * small);
  EXPECT_LT(thrashing, 0.5 * small);
}

// What DMA-BUF maps has the kernel's pages, whatever the GPU's are.
TEST(Rdma, DmaBufIsTranslatedByTheKernelsPages) {
  for (const char* mapping : {"nvidia-peermem", "dma-buf"}) {
    Requests r({std::string("gpu.peer_mapping=") + mapping});
    EXPECT_EQ(r.cluster.buffer(r.nic(0), r.m.id("gpu0"), true, 0).page,
              *mapping == 'd' ? Bytes::kib(4) : Bytes::kib(64));
  }
}

// A queue pair without receives gives up; what was posted behind is flushed, as is what is posted
// later; another queue pair of the same NICs goes on.
TEST(Rdma, AFailedQueuePairCompletesItsRequestsWithErrors) {
  Requests r({"wire.rnr_retry=1", "wire.rnr_timer=1"});
  const RdmaQpId fails = r.connect();
  const RdmaQpId works = r.connect();
  r.cluster.nics().post_receives(fails, 1);
  for (std::uint64_t tag = 0; tag < 4; ++tag) r.post(fails, RdmaOp::kSend, tag);
  r.cluster.events().run();
  using Ends = std::vector<std::pair<std::uint64_t, RdmaStatus>>;
  EXPECT_EQ(r.ended, (Ends{{0, RdmaStatus::kSuccess},
                           {1, RdmaStatus::kRnrRetryExceeded},
                           {2, RdmaStatus::kFlushed},
                           {3, RdmaStatus::kFlushed}}));
  EXPECT_EQ(r.cluster.nics().counters(fails).rnr_naks, 2U);
  r.ended.clear();
  r.post(fails, RdmaOp::kWrite, 4);
  r.post(works, RdmaOp::kWrite, 5);
  r.cluster.events().run();
  EXPECT_EQ(r.ended, (Ends{{4, RdmaStatus::kFlushed}, {5, RdmaStatus::kSuccess}}));
}

// A dead link: all retries, then the error.
TEST(Rdma, ADeadLinkEndsInAnErrorCompletion) {
  for (const RdmaOp op : {RdmaOp::kWrite, RdmaOp::kRead}) {
    Requests r({"wire.timeout_exponent=8", "wire.retry_count=1"});
    const RdmaQpId qp = r.connect();
    for (std::size_t link = 0; link < r.cluster.network().links(); ++link) {
      if (r.cluster.network().name(PacketLinkId{link}).find("fabric") != std::string::npos) {
        r.cluster.network().set_loss(PacketLinkId{link}, 1);
      }
    }
    r.post(qp, op, 7);
    r.cluster.events().run();
    ASSERT_EQ(r.ended.size(), 1U);
    EXPECT_EQ(r.ended[0].second, RdmaStatus::kRetryExceeded);
    EXPECT_NEAR((r.cluster.events().now() - Time{}).as_us(), 2 * 1048.576, 10);
  }
}

/// Sends to host memory, and in which order data and completions of receives came.
struct Sends final : RdmaClient {
  explicit Sends(const std::vector<std::string>& settings)
      : m{"hgx-h100-8nic.yaml", settings}, cluster{m.machine(), {0, 1}} {
    const DeviceId from = m.id("nic0", 0);
    const DeviceId to = m.id("nic0", 1);
    const RdmaQpId qp = cluster.connect(from, to, 0);
    for (std::uint64_t i = 0; i < 100; ++i) {
      cluster.nics().post(qp, {.op = RdmaOp::kSend,
                               .bytes = Bytes::kib(4),
                               .local = cluster.buffer(from, m.id("cpu0"), true, i << 20),
                               .remote = cluster.buffer(to, m.id("cpu0", 1), false, i << 20),
                               .tag = i,
                               .client = this});
    }
    cluster.events().run();
  }
  void on_visible(std::uint64_t tag) override { visible.insert(tag); }
  void on_received(std::uint64_t tag) override {
    ++received;
    if (!visible.contains(tag)) ++too_early;
  }

  MachineUnderTest m;
  PacketCluster cluster;
  std::set<std::uint64_t> visible;
  std::uint32_t received{0};
  std::uint32_t too_early{0};
};

// A completion comes after its data, though these carry the relaxed ordering attribute and it does
// not: also where each page of data waits for its translation and the completion's is known.
TEST(Rdma, ACompletionDoesNotPassItsData) {
  for (const char* iommu : {"off", "translate"}) {
    const Sends sends({std::string("cpu.iommu=") + iommu, "cpu.iommu_page=4 KiB"});
    EXPECT_EQ(sends.received, 100U);
    EXPECT_EQ(sends.too_early, 0U) << iommu;
  }
}

// A cable that is down for 50 us when a lone message leaves costs the timeout:
// 4.096 us x 2^14 = 67.1 ms (IBTA vol. 1 ch. 9.7), with NCCL's exponent of 20 4.29 s.
TEST(Rdma, AFlapCostsTheTimeout) {
  const auto seen_us = [](const std::vector<std::string>& settings, std::uint64_t timeouts) {
    Requests r(settings);
    const RdmaQpId qp = r.connect();
    r.post(qp, RdmaOp::kWrite, 7);
    r.cluster.events().run();
    EXPECT_EQ(r.ended.size(), 1U);
    EXPECT_EQ(r.cluster.nics().counters(qp).timeouts, timeouts);
    return (r.seen - Time{}).as_us();
  };
  const double sound = seen_us({}, 0);
  EXPECT_NEAR(seen_us({"nic.flap_time=50 us"}, 1) - sound, 67'108.864, 2);
  EXPECT_NEAR(seen_us({"nic.flap_time=50 us", "wire.timeout_exponent=20"}, 1) - sound,
              4'294'967.296, 2);
  EXPECT_DOUBLE_EQ(seen_us({"nic.flap_time=50 us", "nic.flap_at=1 ms"}, 0), sound);
}

// Adaptive routing lets packets come in any order; completions keep that of the messages. The first
// is lost, and comes again after the timeout of 1 ms; the second is there before. Its data may be
// used then, its completions say nothing yet.
TEST(Rdma, MessagesCompleteInOrder) {
  for (const RdmaOp op : {RdmaOp::kWrite, RdmaOp::kSend, RdmaOp::kRead}) {
    Requests r({"wire.routing=spread", "nic.flap_time=50 us", "wire.timeout_exponent=8"});
    const RdmaQpId qp = r.connect();
    r.post(qp, op, 1);
    while ((r.cluster.events().now() - Time{}) < Duration::us(50)) r.cluster.events().step();
    EXPECT_EQ(r.seen, Time{});
    r.post(qp, op, 2);
    while ((r.cluster.events().now() - Time{}) < Duration::us(1000)) r.cluster.events().step();
    EXPECT_EQ(r.seen > Time{}, op != RdmaOp::kRead);  // it was not answered
    EXPECT_TRUE(r.ended.empty());
    EXPECT_TRUE(r.received.empty());
    r.cluster.events().run();
    using Ends = std::vector<std::pair<std::uint64_t, RdmaStatus>>;
    EXPECT_EQ(r.ended, (Ends{{1, RdmaStatus::kSuccess}, {2, RdmaStatus::kSuccess}}));
    using Tags = std::vector<std::uint64_t>;
    EXPECT_EQ(r.received, op == RdmaOp::kSend ? (Tags{1, 2}) : Tags{});
  }
}

}  // namespace
}  // namespace weft::test::models_queue_pairs
