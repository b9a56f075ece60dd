// Each check: speaks where its fact is edited into a real capture, and is silent on the capture.
#include "models/doctor/checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/doctor/checked.hpp"

namespace weft::test::doctor_checks {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DoctorChecks, AreSilentOnAHealthyMachine) {
  for (const Check& check : ::weft::doctor_checks()) {
    const Result result = healthy(check.name);
    EXPECT_NE(result.verdict, Verdict::kFinding) << check.name << ": " << result.text;
    EXPECT_EQ(result.verdict == Verdict::kUnknown, !result.command.empty()) << check.name;
  }
  for (const char* name :
       {"modules", "BAR1", "ACS", "IOMMU", "PCIe links", "NUMA placement", "MaxPayload",
        "MaxReadReq", "relaxed ordering", "ports", "rate", "environment"}) {
    EXPECT_EQ(healthy(name).verdict, Verdict::kOk) << name;
  }
}

TEST(DoctorChecks, SayWhatWouldTellWhatTheyDoNotKnow) {
  for (const auto& [name, command] : {std::pair{"modules", "lsmod"},
                                      {"IOMMU", "cat /proc/cmdline; dmesg"},
                                      {"NVLinks", "nvidia-smi topo -m; nvidia-smi nvlink -s"},
                                      {"ports", "ibstat"},
                                      {"rate", "ibstat"},
                                      {"MTU", "ibv_devinfo -v"},
                                      {"alerts", "sudo dmesg"},
                                      {"GPUDirect RDMA", "NCCL_DEBUG=INFO"},
                                      {"environment", "NCCL_DEBUG=INFO"}}) {
    const Result result = lspci_alone(name);
    EXPECT_EQ(result.verdict, Verdict::kUnknown) << name;
    EXPECT_EQ(result.command, command) << name;
  }
  const Evidence matrix = evidence_of(captured("topo-m-dgx-a100.txt"));
  for (const char* name : {"BAR1", "ACS", "PCIe links", "MaxPayload", "MaxReadReq",
                           "relaxed ordering", "NUMA placement"}) {
    EXPECT_EQ(run(name, matrix).verdict, Verdict::kUnknown) << name;
  }
}

TEST(DoctorChecks, NicsThatNobodyLookedForAreNotAbsent) {
  const Evidence gpus = evidence_of(captured("nvidia-smi-q-h100.txt"));
  for (const char* name : {"modules", "GPUDirect RDMA", "ports", "rate", "MTU", "MaxReadReq",
                           "relaxed ordering", "NUMA placement"}) {
    EXPECT_EQ(run(name, gpus).verdict, Verdict::kUnknown) << name;
  }
}

TEST(DoctorChecks, Bar1) {
  const Result result = with_lspci("BAR1", "size=128G", "size=256M");
  EXPECT_SPEAKS(result, "BAR1 of gpu0, gpu1");
  EXPECT_THAT(result.mended, ::testing::Contains(HasSubstr("gpu0.bar1_size=1374")));
  // Half of it: a product of the same name with half the memory.
  EXPECT_EQ(with_lspci("BAR1", "size=128G", "size=64G").verdict, Verdict::kOk);
}

TEST(DoctorChecks, Acs) {
  const std::string bits = "SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd-";
  const Result result =
      with_lspci("ACS", bits, "SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+");
  EXPECT_SPEAKS(result, "ACS of the switch ports above gpu0, gpu1, mlx5_0 and 1 more");
  EXPECT_THAT(result.mended, ::testing::Contains("mlx5_0.port_acs=none"));
  // What redirects nothing is no finding, nor is a root port's.
  EXPECT_EQ(
      with_lspci("ACS", bits, "SrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd+").verdict,
      Verdict::kOk);
  // Nor what stops only addresses that a device translated itself.
  EXPECT_EQ(
      with_lspci("ACS", bits, "SrcValid+ TransBlk+ ReqRedir- CmpltRedir- UpstreamFwd+").verdict,
      Verdict::kOk);
  EXPECT_EQ(with_lspci("ACS", "(15:01.0 PCI[^]*?)ReqRedir-", "$1ReqRedir+").verdict, Verdict::kOk);
}

