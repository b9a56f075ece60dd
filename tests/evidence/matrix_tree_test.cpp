#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/evidence/imported.hpp"

namespace weft::test::evidence_matrix_tree {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Two GPUs of two NUMA nodes, near to these processors, a NIC with NODE to both.
std::string two_nodes(const std::string& near0, const std::string& near1) {
  return "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
         "GPU0\t X \tNV18\tNODE\t" +
         near0 + "\t0\t\tN/A\nGPU1\tNV18\t X \tNODE\t" + near1 +
         "\t1\t\tN/A\nNIC0\tNODE\tNODE\t X \t\t\t\t\n";
}

TEST(MatrixTree, NodeBetweenSocketsIsAConflict) {
  const auto conflicts = [](const std::string& text) {
    std::vector<std::string> out;
    for (const Conflict& each : imported(text).conflicts) out.push_back(text_of(each));
    return out;
  };
  const auto lscpu = [](const std::string& sockets, const std::string& nodes) {
    return "Architecture:        x86_64\nSocket(s):           " + sockets +
           "\nNUMA node(s):        " + nodes + "\n";
  };
  const std::string matrix = two_nodes("0-9", "10-19");
  EXPECT_THAT(conflicts(lscpu("2", "2") + matrix),
              ElementsAre("gpu0 and gpu1: NODE (f:5) is taken, not NUMA nodes 0 and 1 (f:6)"));
  EXPECT_THAT(conflicts(lscpu("1", "4") + matrix), IsEmpty());
  EXPECT_THAT(conflicts(lscpu("2", "8") + matrix), IsEmpty()) << "both of the first socket";
  EXPECT_THAT(conflicts(lscpu("96", "4") + matrix), IsEmpty()) << "a guest's, one a processor";
  // GB200: 2 of its 34 nodes have processors.
  std::string memory;
  for (int node = 2; node < 34; ++node) {
    memory += "NUMA node" + std::to_string(node) + " CPU(s):\n";
  }
  EXPECT_THAT(conflicts(lscpu("2", "34") + "NUMA node0 CPU(s):     0-71\n" +
                        "NUMA node1 CPU(s):     72-143\n" + memory + matrix),
              ElementsAre("gpu0 and gpu1: NODE (f:39) is taken, not NUMA nodes 0 and 1 (f:40)"));
}

/// Two GPUs near to one NUMA node each, a NIC of which nothing says so, all SYS apart.
std::string all_apart(const std::string& node0, const std::string& node1) {
  return "        GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
         "GPU0     X      SYS     SYS     24-47,72-95     " +
         node0 + "               N/A\nGPU1    SYS      X      SYS     24-47,72-95     " + node1 +
         "               N/A\nNIC0    SYS     SYS      X\n";
}

std::ptrdiff_t cpus(const ImportedMachine& machine) {
  const auto& devices = machine.spec.node.devices;
  return std::count_if(devices.begin(), devices.end(),
                       [](const DeviceSpec& device) { return device.kind == DeviceKind::kCpu; });
}

TEST(MatrixTree, MoreCpusThanLscpuCountsAreAConflict) {
  const std::string lscpu = "Architecture: x86_64\nSocket(s): 2\nNUMA node(s): 2\n";
  const ImportedMachine shared = imported(lscpu + all_apart("1", "1"));
  EXPECT_EQ(cpus(shared), 2);
  EXPECT_EQ(device(shared.spec, "gpu0").upstream, device(shared.spec, "gpu1").upstream);
  ASSERT_FALSE(shared.conflicts.empty());
  EXPECT_EQ(text_of(shared.conflicts[0]),
            "CPUs: 2, as lscpu counts NUMA nodes on 2 sockets (f:3) is taken, not 3, as topo -m "
            "says SYS between devices (f:5)");
  EXPECT_EQ(shared.cpus_doubt,
            "topo -m says SYS between devices of 3 CPUs (f:5), lscpu counts 2 NUMA nodes (f:3): "
            "which devices share a socket is not known");
  // Nothing says with which GPU the NIC shares one.
  const ImportedMachine apart = imported(lscpu + all_apart("0", "1"));
  EXPECT_EQ(cpus(apart), 3);
  ASSERT_EQ(apart.conflicts.size(), 1U);
  EXPECT_EQ(text_of(apart.conflicts[0]),
            "CPUs: 3, as topo -m says SYS between devices (f:5) is taken, not 2, as lscpu counts "
            "NUMA nodes on 2 sockets (f:3)");
  EXPECT_THAT(apart.cpus_doubt, HasSubstr("is not known"));
  for (const std::string& other :
       {std::string(), std::string("Architecture: x86_64\nSocket(s): 2\nNUMA node(s): 4\n"),
        std::string("Architecture: x86_64\nSocket(s): 96\nNUMA node(s): 2\n")}) {
    EXPECT_EQ(imported(other + all_apart("1", "1")).cpus_doubt, "") << other;
  }
}

// One socket may have several nodes, as of AMD's NPS4.
TEST(MatrixTree, NodeBetweenNodesOfSocketsThatNothingCountsIsNoted) {
  const ImportedMachine machine = imported(two_nodes("0-9", "10-19"));
  EXPECT_THAT(machine.conflicts, IsEmpty());
  EXPECT_THAT(machine.spec.notes,
              Contains(HasSubstr("NODE between devices of NUMA nodes 0 and 1: that these are")));
  EXPECT_THAT(
      imported(two_nodes("0-9", "10-19") + "Architecture: x86_64\nSocket(s): 1\n").spec.notes,
      Not(Contains(HasSubstr("NODE between"))));
}

TEST(MatrixTree, NodeBetweenManyNodesIsOneConflict) {
  std::string head;
  std::string rows;
  for (int row = 0; row < 16; ++row) {
    head += "\tGPU" + std::to_string(row);
    rows += "GPU" + std::to_string(row);
    for (int column = 0; column < 16; ++column) rows += column == row ? "\t X " : "\tNODE";
    rows += "\t0-9\t" + std::to_string(row) + "\n";
  }
  const std::string lscpu = "Architecture: x86_64\nSocket(s): 4\nNUMA node(s): 16\n";
  EXPECT_EQ(imported(lscpu + head + "\tCPU Affinity\tNUMA Affinity\n" + rows).conflicts.size(), 1U);
}

TEST(MatrixTree, MatricesThatContradictAreOneConflict) {
  const auto matrix = [](const std::string& cell) {
    return "\tGPU0\tGPU1\tGPU2\n" + ("GPU0\t X \t" + cell + "\t" + cell) +
           ("\nGPU1\t" + cell + "\t X \t" + cell) + ("\nGPU2\t" + cell + "\t" + cell + "\t X \n");
  };
  const auto conflicts = [](const std::string& text) {
    std::vector<std::string> out;
    for (const Conflict& each : imported(text).conflicts) out.push_back(text_of(each));
    return out;
  };
  EXPECT_THAT(conflicts(matrix("PIX") + matrix("SYS")),
              ElementsAre("gpu0: path to gpu1: PIX (f:2) is taken, not SYS (f:6); likewise 5 more "
                          "of these"));
  EXPECT_THAT(conflicts(matrix("PIX") + matrix("PIX")), IsEmpty());
  const std::string tree =
      "-[0000:00]-+-01.0-[01]----00.0  NVIDIA Corporation GA100 [A100 PCIe 80GB]\n"
      "           +-02.0-[02]----00.0  NVIDIA Corporation GA100 [A100 PCIe 80GB]\n"
      "           \\-03.0-[03]----00.0  NVIDIA Corporation GA100 [A100 PCIe 80GB]\n";
  EXPECT_THAT(
      conflicts(tree + matrix("PIX")),
      ElementsAre("gpu0 to gpu1: PHB (f:1) is taken, not topo -m: PIX (f:5); likewise 2 more "
                  "of these"));
}

// One that has SYS tells sockets apart: NODE is within one, which has several NUMA nodes.
TEST(MatrixTree, NodeBetweenNumaNodesOfOneSocketIsNone) {
  const std::string matrix =
      "\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tNODE\tSYS\t0-15\t0\nGPU1\tNODE\t X \tSYS\t16-31\t1\n"
      "GPU2\tSYS\tSYS\t X \t64-79\t4\n";
  const ImportedMachine machine = imported(matrix);
  EXPECT_THAT(machine.conflicts, IsEmpty());
  EXPECT_THAT(machine.spec.notes, Not(Contains(HasSubstr("NODE between"))));
}

}  // namespace
}  // namespace weft::test::evidence_matrix_tree
