// What NCCL warns of: known kinds with what they mean, others as they are.
#include "models/doctor/nccl_warnings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/doctor/doctor_data.hpp"

namespace weft::test::doctor_nccl_warnings {
namespace {

using ::testing::HasSubstr;

const std::string kHead = "h1:1:1 [0] net_ib.cc:1 NCCL WARN ";

Diagnosis with(const std::string& lines) {
  return diagnosis_of(evidence_of_both(dell_lspci(), dell_rest() + lines));
}

// As logs of NCCL 2.7 to 2.28 and of RCCL have them.
TEST(NcclWarnings, KnownOnesSayWhatTheyMean) {
  struct Case {
    std::string line;
    std::string what;
    bool is_error;
  };
  for (const Case& each :
       {Case{"Call to ibv_create_qp failed", "a NIC gave no queue pair", true},
        Case{"Call to ibv_create_cq failed with error Cannot allocate memory errno 12",
             "a NIC gave no completion queue", true},
        Case{"Call to ibv_reg_mr failed", "a NIC could not register memory", true},
        Case{"Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
             "a NIC could not register memory: no more may be locked", true},
        Case{"Call to ibv_modify_qp failed with error Invalid argument errno 22",
             "two NICs could not be connected", true},
        Case{"NET/IB : Got completion from peer 10.0.0.1<1> with error 12, opcode 0, len 0, vendor "
             "err 129",
             "a peer's NIC did not acknowledge in time (12, IBV_WC_RETRY_EXC_ERR)", true},
        Case{"NET/IB : Got completion from peer 10.0.0.1<1> with status=12 opcode=0 len=0 vendor "
             "err 129 (Recv)",
             "a peer's NIC did not acknowledge in time (12, IBV_WC_RETRY_EXC_ERR)", true},
        Case{"NET/IB: Got completion from peer 10.0.0.1<1> with status=IBV_WC_RETRY_EXC_ERR(12) "
             "opcode=IBV_WC_SEND(0)",
             "a peer's NIC did not acknowledge in time (12, IBV_WC_RETRY_EXC_ERR)", true},
        Case{"NET/IB : Got completion from peer 10.0.0.1<1> with status=10 opcode=0 len=0",
             "a request of a NIC ended with an error", true},
        Case{"NET/IB: Got completion from peer 10.0.0.1<1> with status=IBV_WC_WR_FLUSH_ERR(5) "
             "opcode=IBV_WC_SEND(0)",
             "requests were flushed (5, IBV_WC_WR_FLUSH_ERR) after another error", true},
        Case{"NET/IB : mlx5_0:1 async fatal event on QP 0x7f0: QP access error",
             "a NIC reported an event: a port went down, or a queue pair failed", true},
        Case{"NET/IB : device mlx5_0 encountered a fatal error", "a NIC failed, and what used it",
             true},
        Case{"Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401",
             "memory could not be bound to the NVSwitches' multicast", true},
        Case{"socketStartConnect: Connect to 10.0.0.1<1> failed : Connection timed out",
             "NCCL's first connection, over TCP, got no answer", true},
        Case{"Cuda failure 'out of memory'", "a CUDA call failed", true},
        Case{"Missing \"iommu=pt\" from kernel command line which can lead to system instablity",
             "the kernel's command line is without iommu=pt", false},
        Case{"NUMA auto balancing enabled which can lead to variability",
             "Linux moves memory between NUMA nodes as it runs", false},
        Case{"nvidia_peermem module is not loaded", "GPU memory could not be mapped for NICs",
             true}}) {
    const Diagnosis diagnosis = with(kHead + each.line + "\n");
    ASSERT_EQ(diagnosis.findings.size(), 1U) << each.line;
    const Finding& finding = diagnosis.findings[0];
    EXPECT_EQ(finding.check, "alerts");
    EXPECT_EQ(finding.what, "NCCL: " + each.what);
    EXPECT_EQ(finding.is_error, each.is_error) << each.line;
    EXPECT_FALSE(finding.remedy.empty());
    ASSERT_EQ(finding.evidence.size(), 1U);
    EXPECT_EQ(finding.evidence[0].place, "rest:30");
    EXPECT_EQ(finding.evidence[0].text, "NCCL: " + each.line);
  }
}

TEST(NcclWarnings, ThoseOfOneKindAreOneFinding) {
  const std::string peer = "NET/IB : Got completion from peer 10.0.0.";
  const Diagnosis diagnosis = with(kHead + peer + "1<1> with error 12, opcode 0\n" + kHead + peer +
                                   "2<1> with error 12, opcode 0\n");
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(diagnosis.findings[0].evidence.size(), 2U);
}

TEST(NcclWarnings, OthersStandAsTheyAre) {
  const Diagnosis diagnosis = with(kHead + "Something odd\n" + kHead + "\n");
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(diagnosis.findings[0].what, "host: NCCL: Something odd");
  EXPECT_FALSE(diagnosis.findings[0].is_error);
  EXPECT_EQ(nccl_warning("Something odd"), nullptr);
}

}  // namespace
}  // namespace weft::test::doctor_nccl_warnings