TEST(DoctorChecks, WhatGoesByAnUnknownRootComplexHasNoPriceAndCounts) {
  const std::string acs = edited(dell_lspci(), "ReqRedir- CmpltRedir- UpstreamFwd-",
                                 "ReqRedir+ CmpltRedir+ UpstreamFwd+");
  const std::string other = edited(acs, "Device 352a", "Device 3520");
  const std::string iommu = edited(dell_rest(), "iommu=pt", "intel_iommu=on");
  for (const auto& [lspci, is_known] : {std::pair{acs, true}, {other, false}}) {
    const Diagnosis diagnosis = diagnosis_of(evidence_of_both(lspci, iommu));
    ASSERT_EQ(diagnosis.findings.size(), 2U);
    for (const Finding& finding : diagnosis.findings) {
      EXPECT_EQ(finding.why_unpriced.empty(), is_known) << finding.what;
      EXPECT_EQ(finding.is_error, !is_known) << finding.what;
    }
    const bool is_noted =
        std::any_of(diagnosis.notes.begin(), diagnosis.notes.end(), [](const std::string& note) {
          return note.starts_with(
              "cpu0 is taken for sapphire-rapids by its root port 8086:352a (lspci:1)");
        });
    EXPECT_EQ(is_noted, is_known);
  }
  // What says the CPU rules.
  const ImportedMachine machine = import_machine(
      evidence_of_both(dell_lspci(),
                       "Architecture: x86_64\nVendor ID: GenuineIntel\nCPU family: 6\n"
                       "Model: 207\n"),
      make_catalog());
  EXPECT_EQ(machine.spec.node.devices.front().part, "emerald-rapids");
}

TEST(DoctorChecks, AcsBetweenGpusMattersWhereNoNvlinkJoinsThem) {
  const auto with = [](const std::string& path) {
    return run("ACS",
               evidence_of("\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\t X \tNV4\tSYS\tSYS\n"
                           "GPU1\tNV4\t X \tSYS\tSYS\nGPU2\tSYS\tSYS\t X \t" +
                           path + "\nGPU3\tSYS\tSYS\t" + path + "\t X \n"),
               "h100-pcie");
  };
  const Result result = with("PIX");
  EXPECT_EQ(result.verdict, Verdict::kUnknown);
  EXPECT_THAT(result.text, HasSubstr("gpu2, gpu3"));
  EXPECT_EQ(with("NV4").verdict, Verdict::kNotHere);
}

TEST(DoctorChecks, AGuestThatShowsNoSwitches) {
  const std::string lscpu =
      "Architecture: x86_64\nVendor ID: GenuineIntel\nCPU family: 6\nModel: 207\nSocket(s): 1\n";
  const std::string matrix =
      "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tNV18\tPHB\tPHB\t0-127\t0\nGPU1\tNV18\t X \tPHB\tPHB\t0-127\t0\n"
      "NIC0\tPHB\tPHB\t X \tPHB\nNIC1\tPHB\tPHB\tPHB\t X \n"
      "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";
  const std::string guest = lscpu + "Hypervisor vendor: KVM\n";
  const std::string list =
      "GPU 0: NVIDIA H200 (UUID: GPU-11111111-2222-3333-4444-555555555550)\n"
      "GPU 1: NVIDIA H200 (UUID: GPU-11111111-2222-3333-4444-555555555551)\n";
  const auto with_log = [&](const std::string& log) {
    Evidence evidence = evidence_of_both(matrix, guest);
    parse_evidence(list, "list", "", evidence);
    if (!log.empty()) parse_evidence(log, "log", "", evidence);
    return evidence;
  };
  const std::string via = "h1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0";
  EXPECT_EQ(run("virtual machine", with_log("")).verdict, Verdict::kUnknown);
  EXPECT_EQ(run("virtual machine", with_log(via + "/GDRDMA\n")).verdict, Verdict::kOk);
  const Evidence evidence = with_log(via + "\n");
  EXPECT_SPEAKS(run("virtual machine", evidence),
                "NCCL leaves GPUDirect RDMA off (gpu0: distance PHB > PXB)");
  EXPECT_EQ(run("virtual machine", evidence_of_both(matrix, lscpu)).verdict, Verdict::kNotHere);
  EXPECT_EQ(run("virtual machine", evidence_of(matrix)).verdict, Verdict::kUnknown);
  EXPECT_EQ(run("virtual machine", evidence_of_both(dell_lspci(), guest)).verdict, Verdict::kOk);
  const Diagnosis diagnosis = diagnosis_of(evidence);
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  ASSERT_FALSE(diagnosis.findings[0].price.alone.empty());
  EXPECT_EQ(diagnosis.findings[0].price.alone[0].found_path, "host-staged");
  EXPECT_EQ(diagnosis.findings[0].price.alone[0].mended_path, "gdr");
}

TEST(DoctorChecks, Iommu) {
  EXPECT_SPEAKS(with_rest("IOMMU", "iommu=pt", "intel_iommu=on"), "the IOMMU translates");
  EXPECT_EQ(with_rest("IOMMU", "iommu=pt", "iommu=off").verdict, Verdict::kOk);
}

