#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/evidence/imported.hpp"

namespace weft::test::evidence_nvlinks {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Nvlinks, RemoteEndsOfNvlinksCountThem) {
  const Evidence evidence = evidence_of(
      "GPU 5: NVIDIA H100 80GB HBM3 (UUID: GPU-a)\n"
      "\t Link 0: Remote Device 00000000:06:00.0: Link 45\n\t Link 1: <inactive>\n"
      "\t Link 2: Remote Device 00000000:08:00.0: Link 51\n"
      "GPU 6: NVIDIA H100 80GB HBM3 (UUID: GPU-b)\n"
      "\t Link 0: Remote Device 00000000:06:00.0: Link 57\n");
  EXPECT_EQ(said(evidence, "gpu5", fact::kNvlinks), "2");
  EXPECT_EQ(said(evidence, "gpu6", fact::kNvlinks), "none") << "its list is cut";
  const Evidence by_id = evidence_of(
      "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-a)\n"
      "\t Link 0: 00000000:06:00.0\n\t Link 1: 00000000:07:00.0\n\t Link 2: <inactive>\n");
  EXPECT_EQ(said(by_id, "gpu0", fact::kNvlinks), "2");
}

TEST(Nvlinks, OtherListsOfNvlinksAreNoCount) {
  for (const std::string line : {"Link 0: Replay Errors: 0", "Link 0: P2P is supported: true",
                                 "Link 0: Rx0: 0 KBytes, Tx0: 0 KBytes"}) {
    const Evidence evidence =
        evidence_of("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-a)\n\t " + line + "\n");
    EXPECT_EQ(said(evidence, "gpu0", fact::kProduct), "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(said(evidence, "gpu0", fact::kNvlinks), "none") << line;
  }
}

/// Two GPUs of a product, "" where nothing names it, with as much NVLink to the switches.
ImportedMachine with_nvlink(const std::string& product, const std::string& rate,
                            const std::string& more = "") {
  std::string text;
  if (!product.empty()) {
    text = "| NVIDIA-SMI 570.124.06   Driver Version: 570.124.06   CUDA Version: 12.8 |\n";
    for (const std::string n : {"1", "2"}) {
      text += "|   " + n + "  " + product + "   Off |   00000000:0" + n + ":00.0 Off |   Off |\n";
    }
  }
  text += "NCCL INFO === System : maxBw 24.0 totalBw 24.0 ===\nNCCL INFO CPU/0-0 (1/1/2)\n";
  for (const std::string bus : {"1000", "2000"}) {
    text += "NCCL INFO + PCI[24.0] - PCI/0-7" + bus + " (1000c0101000100b)\n";
    text += "NCCL INFO               + PCI[24.0] - GPU/0-" + bus + " (0)\n";
    text += "NCCL INFO                             + NVL[" + rate + "] - NVS/0\n";
  }
  return imported(text + more);
}

// Each generation has its own rate a link in NCCL's src/graph/topo.h, some of them several.
TEST(Nvlinks, NvlinksAreAsManyAsNcclsRateIsOf) {
  struct Case {
    std::string product;
    std::string rate;
    std::uint32_t count;
  };
  for (const Case& each :
       {Case{"NVIDIA H100 80GB HBM3", "370.8", 18}, Case{"NVIDIA H100 80GB HBM3", "360.0", 18},
        Case{"NVIDIA H800", "164.8", 8}, Case{"NVIDIA A40", "48.0", 4},
        Case{"NVIDIA RTX A6000", "48.0", 4}, Case{"NVIDIA B200", "721.8", 18},
        Case{"NVIDIA B200", "370.8", 18}, Case{"NVIDIA A100-SXM4-80GB", "240.0", 12},
        Case{"NVIDIA A100-SXM4-80GB", "264.0", 12}, Case{"Tesla V100-SXM2-16GB", "126.0", 6},
        Case{"Tesla P100-SXM2-16GB", "72.0", 4}, Case{"", "360.0", 18}, Case{"", "48.0", 4},
        Case{"", "721.8", 18}, Case{"", "240.0", 12}}) {
    const ImportedMachine machine = with_nvlink(each.product, each.rate);
    ASSERT_EQ(machine.spec.node.links.size(), 2U) << each.product << " " << each.rate;
    EXPECT_EQ(machine.spec.node.links[0].count, each.count) << each.product << " " << each.rate;
  }
}

TEST(Nvlinks, RatesThatAreOfNoCountOfNvlinksAreNoted) {
  // 36 GB/s are two links of Pascal or three of the A40's; 25.3 GB/s none of any.
  for (const char* const rate : {"36.0", "25.3", "nan", "inf", "-18"}) {
    const ImportedMachine machine = with_nvlink("", rate);
    EXPECT_THAT(machine.spec.node.links, IsEmpty()) << rate;
    EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("do not say how many NVLinks"))) << rate;
  }
  EXPECT_EQ(with_nvlink("NVIDIA A40", "36.0").spec.node.links[0].count, 3U);
}

TEST(Nvlinks, RatesThatAreOfNoCountAreNotedWhereNothingElseCounts) {
  const std::string list =
      "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-a)\n\t Link 0: 26.562 GB/s\n"
      "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-b)\n\t Link 0: 26.562 GB/s\n";
  const ImportedMachine machine = with_nvlink("", "25.3", list);
  EXPECT_EQ(machine.spec.node.links.size(), 2U);
  EXPECT_THAT(machine.spec.notes, Not(Contains(HasSubstr("do not say how many NVLinks"))));
  EXPECT_THAT(with_nvlink("", "25.3").spec.notes,
              Contains(HasSubstr("are left out: gpu0 to nvswitch, gpu1 to nvswitch; ")));
}

}  // namespace
}  // namespace weft::test::evidence_nvlinks
