// What NCCL and its plugin for libfabric log of NICs.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/evidence/imported.hpp"

namespace weft::test::evidence_nccl_log {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kOld =
    "a:1:1 [0] NCCL INFO NET/OFI Selected Provider is efa (found 4 nics)\n";

TEST(NcclLog, LibfabricsProviderAndNicsAreFacts) {
  const Evidence old =
      evidence_of(std::string(kOld) + "a:1:1 [0] NCCL INFO NET/OFI Using aws-ofi-nccl 1.4.0aws\n");
  EXPECT_EQ(said(old, "NET/OFI", "log provider", "a"), "efa");
  EXPECT_EQ(said(old, "NET/OFI", "log NICs", "a"), "4");
  EXPECT_EQ(said(old, "host", "version aws-ofi-nccl", "a"), "1.4.0aws");
  const Evidence later = evidence_of(
      "b:1:1 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 16 nics)\n"
      "b:1:1 [0] NCCL INFO NET/OFI NIC group 7 device #1 0000:a2:00.0\n");
  EXPECT_EQ(said(later, "NET/OFI", "log provider", "b"), "efa");
  EXPECT_EQ(said(later, "NET/OFI", "log NICs", "b"), "16");
  EXPECT_EQ(said(later, "NET/OFI NIC group 7 device #1", "log NIC", "b"), "0000:a2:00.0");
  const Evidence tcp = evidence_of(
      "c:1:1 [0] NCCL INFO NET/OFI Selected Provider is tcp\n"
      "c:1:1 [0] NCCL INFO NET/OFI Selected Provider is tcp (found 0 nics)\n");
  EXPECT_EQ(said(tcp, "NET/OFI", "log provider", "c"), "tcp");
  EXPECT_EQ(said(tcp, "NET/OFI", "log NICs", "c"), "none");
}

TEST(NcclLog, LibfabricsNicsAreNotedWhereNothingNamesAny) {
  const std::string gpu =
      "a:1:1 [0] NCCL INFO comm 0x5 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 101c0 commId 0x1\n";
  const auto note = HasSubstr("NET/OFI counts 4 NICs of provider efa, not where they hang");
  EXPECT_THAT(imported(gpu + kOld).spec.notes, Contains(note));
  const std::string nic = "10:1b.0 Ethernet controller: Amazon.com, Inc. Device efa0\n";
  EXPECT_THAT(imported(gpu + kOld + nic).spec.notes, Not(Contains(note)));
}

// Verbs devices are numbered with those that NCCL leaves out.
TEST(NcclLog, NumbersNicsAsNcclDoesNotAsVerbsDo) {
  const Evidence log = evidence_of(
      "s1:1:2 [0] NCCL INFO NET/IB: [3] mlx5_3:uverbs3:1/RoCE provider=Mlx5 speed=200000 "
      "context=0x1 pciPath=/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0 ar=0\n"
      "s1:1:2 [0] NCCL INFO NET/IB : Made virtual device [1] name=mlx5_3 speed=200000 ndevs=1\n"
      "s1:1:2 [0] NCCL INFO NET/IB : Made virtual device [2] name=mlx5_4+mlx5_5 speed=4 ndevs=2\n"
      "s1:1:2 [0] NCCL INFO NET/IB : Made virtual device [7] name=mlx5_\n");
  EXPECT_EQ(said(log, "mlx5_3", fact::kNetIndex, "s1"), "1");
  EXPECT_EQ(said(log, "mlx5_3", fact::kBusId, "s1"), "0000:16:00.0");
  EXPECT_EQ(said(log, "mlx5_4", fact::kNetIndex, "s1"), "none");
  EXPECT_EQ(said(log, "mlx5_", fact::kNetIndex, "s1"), "none") << "cut off";
}

}  // namespace
}  // namespace weft::test::evidence_nccl_log