TEST(DoctorChecks, PcieLinks) {
  const std::string trained = "(\\n1a:00.0[^]*?LnkSta:\\tSpeed )32GT/s[^,]*, Width x16[^\\n]*";
  const Result lanes = with_lspci("PCIe links", trained,
                                  "$01"
                                  "32GT/s, Width x8");
  EXPECT_SPEAKS(lanes, "the PCIe link of mlx5_0");
  EXPECT_THAT(lanes.mended, ::testing::ElementsAre("mlx5_0.trained_width=16"));
  EXPECT_THAT(with_lspci("PCIe links", trained,
                         "$01"
                         "16GT/s, Width x16")
                  .mended,
              ::testing::ElementsAre("mlx5_0.trained_gen=5"));
  // An idle GPU slows its link down, but keeps its lanes.
  const std::string gpu = "(\\n19:00.0[^]*?LnkSta:\\tSpeed )32GT/s[^,]*, Width x16[^\\n]*";
  EXPECT_EQ(with_lspci("PCIe links", gpu,
                       "$01"
                       "2.5GT/s, Width x16")
                .verdict,
            Verdict::kUnknown);
  EXPECT_SPEAKS(with_lspci("PCIe links", gpu,
                           "$01"
                           "32GT/s, Width x8"),
                "the PCIe link of gpu0");
  // A switch whose own link nobody showed.
  const Result uplink = with_lspci("PCIe links", "(\n98:00.0[^]*?)LnkSta:", "$1LnkXxx:");
  EXPECT_EQ(uplink.verdict, Verdict::kUnknown);
  EXPECT_THAT(uplink.text, HasSubstr("the trained lanes of pcisw1"));
}

TEST(DoctorChecks, NumaPlacement) {
  const auto with = [&](const std::string& path) {
    return run("NUMA placement",
               evidence_of("\tGPU0\tGPU1\tNIC0\nGPU0\t X \tSYS\t" + path +
                           "\nGPU1\tSYS\t X \tSYS\n" + "NIC0\t" + path + "\tSYS\t X \n"),
               "h100-pcie");
  };
  const Result far = with("SYS");
  EXPECT_SPEAKS(far, "nic0 is on another socket than the GPU that uses it");
  EXPECT_EQ(
      run("NUMA placement", evidence_of(edited(dell_lspci(), "\tNUMA node: [0-9]\n", ""))).verdict,
      Verdict::kUnknown);
}

TEST(DoctorChecks, MaxPayload) {
  const Result result = with_lspci("MaxPayload", "(\\n1a:00.0[^]*?DevCtl:[^]*?MaxPayload )256",
                                   "$01"
                                   "128");
  EXPECT_SPEAKS(result, "MaxPayload of 1 function is below 256 B");
  EXPECT_THAT(result.mended, ::testing::ElementsAre("mlx5_0.mps=256 B"));
  // What a bridge above can do, nobody showed.
  EXPECT_EQ(with_lspci("MaxPayload", "(15:01.0 PCI[^]*?DevCap:\t)MaxPayload", "$1MaxXxx").verdict,
            Verdict::kUnknown);
  // A switch that can do no more is why.
  EXPECT_EQ(run("MaxPayload",
                evidence_of_both(edited(edited(dell_lspci(), "MaxPayload 256", "MaxPayload 128"),
                                        "DevCap:\tMaxPayload [0-9]+", "DevCap:\tMaxPayload 128"),
                                 dell_rest()))
                .verdict,
            Verdict::kOk);
}

TEST(DoctorChecks, MaxReadReqAndOrdering) {
  EXPECT_SPEAKS(with_lspci("MaxReadReq", "(\\n1a:00.0[^]*?MaxReadReq )4096",
                           "$01"
                           "512"),
                "MaxReadReq of mlx5_0");
  EXPECT_SPEAKS(with_lspci("relaxed ordering", "(\\n9c:00.0[^]*?RlxdOrd)\\+", "$1-"),
                "relaxed ordering of mlx5_1 is off");
  // A virtual function's register is not its own.
  const std::string virtual_ones = edited(edited(dell_lspci(), "MT2910 Family \\[ConnectX-7\\]",
                                                 "ConnectX Family mlx5Gen Virtual Function"),
                                          "(\\n(1a|9c):00.0[^]*?RlxdOrd)\\+", "$1-");
  const Evidence in_vm = evidence_of_both(virtual_ones, dell_rest());
  EXPECT_EQ(run("relaxed ordering", in_vm).verdict, Verdict::kNotHere);
  EXPECT_EQ(run("MaxReadReq", in_vm).verdict, Verdict::kNotHere);
}

