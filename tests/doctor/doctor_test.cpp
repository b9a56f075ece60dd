// Findings and their prices: each priced fault, put into an imported machine, is named first.
#include "models/doctor/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/doctor/doctor_data.hpp"

namespace weft::test::doctor_doctor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kThreshold = 0.05;

/// A fault of the machine: an edit of what its tools print.
struct Fault {
  const char* check;
  const char* in_lspci;  ///< a pattern there; "" for the rest
  const char* pattern;   ///< in the rest
  const char* by;
  bool costs;        ///< over the threshold at 64 MiB on this machine, by the model
  bool moves{true};  ///< whether its mend changes the time at all
};

// NCCL's log, ibstat, lsmod and the command line stand in `rest`. The NICs are the functions
// 1a:00.0 and 9c:00.0, the GPUs 19:00.0 and 9b:00.0.
const Fault kFaults[] = {
    {"ACS", "SrcValid- TransBlk- ReqRedir- CmpltRedir-", "",
     "SrcValid+ TransBlk- ReqRedir+ CmpltRedir+", true},
    {"IOMMU", "", "iommu=pt", "intel_iommu=on", true},
    {"PCIe links", "(\\n1a:00.0[^]*?LnkSta:\\tSpeed 32GT/s[^,]*, Width )x16[^\\n]*", "",
     "$1x4 (downgraded)", true},
    {"MaxReadReq", "(\\n(?:1a|9c):00.0[^]*?MaxReadReq )4096", "", "$01128", true},
    {"relaxed ordering", "(\\n1a:00.0[^]*?RlxdOrd)\\+", "", "$1-", false, false},
    {"rate", "", "(mlx5_1'[^]*?Rate: )400", "$01100", true},
    {"ports", "", "(mlx5_1'[^]*?State: )Active\n\t\tPhysical state: LinkUp",
     "$1Down\n\t\tPhysical state: Polling", true},
    {"environment", "", "$", "h1:1:1 [0] NCCL INFO NCCL_NET_GDR_LEVEL set by environment to LOC\n",
     true},
    {"GPUDirect RDMA", "", "$",
     "h1:1:1 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0\n", true},
    {"GPUDirect RDMA", "", "$",
     "h1:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n"
     "h1:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_1'\n",
     true},
    {"environment", "", "$",
     "h1:1:1 [0] NCCL INFO NCCL_NET_GDR_LEVEL set by environment to LOC\n"
     "h1:1:1 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0\n",
     true},
    {"modules", "", "nvidia_peermem         16384  0\n",
     "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54  Thu\n", true},
};

Evidence with_fault(const Fault& fault) {
  const bool in_lspci = *fault.in_lspci != '\0';
  return evidence_of_both(in_lspci ? edited(dell_lspci(), fault.in_lspci, fault.by) : dell_lspci(),
                          in_lspci ? dell_rest() : edited(dell_rest(), fault.pattern, fault.by));
}

TEST(Doctor, FindsNothingOnAHealthyMachine) {
  const Diagnosis diagnosis = diagnosis_of(evidence_of_both(dell_lspci(), dell_rest()));
  EXPECT_THAT(diagnosis.findings, IsEmpty());
  EXPECT_FALSE(diagnosis.is_ill(0));
  EXPECT_GT(diagnosis.count(Verdict::kUnknown), 0U);
  EXPECT_EQ(diagnosis.nodes, 2U);
}

TEST(Doctor, NamesEachFaultFirst) {
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(std::string(fault.check) + " " + fault.by);
    const Diagnosis diagnosis = diagnosis_of(with_fault(fault));
    ASSERT_FALSE(diagnosis.findings.empty());
    const Finding& first = diagnosis.findings.front();
    EXPECT_EQ(first.check, fault.check);
    EXPECT_EQ(first.price.why_not, "");
    EXPECT_FALSE(first.evidence.empty());
    for (const Quote& quote : first.evidence) {
      EXPECT_THAT(quote.place, ::testing::ContainsRegex("^(lspci|rest):[0-9]+"));
    }
    ASSERT_FALSE(first.price.alone.empty());
    EXPECT_EQ(first.price.alone[0].found_us != first.price.alone[0].mended_us, fault.moves);
    EXPECT_EQ(first.price.most() > kThreshold, fault.costs) << first.price.most();
    EXPECT_EQ(diagnosis.is_ill(kThreshold), fault.costs || first.is_error);
  }
}

