#include "models/collective/verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::test::models_verdict {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

ResultRow row_of(std::uint32_t nodes) {
  ResultRow row;
  row.memory_path = "gdr";
  row.bytes = 1 << 20;
  row.nodes = nodes;
  row.busbw_gb_per_s = 10;
  return row;
}

TEST(Verdict, WithinANodeNoNicIsUsed) {
  EXPECT_THAT(verdict({row_of(1)}), ElementsAre("1 MiB within the node: busbw 10.0 GB/s"));
  EXPECT_THAT(verdict({row_of(2)}), ElementsAre("1 MiB over GPUDirect RDMA: busbw 10.0 GB/s"));
}

TEST(Verdict, SaysWhatPacketsMet) {
  ResultRow row = row_of(2);
  row.probes.emplace();
  EXPECT_EQ(verdict({row}).size(), 1U) << "nothing happened";
  row.probes->pauses = 7;
  row.probes->marked = 3;
  row.probes->dropped = 1;
  row.probes->lost = 1;
  row.probes->ports.resize(2);
  row.probes->ports[1].link = "spine0->leaf1";
  row.probes->ports[1].pauses = 5;
  row.probes->nics.resize(2);
  row.probes->nics[0].cnps = 2;
  row.probes->nics[1].repeated = 4;
  EXPECT_THAT(verdict({row}),
              ElementsAre(StartsWith("1 MiB over GPUDirect RDMA"),
                          "its packets at 1 MiB: 7 pauses (most of spine0->leaf1), 3 marked, 2 "
                          "congestion notifications, 2 dropped or lost, 4 sent again"));
}

}  // namespace
}  // namespace weft::test::models_verdict