TEST(DoctorChecks, NvLinks) {
  const std::string tree = captured("nccl-graph-h200-vm.txt");
  EXPECT_EQ(run("NVLinks", evidence_of(tree)).verdict, Verdict::kOk);
  const Result result =
      run("NVLinks", evidence_of(edited(tree, "(GPU/0-6b000 \\(9\\)\\s*\\+ NVL\\[)370.8",
                                        "$01"
                                        "329.6")));
  EXPECT_SPEAKS(result, "lacks NVLinks");
  EXPECT_THAT(result.mended, ::testing::ElementsAre(HasSubstr(": 18 NVLinks")));
}

// What topo -m says of CPUs may be more than there are: that it's far is no advice then.
TEST(DoctorChecks, PlacementIsNotKnownWhereEvidenceDisagreesAboutCpus) {
  const std::string matrix =
      "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tSYS\tSYS\t24-47\t1\nGPU1\tSYS\t X \tSYS\t24-47\t1\nNIC0\tSYS\tSYS\t X \n";
  EXPECT_SPEAKS(run("NUMA placement", evidence_of(matrix), "a100-pcie"), "on another socket");
  const Result result = run(
      "NUMA placement",
      evidence_of("Architecture: x86_64\nSocket(s): 2\nNUMA node(s): 2\n" + matrix), "a100-pcie");
  EXPECT_EQ(result.verdict, Verdict::kUnknown);
  EXPECT_THAT(result.text, HasSubstr("lscpu counts 2 NUMA nodes (f:3)"));
}

TEST(DoctorChecks, Ports) {
  const std::string up = "(mlx5_1'[^]*?State: )Active\n\t\tPhysical state: LinkUp";
  const Result down = with_rest("ports", up,
                                "$01"
                                "Down\n\t\tPhysical state: Polling");
  EXPECT_SPEAKS(down, "the port of mlx5_1 is down");
  EXPECT_THAT(down.mended, ::testing::Contains("mlx5_1 on the network"));
  // Somebody turned it off.
  EXPECT_EQ(with_rest("ports", up,
                      "$01"
                      "Down\n\t\tPhysical state: Disabled")
                .verdict,
            Verdict::kOk);
}

// Of a machine whose NICs are in no tree: by what ibstat says alone, of which mlx5_5 is disabled.
TEST(DoctorChecks, PortsWithoutAPlace) {
  const std::string gpus = captured("nvidia-smi-q-h100.txt");
  const std::string ports = captured("ibstat-h100-down.txt");
  const Result down = run("ports", evidence_of_both(gpus, ports));
  EXPECT_EQ(down.verdict, Verdict::kUnknown);
  EXPECT_THAT(down.text, HasSubstr("mlx5_11"));
  EXPECT_THAT(
      run("ports", evidence_of_both(gpus, edited(ports, "State: Down", "State: Active"))).text,
      ::testing::Not(HasSubstr("mlx5_11")));
}

/// A third NIC of the same product, on no GPU's switch, and what is said of it.
Evidence with_storage(const std::string& state, const std::string& rate, const std::string& layer,
                      const std::string& more = "") {
  std::string rest = edited(dell_rest(), "\tGPU0\tGPU1\tNIC0\tNIC1", "$0\tNIC2");
  rest = edited(rest, "(GPU0[^\n]*PIX\tSYS)", "$1\tNODE");
  rest = edited(rest, "(GPU1[^\n]*SYS\tPIX)", "$1\tSYS");
  rest = edited(rest, "(\nNIC0\tPIX[^\n]*)", "$1\tNODE");
  rest = edited(rest, "(\nNIC1\tSYS[^\n]*)", "$1\tSYS\nNIC2\tNODE\tSYS\tNODE\tSYS\t X ");
  rest = edited(rest, "(  NIC1: mlx5_1\n)", "$1  NIC2: mlx5_2\n");
  rest = edited(rest, "mlx5_. -> [^\n]*\n", "");
  return evidence_of(edited(rest, "(h1:1:1 [^\n]*\n)",
                            "$1CA 'mlx5_2'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: " + state +
                                "\n\t\tRate: " + rate + "\n\t\tLink layer: " + layer + "\n") +
                     more);
}