TEST(Doctor, PagesOfAnIommuMayBeSmallerThanAssumed) {
  const Diagnosis diagnosis = diagnosis_of(
      evidence_of_both(dell_lspci(), edited(dell_rest(), "iommu=pt", "intel_iommu=on")));
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  const FindingPrice& price = diagnosis.findings[0].price;
  ASSERT_EQ(price.worst.size(), price.alone.size());
  for (std::size_t i = 0; i < price.alone.size(); ++i) {
    EXPECT_EQ(price.worst[i].mended_us, price.alone[i].mended_us);
    EXPECT_GT(price.worst[i].found_us, price.alone[i].found_us);
  }
  EXPECT_EQ(price.at_most(), price.worst.back().cost());
  EXPECT_GT(price.at_most(), 0.5);
  EXPECT_LT(price.most(), price.at_most());
  EXPECT_TRUE(diagnosis.is_ill(kThreshold));
}

TEST(Doctor, AMendSetsWhatItNamesAndNothingThatIsNotThere) {
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  const Evidence evidence = evidence_of_both(dell_lspci(), dell_rest());
  const Patient patient(evidence, catalog, parts, std::nullopt);
  Change mend;
  mend.set.push_back({"mlx5_0", "relaxed_ordering", "off"});
  const MachineCase what = changed(patient.found(), mend, catalog);
  for (const DeviceSpec& device : what.spec.node.devices) {
    const ParamValue* const value = measured(device, "relaxed_ordering");
    if (value == nullptr) continue;
    EXPECT_EQ(value->number == 0, device.name == "mlx5_0") << device.name;
  }
  mend.set.push_back({"mlx5_9", "relaxed_ordering", "off"});
  EXPECT_THROW(changed(patient.found(), mend, catalog), InputError);
}

TEST(Doctor, OfTwoLimitsInARowTheHiddenOneHasAPriceToo) {
  const std::string lspci = edited(
      dell_lspci(), "(\\n1a:00.0[^]*?LnkSta:\\tSpeed 32GT/s[^,]*, Width )x16[^\\n]*", "$1x4");
  const Diagnosis diagnosis = diagnosis_of(
      evidence_of_both(lspci, edited(dell_rest(), "(mlx5_0'[^]*?Rate: )400", "$01100")));
  ASSERT_EQ(diagnosis.findings.size(), 2U);
  for (const Finding& finding : diagnosis.findings) {
    EXPECT_GT(finding.price.most(), kThreshold) << finding.check;
  }
  ASSERT_EQ(diagnosis.together.size(), 1U);
  EXPECT_GT(diagnosis.together[0].priced.together[0].cost(), kThreshold);
}

/// Two hosts of the same kind, what each says beside.
Evidence two_hosts(const std::string& of_a, const std::string& of_b) {
  Evidence evidence;
  for (const auto& [host, more] : {std::pair{std::string("a"), of_a}, {std::string("b"), of_b}}) {
    parse_evidence(dell_lspci(), host + ".lspci", host, evidence);
    parse_evidence(edited(dell_rest() + more, "h1:1:1", host + ":1:1"), host + ".rest", host,
                   evidence);
  }
  return evidence;
}

bool has(const Diagnosis& diagnosis, const std::string& check, const std::string& host,
         const std::string& words = "") {
  return std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(), [&](const Finding& f) {
    return f.check == check && f.host == host && f.what.find(words) != std::string::npos;
  });
}

TEST(Doctor, ExaminesEachHostWhoseMachineIsAsTheOthersAre) {
  const std::string begin = "h1:1:1 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via ";
  EXPECT_TRUE(has(diagnosis_of(two_hosts(begin + "NET/IB/0/GDRDMA\n", begin + "NET/Socket/0\n")),
                  "GPUDirect RDMA", "b", "TCP sockets"));
  const Diagnosis xid =
      diagnosis_of(two_hosts("", "[  101.000000] NVRM: Xid (PCI:0000:19:00): 79, fell off\n"));
  EXPECT_TRUE(has(xid, "alerts", "b", "79"));
  EXPECT_FALSE(has(xid, "alerts", "a"));
  // Nobody read a's kernel messages.
  EXPECT_TRUE(std::any_of(xid.checks.begin(), xid.checks.end(), [](const Checked& check) {
    return check.name == "alerts" && check.host == "a" &&
           check.outcome.verdict == Verdict::kUnknown;
  }));
  EXPECT_TRUE(has(diagnosis_of(two_hosts("",
                                         "# Port counters: Lid 2 port 1 (CapMask: 0x5A00)\n"
                                         "SymbolErrorCounter:..............7000\n")),
                  "errors", "b"));
}

