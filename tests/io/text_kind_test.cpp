#include "sim/io/text_kind.hpp"

#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/io/file.hpp"

namespace weft::test::io_text_kind {
namespace {

TextKind kind_of_file(const std::string& name) {
  return kind_of(read_text_file(std::string(WEFT_SOURCE_DIR) + "/" + name));
}

TEST(TextKind, IsKnownAtSight) {
  EXPECT_EQ(kind_of_file("scenarios/quickstart.yaml"), TextKind::kScenario);
  EXPECT_EQ(kind_of_file("topologies/hgx-h100-8nic.yaml"), TextKind::kTopology);
  EXPECT_EQ(kind_of_file("tests/data/h200/shm.csv"), TextKind::kMeasured);
  EXPECT_EQ(kind_of_file("tests/data/perftest/ib_read_lat.txt"), TextKind::kMeasured);
  EXPECT_EQ(kind_of("\n# Collective test starting: all_reduce_perf\n"), TextKind::kMeasured);
  EXPECT_EQ(kind_of("# nThread 1 nGpus 4 minBytes 8 maxBytes 8 step: 2(factor)\n"),
            TextKind::kMeasured);
  EXPECT_EQ(kind_of("#  size  count  type  time  algbw  busbw  error\n"), TextKind::kMeasured);
  EXPECT_EQ(kind_of("nvbandwidth Version: v0.8\n"), TextKind::kMeasured);
  EXPECT_EQ(kind_of(R"({"nvbandwidth": {}})"), TextKind::kMeasured);
  EXPECT_EQ(kind_of(R"({"schema": "weft.run/1"})"), TextKind::kResult);
  EXPECT_EQ(kind_of("# by weft\ncalibration:\n"), TextKind::kParameters);
}

// A user pastes a table below what tells the machine, or NCCL logs behind nccl-tests' head.
TEST(TextKind, MeasuredRowsBesideEvidenceAreEvidence) {
  const std::string head = "# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor)\n";
  const std::string list = "#  Rank  0 Pid 41 on a device  0 [0x86] Tesla T4\n";
  const std::string table = "#  size  count  type  time  algbw  busbw  error\n";
  EXPECT_EQ(kind_of(head + list + table), TextKind::kMeasured);
  EXPECT_TRUE(lists_devices(head + list + table));
  EXPECT_FALSE(lists_devices(head + table));
  EXPECT_EQ(kind_of(list), TextKind::kEvidence);
  EXPECT_EQ(kind_of("\tGPU0\tGPU1\tNIC0\n\n" + head + table), TextKind::kEvidence);
  EXPECT_EQ(kind_of(head + list + "a:1:1 [0] NCCL INFO a\n" + table), TextKind::kEvidence);
}

TEST(TextKind, IsLeftOpenWhereItIsNotCertain) {
  for (const char* text : {"", "{", "wire.mtu: 4 KiB\n", "topology: x\n", "a,b\n1,2\n", "{}"}) {
    EXPECT_EQ(kind_of(text), TextKind::kUnknown) << text;
    EXPECT_NO_THROW(refuse_other_kind(text, "f", TextKind::kScenario));
  }
  EXPECT_EQ(kind_of_file("LICENSE"), TextKind::kUnknown);
}

TEST(TextKind, NcclsGraphsSayWhatToWriteInstead) {
  const std::string graphs = "<graphs version=\"1\">\n</graphs>\n";
  for (const TextKind wanted : {TextKind::kEvidence, TextKind::kResult}) {
    EXPECT_EQ(other_kind(graphs, wanted).substr(0, 40), "is an NCCL graph file (<graphs>), the ri");
  }
  EXPECT_EQ(other_kind(graphs, TextKind::kTopology), "");
}

TEST(TextKind, AnotherNamesWhoReadsIt) {
  EXPECT_NO_THROW(refuse_other_kind("scenario: x\n", "f", TextKind::kScenario));
  try {
    refuse_other_kind("scenario: x\n", "f.yaml", TextKind::kTopology);
    ADD_FAILURE() << "taken";
  } catch (const InputError& e) {
    EXPECT_STREQ(
        e.what(),
        "f.yaml: is a scenario, not a topology; weft run, step, traffic, sweep and check read it");
  }
}

}  // namespace
}  // namespace weft::test::io_text_kind