TEST(DoctorChecks, StorageNicsAreNoFinding) {
  const auto on = [](const char* name, const Evidence& evidence) {
    return run(name, evidence, "h100-sxm");
  };
  const Result down = on("ports", with_storage("Down", "40", "InfiniBand"));
  EXPECT_EQ(down.verdict, Verdict::kUnknown);
  EXPECT_THAT(down.text, HasSubstr("mlx5_2"));
  EXPECT_NE(on("rate", with_storage("Active", "200", "InfiniBand")).verdict, Verdict::kFinding);
  const std::string hca = "h1:1:1 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_0,mlx5_1";
  EXPECT_EQ(on("environment", with_storage("Active", "400", "Ethernet", hca + "\n")).verdict,
            Verdict::kOk);
  // NCCL is to use it.
  EXPECT_SPEAKS(on("ports", with_storage("Down", "40", "InfiniBand", hca + ",mlx5_2\n")),
                "mlx5_2 is down");
}

/// The Dell's matrix and ibstat, which have two NICs more than lspci has, and nothing that places
/// any.
std::string dell_ports(const std::string& state, const std::string& rate) {
  std::string rest = edited(dell_rest(), "mlx5_. -> [^\n]*\n", "");
  rest = edited(rest, "NIC0\tNIC1\tCPU", "NIC0\tNIC1\tNIC2\tNIC3\tCPU");
  rest = edited(rest, "(GPU0[^\n]*)PIX\tSYS", "$1NODE\tSYS\tPIX\tSYS");
  rest = edited(rest, "(GPU1[^\n]*)SYS\tPIX", "$1SYS\tNODE\tSYS\tPIX");
  rest = edited(rest, "NIC0\tPIX\tSYS\t X \tSYS\nNIC1\tSYS\tPIX\tSYS\t X \n",
                "NIC0\tNODE\tSYS\t X \tSYS\tNODE\tSYS\nNIC1\tSYS\tNODE\tSYS\t X \tSYS\tNODE\n"
                "NIC2\tPIX\tSYS\tNODE\tSYS\t X \tSYS\nNIC3\tSYS\tPIX\tSYS\tNODE\tSYS\t X \n");
  rest = edited(rest, "(  NIC1: mlx5_1\n)", "$1  NIC2: mlx5_2\n  NIC3: mlx5_3\n");
  const auto port = [](const char* name, const std::string& is, const std::string& gigabits) {
    return "CA '" + std::string(name) + "'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: " + is +
           "\n\t\tPhysical state: LinkUp\n\t\tRate: " + gigabits + "\n\t\tLink layer: InfiniBand\n";
  };
  return edited(rest, "(h1:1:1 [^\n]*\n)",
                port("mlx5_2", "Active", "400") + port("mlx5_3", state, rate) + "$1");
}

TEST(DoctorChecks, PortsAreThoseBesideTheGpusThatTheMatrixHas) {
  EXPECT_SPEAKS(run("rate", evidence_of_both(dell_lspci(), dell_ports("Active", "200"))),
                "the rate of mlx5_3 is below that of others");
  const Evidence down = evidence_of_both(dell_lspci(), dell_ports("Initializing", "400"));
  EXPECT_SPEAKS(run("ports", down), "mlx5_3 is down");
  const Diagnosis diagnosis = diagnosis_of(down);
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_THAT(diagnosis.findings[0].remedy, HasSubstr("subnet manager"));
}

TEST(DoctorChecks, AskForWhatIsNotGiven) {
  const std::string ports = edited(dell_ports("Active", "400"), "NIC\\d: mlx5_\\d\n", "");
  const Result rate =
      run("rate", evidence_of_both(dell_lspci(), edited(ports, "\tGPU0\tGPU1[^\r]*X \n", "")));
  EXPECT_EQ(rate.verdict, Verdict::kUnknown);
  EXPECT_EQ(rate.command, "ls -l /sys/class/infiniband");
}

TEST(DoctorChecks, RateAndMtu) {
  EXPECT_SPEAKS(with_rest("rate", "(mlx5_1'[^]*?Rate: )400",
                          "$01"
                          "200"),
                "the rate of mlx5_1");
  // All alike: cards of one id are sold for several rates.
  EXPECT_EQ(with_rest("rate", "Rate: 400", "Rate: 200").verdict, Verdict::kUnknown);
  const std::string devinfo =
      "hca_id:\tmlx5_0\n\tport:\t1\n\t\tstate:\t\tPORT_ACTIVE (4)\n\t\tactive_mtu:\t\tN (5)\n";
  EXPECT_SPEAKS(with_more("MTU", edited(devinfo, "N ", "1024 ")), "MTU of 1 port is below 4096 B");
  const std::string most = edited(devinfo, "N ", "4096 ");
  EXPECT_EQ(with_more("MTU", most).verdict, Verdict::kUnknown);  // of mlx5_1 nothing is said
  EXPECT_EQ(with_more("MTU", most + edited(most, "mlx5_0", "mlx5_1")).verdict, Verdict::kOk);
}