TEST(Doctor, OfAHostWithoutAMachineSaysThatItIsNotExamined) {
  Evidence evidence = two_hosts("", "");
  parse_evidence("c:1:1 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1\n", "log", "c",
                 evidence);
  const Diagnosis diagnosis = diagnosis_of(evidence);
  EXPECT_THAT(diagnosis.hosts, ::testing::ElementsAre("a", "b"));
  EXPECT_EQ(diagnosis.checks.back().outcome.verdict, Verdict::kUnknown);
  EXPECT_THAT(diagnosis.checks.back().outcome.text, HasSubstr("c is not examined: no GPU"));
  // Nor is it the one that stands for all, though its name is the first.
  Evidence other = evidence_of("A:1:1 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1\n");
  parse_evidence(dell_lspci(), "lspci", "b", other);
  EXPECT_THAT(diagnosis_of(other).hosts, ::testing::ElementsAre("b"));
}

TEST(Doctor, OfManyHostsEightHavePricesAndTheOthersSayThatTheyHaveNone) {
  Evidence evidence = two_hosts("", "");
  constexpr int kSlow = 10;
  for (int i = 0; i < kSlow; ++i) {
    const std::string host = "s" + std::to_string(i);
    const std::string rest =
        edited(dell_rest(), "(mlx5_1'[^]*?Rate: )400", "$01" + std::to_string(100 + 10 * i));
    parse_evidence(dell_lspci(), host + ".lspci", host, evidence);
    parse_evidence(edited(rest, "h1:1:1", host + ":1:1"), host + ".rest", host, evidence);
  }
  const Diagnosis diagnosis = diagnosis_of(evidence);
  const auto count = [&](bool priced) {
    return std::count_if(
        diagnosis.findings.begin(), diagnosis.findings.end(),
        [&](const Finding& f) { return f.check == "rate" && f.price.why_not.empty() == priced; });
  };
  EXPECT_EQ(count(true), 8);
  EXPECT_EQ(count(false), 2);
}

TEST(Doctor, AFindingInTheSameWordsIsAnotherWhereItsEvidenceIs) {
  Evidence evidence;
  const auto with_lanes = [](const std::string& lanes) {
    return edited(dell_lspci(), "(\n1a:00.0[^]*?LnkSta:\\tSpeed 32GT/s[^,]*, Width )x16[^\\n]*",
                  "$1x" + lanes);
  };
  for (const auto& [host, lanes] : {std::pair{"a", "8"}, {"b", "1"}, {"c", "8"}}) {
    parse_evidence(with_lanes(lanes), std::string(host) + ".lspci", host, evidence);
    parse_evidence(edited(dell_rest(), "h1:1:1", std::string(host) + ":1:1"),
                   std::string(host) + ".rest", host, evidence);
  }
  const Diagnosis diagnosis = diagnosis_of(evidence);
  EXPECT_TRUE(has(diagnosis, "PCIe links", "a"));
  EXPECT_TRUE(has(diagnosis, "PCIe links", "b"));
  EXPECT_FALSE(has(diagnosis, "PCIe links", "c"));
  const auto at_a = std::find_if(
      diagnosis.findings.begin(), diagnosis.findings.end(),
      [](const Finding& finding) { return finding.check == "PCIe links" && finding.host == "a"; });
  ASSERT_NE(at_a, diagnosis.findings.end());
  EXPECT_EQ(at_a->also_on, std::vector<std::string>{"c"});
}