TEST(DoctorChecks, Counters) {
  const std::string head = "# Port counters: Lid 2 port 1 (CapMask: 0x5A00)\n";
  EXPECT_EQ(with_more("errors", head + "SymbolErrorCounter:..............0\n").verdict,
            Verdict::kOk);
  EXPECT_SPEAKS(with_more("errors", head + "SymbolErrorCounter:..............7\n"),
                "errors were counted on Lid 2 port 1");
  EXPECT_EQ(with_more("errors", head + "PortXmitWait:....................7\n").verdict,
            Verdict::kOk);
  EXPECT_EQ(with_more("congestion", head + "PortXmitWait:....................7\n").verdict,
            Verdict::kOk);
  EXPECT_SPEAKS(with_more("congestion", head + "PortXmitDiscards:................7\n"),
                "congestion was counted on Lid 2 port 1");
}

TEST(DoctorChecks, Environment) {
  const auto with = [](const std::string& variable, const std::string& value) {
    return with_more("environment",
                     "h1:1:1 [0] NCCL INFO " + variable + " set by environment to " + value + "\n");
  };
  for (const auto& [variable, value] : {std::pair{"NCCL_P2P_DISABLE", "1"},
                                        {"NCCL_SHM_DISABLE", "1"},
                                        {"NCCL_NET_GDR_LEVEL", "LOC"},
                                        {"NCCL_IB_DISABLE", "1"},
                                        {"NCCL_IB_HCA", "mlx5_0"}}) {
    EXPECT_SPEAKS(with(variable, value), variable);
  }
  EXPECT_EQ(with("NCCL_DEBUG", "INFO").verdict, Verdict::kOk);
  EXPECT_EQ(with("NCCL_P2P_DISABLE", "0").verdict, Verdict::kOk);
  EXPECT_EQ(with("NCCL_NET_GDR_LEVEL", "SYS").verdict, Verdict::kOk);
  EXPECT_EQ(with("NCCL_P2P_LEVEL", "SYS").verdict, Verdict::kOk);
  EXPECT_EQ(with("NCCL_IB_HCA", "mlx5").verdict, Verdict::kOk);
}

TEST(DoctorChecks, Gdr) {
  const auto with = [](const std::string& via) {
    return with_more("GPUDirect RDMA",
                     "h1:1:1 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via " + via + "\n");
  };
  EXPECT_EQ(with("NET/IB/0/GDRDMA").verdict, Verdict::kOk);
  EXPECT_SPEAKS(with("NET/IB/0"), "NCCL did not use GPUDirect RDMA, though its rule turns it on");
  EXPECT_SPEAKS(with("NET/Socket/0"), "TCP sockets");
  EXPECT_SPEAKS(with("NET/IB/0/GDRDMA\n"
                     "h1:1:1 [0] NCCL INFO Channel 01/0 : 3[1] -> 0[0] [send] via NET/IB/1"),
                "NCCL used it on some connections and not on 1, though");
  EXPECT_SPEAKS(with_more("GPUDirect RDMA",
                          "h1:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA "
                          "Disabled for HCA 0 'mlx5_0'\n"),
                "NCCL found no GPUDirect RDMA on 1 NIC");
  // By its rule it is off.
  const Result off =
      with_more("GPUDirect RDMA",
                "h1:1:1 [0] NCCL INFO NCCL_NET_GDR_LEVEL set by environment to LOC\n"
                "h1:1:1 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0\n");
  EXPECT_EQ(off.verdict, Verdict::kOk);
  EXPECT_THAT(off.text, HasSubstr("its rule leaves it off for gpu"));
  // Where weft cannot tell whether its rule does, it is none of what is well.
  EXPECT_SPEAKS(with_more("GPUDirect RDMA",
                          "h1:1:1 [0] NCCL INFO NCCL_IB_HCA set by environment to none\n"
                          "h1:1:1 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0\n"),
                "NCCL did not use GPUDirect RDMA between nodes");
}

/// NCCL's log of two GPUs of one of two nodes, and nothing else.
Diagnosis log_alone(const std::string& lines) {
  const std::string head = "h1:1:1 [0] NCCL INFO ";
  return diagnosis_of(evidence_of(
      head + "NCCL version 2.28.9+cuda12.9\n" + head +
      "ncclCommInitRank comm 0x1 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 18000 commId 0x2\n" +
      head + "comm 0x1 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0\n" + lines));
}

TEST(DoctorChecks, ALogAloneShowsSocketsAndStaging) {
  const std::string head = "h1:1:1 [0] NCCL INFO ";
  const std::string channel = head + "Channel 00/0 : 1[1] -> 2[0] [send] via NET/";
  const Diagnosis sockets =
      log_alone(head + "NET/IB : No device found.\n" + head + "Using network Socket\n");
  ASSERT_EQ(sockets.findings.size(), 1U);
  EXPECT_EQ(sockets.findings[0].what,
            "NCCL runs over TCP sockets between nodes, not over verbs: it found no NIC");
  ASSERT_EQ(sockets.findings[0].evidence.size(), 2U);
  EXPECT_EQ(sockets.findings[0].evidence[0].place, "f:5");
  EXPECT_EQ(sockets.findings[0].evidence[1].place, "f:4");
  EXPECT_TRUE(sockets.is_ill(1));
  for (const auto& [name, value] :
       {std::pair{"NCCL_IB_DISABLE", "1"}, std::pair{"NCCL_NET", "Socket"}}) {
    const std::string set = std::string(name) + " set by environment to " + value + ".\n";
    const Diagnosis by_variable = log_alone(head + set + head + "Using network Socket\n");
    ASSERT_EQ(by_variable.findings.size(), 2U);
    EXPECT_EQ(by_variable.findings[0].what,
              "NCCL runs over TCP sockets between nodes, not over verbs: " + std::string(name) +
                  "=" + value);
  }
  const Diagnosis staged = log_alone(channel + "IB/0\n");
  ASSERT_EQ(staged.findings.size(), 1U);
  EXPECT_EQ(staged.findings[0].what, "NCCL did not use GPUDirect RDMA between nodes");
  EXPECT_EQ(staged.findings[0].why_unpriced, "nothing says where in the machine the NICs are");
  EXPECT_EQ(staged.findings[0].evidence[0].place, "f:4");
  EXPECT_TRUE(staged.is_ill(1));
  const Diagnosis gdr = log_alone(channel + "IB/0/GDRDMA\n");
  EXPECT_TRUE(gdr.findings.empty());
  EXPECT_EQ(gdr.checks[0].outcome.verdict, Verdict::kOk);
  EXPECT_EQ(gdr.checks[0].outcome.text, "NCCL used it");
}

TEST(DoctorChecks, SocketsLeaveOtherFindingsTheirPrice) {
  const Diagnosis diagnosis = diagnosis_of(evidence_of_both(
      edited(dell_lspci(), "(\n1a:00.0[^]*?LnkSta:\tSpeed 32GT/s[^,]*, Width )x16[^\n]*", "$1x4"),
      dell_rest() + "h1:1:1 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1\n"));
  ASSERT_EQ(diagnosis.findings.size(), 2U);
  EXPECT_EQ(diagnosis.findings[0].check, "PCIe links");
  EXPECT_GT(diagnosis.findings[0].price.most(), 0.05);
  EXPECT_EQ(diagnosis.findings[1].why_unpriced, "sockets are not modelled");
}

TEST(DoctorChecks, ANodeByItselfMayUseNoNetwork) {
  EXPECT_NE(run("GPUDirect RDMA",
                evidence_of("h1:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 "
                            "busId 18000 commId 0x2\n"
                            "h1:1:1 [0] NCCL INFO Using network Socket\n"))
                .verdict,
            Verdict::kFinding);
}

TEST(DoctorChecks, NicsThatNcclLists) {
  const std::string using_ = "h1:1:1 [0] NCCL INFO NET/IB : Using ";
  const std::string one = using_ + "[0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.7<0>\n";
  const std::string both = using_ + "[0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.7<0>\n";
  EXPECT_EQ(with_more("NICs", both).verdict, Verdict::kOk);
  const Result placed = with_more("NICs", one);
  EXPECT_SPEAKS(placed, "NCCL's list of NICs is without mlx5_1, of the same card");
  EXPECT_EQ(placed.mended, std::vector<std::string>{"mlx5_1 on the network"});
  EXPECT_NE(run("NICs", evidence_of_both(dell_lspci(), edited(dell_rest(),
                                                              "State: Active\n(\t+Ph[^C]*"
                                                              "InfiniBand\nmlx5_0 ->)",
                                                              "State: Down\n$1") +
                                                           one))
                .verdict,
            Verdict::kFinding);  // it is down: the finding of another check
  EXPECT_SPEAKS(run("NICs", evidence_of_both(dell_lspci(), one)),
                "NCCL uses 1 NIC (mlx5_0), though 2 of one card are beside GPUs");
  const std::string gpus = captured("nvidia-smi-q-h100.txt");
  const std::string ports = edited(dell_rest(), "mlx5_. -> [^\n]*\n|\tGPU0[^\r]*mlx5_1\n", "");
  EXPECT_SPEAKS(run("NICs", evidence_of_both(gpus, ports + one)),
                "NCCL uses 1 NIC (mlx5_0), though others of the product are up: mlx5_1");
  EXPECT_EQ(run("NICs", evidence_of_both(gpus, one)).verdict, Verdict::kUnknown);
}