TEST(Doctor, RanksWithNicsOfTheirOwnAreWell) {
  const auto hca = [](const std::string& host, const std::string& nic) {
    return host + ":1:1 [0] NCCL INFO NCCL_IB_HCA set by environment to " + nic + "\n";
  };
  const Diagnosis one = diagnosis_of(
      evidence_of_both(dell_lspci(), dell_rest() + hca("h1", "mlx5_0") + hca("h1", "mlx5_1")));
  EXPECT_TRUE(one.findings.empty());
  EXPECT_THAT(one.notes, Contains(HasSubstr("NCCL_IB_HCA is of ranks or hosts their own")));
  // One that no rank takes is left out.
  const Diagnosis left =
      diagnosis_of(evidence_of_both(dell_lspci(), dell_rest() + hca("h1", "mlx5_0")));
  ASSERT_EQ(left.findings.size(), 1U);
  EXPECT_EQ(left.findings[0].what,
            "NCCL_IB_HCA leaves out mlx5_1, of the same card as those it takes");
}

TEST(Doctor, OfALineOfLsmodAllAreAskedFor) {
  const Diagnosis diagnosis =
      diagnosis_of(evidence_of_both(dell_lspci(), "nvidia              56823808  117\n"));
  const auto at = std::find_if(diagnosis.checks.begin(), diagnosis.checks.end(),
                               [](const Checked& each) { return each.name == "modules"; });
  ASSERT_NE(at, diagnosis.checks.end());
  EXPECT_THAT(at->outcome.text,
              HasSubstr("rest:1 is part of lsmod's list and has no nvidia_peermem"));
  EXPECT_EQ(at->outcome.command, "lsmod");
}

TEST(Doctor, AnotherVersionOfNcclIsNotTakenInSilence) {
  const Diagnosis diagnosis = diagnosis_of(
      evidence_of_both(dell_lspci(), edited(dell_rest(), "version 2.28.9", "version 2.16.2")));
  EXPECT_THAT(diagnosis.notes, Contains(HasSubstr("does not know the decisions of NCCL 2.16.2")));
}

TEST(Doctor, ARefusedNicOfNoPlaceHasNoPriceAndCounts) {
  // Without sysfs' links lspci's NIC has no name that the log could mean.
  const Diagnosis diagnosis = diagnosis_of(evidence_of_both(
      dell_lspci(), "h1:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n"));
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_THAT(diagnosis.findings[0].why_unpriced, HasSubstr("where mlx5_0 is"));
  EXPECT_TRUE(diagnosis.is_ill(kThreshold));
}

TEST(Doctor, PricesTheOddHostByItself) {
  Evidence evidence;
  const std::string slow = edited(dell_rest(), "(mlx5_1'[^]*?Rate: )400", "$01100");
  for (const auto& [host, rest] :
       {std::pair{"a", dell_rest()}, std::pair{"b", slow}, std::pair{"c", dell_rest()}}) {
    std::string own = edited(rest, "h1:1:1", std::string(host) + ":1:1");
    parse_evidence(dell_lspci(), std::string(host) + ".lspci", host, evidence);
    parse_evidence(own, std::string(host) + ".rest", host, evidence);
  }
  const Diagnosis diagnosis = diagnosis_of(evidence);
  EXPECT_THAT(diagnosis.hosts, ::testing::ElementsAre("a", "b", "c"));
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings[0].host, "b");
  EXPECT_EQ(diagnosis.findings[0].check, "rate");
  EXPECT_GT(diagnosis.findings[0].price.most(), kThreshold);
  EXPECT_EQ(diagnosis.nodes, 3U);
  EXPECT_TRUE(std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                          [](const Finding& f) { return f.check == "hosts" && f.host == "b"; }));
}

TEST(Doctor, AMendThatTheModelCannotPriceCounts) {
  // A machine whose GPUs' part is not known: NCCL's decisions are not known either.
  const Diagnosis diagnosis = diagnosis_of(evidence_of(
      "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tPIX\tPIX\nGPU1\tPIX\t X \tPIX\nNIC0\tPIX\tPIX\t X \n"
      "h:1:1 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1\n"));
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_THAT(diagnosis.findings[0].price.why_not, HasSubstr("cannot follow NCCL's decisions"));
  EXPECT_TRUE(diagnosis.is_ill(kThreshold));
}

}  // namespace
}  // namespace weft::test::doctor_doctor