TEST(DoctorChecks, GpusThatAreLost) {
  EXPECT_EQ(healthy("GPUs").verdict, Verdict::kOk);
  EXPECT_EQ(lspci_alone("GPUs").verdict, Verdict::kUnknown);
  const std::string function = "(\n19:00.0 3D controller: [^\n]*)\\(rev a1\\)[^]*?\n\n";
  EXPECT_SPEAKS(with_lspci("alerts", function, "$1(rev ff) (prog-if ff)\n\n"),
                "0000:19:00.0: does not answer on PCIe (rev ff)");
  const std::string silent =
      edited(dell_lspci(), function, "$1(rev a1) (prog-if ff)\n\t!!! Unknown header type 7f\n\n");
  EXPECT_SPEAKS(run("alerts", evidence_of_both(silent, dell_rest())),
                "0000:19:00.0: does not answer on PCIe (header type 7f)");
  EXPECT_TRUE(diagnosis_of(evidence_of_both(silent, dell_rest())).is_ill(1));
  // nvidia-smi numbers the others anew, or does not.
  std::string rest = edited(dell_rest(), "(GPU1[^\n]*)\nNIC0", "NIC0");
  EXPECT_SPEAKS(run("GPUs", evidence_of_both(dell_lspci(), rest)), "topo -m has 1 of 2 GPUs");
  const std::string gap = edited(dell_rest(), "GPU0[^\n]*PIX[^\n]*\n", "");
  const Evidence evidence = evidence_of_both(dell_lspci(), edited(gap, "GPU0\tGPU1", "GPU1"));
  EXPECT_SPEAKS(run("GPUs", evidence), "topo -m has 1 of 2 GPUs on the bus, it is without gpu0");
  const ImportedMachine machine = import_machine(evidence, make_catalog());
  ASSERT_FALSE(machine.conflicts.empty());
  EXPECT_EQ(machine.conflicts[0].what, "GPUs");
  EXPECT_EQ(machine.conflicts[0].other, "topo -m: 1");
}

TEST(DoctorChecks, AlertsAndHosts) {
  EXPECT_SPEAKS(with_more("alerts", "[  101.000000] NVRM: Xid (PCI:0000:19:00): 79, fell off\n"),
                "Xid");
  const auto is_error = [](const std::string& xid) {
    const Diagnosis diagnosis = diagnosis_of(evidence_of_both(
        dell_lspci(),
        dell_rest() + "[  101.000000] NVRM: Xid (PCI:0000:19:00): " + xid + ", pid=1\n"));
    return diagnosis.findings.size() == 1 && diagnosis.is_ill(1);
  };
  EXPECT_TRUE(is_error("79"));
  EXPECT_FALSE(is_error("43"));  // a program's own
  std::string many;
  for (int i = 10; i < 40; ++i) {
    many += "[  101.000000] NVRM: Xid (PCI:0000:19:00): 43, pid=" + std::to_string(i) + "\n";
  }
  EXPECT_SPEAKS(
      with_more("alerts", many + "[  102.000000] NVRM: Xid (PCI:0000:19:00): 79, fell off\n"),
      "79");
  EXPECT_EQ(with_more("alerts", "[  101.000000] nothing to see here, 123456\n").verdict,
            Verdict::kOk);
  Evidence hosts;
  for (const char* host : {"a", "b", "c"}) parse_evidence(dell_lspci(), "f", host, hosts);
  EXPECT_EQ(run("hosts", hosts).verdict, Verdict::kOk);
  parse_evidence("Module  Size  Used by\nnvidia_peermem 1 0\n", "m", "b", hosts);
  parse_evidence("Module  Size  Used by\nmlx5_core 1 0\n", "m", "a", hosts);
  parse_evidence("Module  Size  Used by\nnvidia_peermem 1 0\n", "m", "c", hosts);
  EXPECT_SPEAKS(run("hosts", hosts), "a differs from the other hosts");
}

}  // namespace
}  // namespace weft::test::doctor_checks
