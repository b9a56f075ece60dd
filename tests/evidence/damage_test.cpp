// Captures with bytes of them changed, cut out and repeated: read or refused, never worse. The
// corpus is tests/data/evidence; WEFT_RANDOM_SEEDS asks for more seeds.
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/registry/registry.hpp"
#include "sim/base/random.hpp"
#include "sim/input/evidence/machine.hpp"
#include "sim/input/topology_write.hpp"
#include "sim/input/topology_yaml.hpp"
#include "tests/evidence/evidence_data.hpp"
#include "tests/seeds.hpp"

namespace weft::test::evidence_damage {
namespace {

/// Of the kinds that the captures lack: documents and archives.
std::vector<std::string> made() {
  const std::string hwloc =
      "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n"
      "<object type=\"Machine\" nodeset=\"0x1\">\n<info name=\"CPUVendor\" "
      "value=\"GenuineIntel\"/>\n"
      "<object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"0000:[97-9e]\">\n"
      "<object type=\"Bridge\" pci_busid=\"0000:97:01.0\" pci_type=\"0604 [8086:352a] [0:0] 04\" "
      "pci_link_speed=\"63.015385\">\n"
      "<object type=\"PCIDev\" pci_busid=\"0000:98:00.0\" pci_type=\"0302 [10de:2330] [0:0] a1\">\n"
      "<object type=\"OSDev\" name=\"nvml4\" osdev_type=\"1\"/>\n"
      "</object></object></object></object></topology>\n";
  const std::string nccl =
      "<system version=\"1\">\n<cpu numaid=\"0\" vendor=\"GenuineIntel\" familyid=\"6\" "
      "modelid=\"143\">\n"
      "<pci busid=\"0000:18:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "
      "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n<gpu dev=\"0\" sm=\"90\"/></pci>\n"
      "<nic><net name=\"mlx5_0\" dev=\"0\" speed=\"400000\" gdr=\"1\"/></nic>\n</cpu></system>\n";
  const std::string tar = tar_of("a/topo.txt", captured("topo-m-h100-4nic.txt")) +
                          tar_of("a/hwloc.xml", hwloc) + tar_of("a/core", std::string(9, '\0')) +
                          std::string(1024, '\0');
  const std::string mlxlink =
      "MST modules:\nPCI devices:\nDEVICE_TYPE  MST  PCI  RDMA  NET  NUMA\n"
      "ConnectX7(rev:0)  /dev/mst/mt4129_pciconf0  19:00.0  mlx5_0  net-ib0  0\n"
      "# mlxlink -d /dev/mst/mt4129_pciconf0 -c\nOperational Info\nState : Active\n"
      "Speed : IB-HDR\nWidth : 4x\nTime Since Last Clear [Min] : 3\nSymbol Errors : 12\n"
      "[ 9200.000000] mlx5_core 0000:4c:00.0: Port module event: module 0, Cable unplugged\n";
  const std::string pasted =
      "  | 2024-12-04T07:19:43.480Z | #  Rank  0 Group  0 Pid 9 on a device  0 [0x86] Tesla T4\n"
      "#  Rank  1 Group  0 Pid 9 on a device  1 [0008:11:00] NVIDIA H100 80GB HBM3\n"
      "a:9:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB x:10.0.0.1\n"
      "a:9:9 [0] NCCL INFO comm 0x5 rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 1c000 commId 0x6\n"
      "a:9:9 [0] NCCL INFO CUDA Dev 0[0], IB NIC distance :  PIX\n"
      " GUID 0x1070fd0300370ea2 port ALL: [LinkDownedCounter == 25 (25.000)]\n"
      "NVRM: The NVIDIA GPU 0000:b3:00.0\n               NVRM: fallen off the bus and is not\n"
      "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build\n"
      "Linux a 5.15.0-105-generic #115-Ubuntu SMP\n5.4.0-42-generic\n"
      "filename:       /lib/modules/5.15.0-105-generic/updates/dkms/nvidia.ko\n"
      "license:        Dual MIT/GPL\nversion:        570.158.01\n";
  const std::string blocks =
      "    -[0000:00]-+-01.0-[17]----00.0  NVIDIA Corporation Device 2b85\n"
      "               +-02.0-[5e]----00.0  Intel Corporation Omni-Path HFI Silicon 100 Series\n"
      "               \\-03.0-[19]----00.0  Mellanox Technologies Device 1025\n"
      "and\n    5e:00.0 Fabric controller [0208]: Intel Corporation Omni-Path [8086:24f0]\n"
      "{\"result\":{\"output\":{\"Operational Info\":{\"Speed\":\"IB-EDR\",\"Width\":\"4x\"}}}}\n"
      "=== mlx5_1 ===\n{\n\"result\" : {\n\"output\" : {\n\"Operational Info\" : {\n"
      "\"Speed\" : \"IB-EDR\",\n\"State\" : \"Active\",\n\"Width\" : \"4x\"\n}\n}\n}\n}\n"
      "a:1:1 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 4 nics)\n"
      "a:1:1 [0] NCCL INFO NET/OFI NIC group 7 device #1 0000:a2:00.0\n";
  return {hwloc, nccl, tar, mlxlink, pasted, blocks};
}

std::vector<std::string> corpus() {
  std::vector<std::string> files;
  const std::string folder = std::string(WEFT_SOURCE_DIR) + "/tests/data/evidence";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename() != "README.md") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  texts.reserve(files.size());
  for (const std::string& file : files) texts.push_back(read_text_file(file));
  for (std::string& text : made()) texts.push_back(std::move(text));
  return texts;
}

/// A few lines of one text, from a place on.
std::string lines_from(const std::string& text, std::size_t at, std::size_t most) {
  const std::size_t begin = text.find('\n', at);
  return begin == std::string::npos ? "" : text.substr(begin + 1, most);
}

TEST(DamagedEvidence, IsReadOrRefused) {
  const std::vector<std::string> texts = corpus();
  const ParamCatalog catalog = make_catalog();
  const std::string bytes = "0123456789abcdefX:/.-[](){}<>\"'|+\\\t\n\r \x1b\xff";
  std::size_t read = 0;
  std::size_t merged = 0;
  for (std::uint64_t seed = 1; seed <= seeds(6000); ++seed) {
    std::mt19937_64 dice = random_stream(seed, "evidence");
    const std::string& one = texts[uniform_below(dice, texts.size())];
    const std::string& other = texts[uniform_below(dice, texts.size())];
    // Some 20 KiB from anywhere: what begins in the middle of something counts too.
    std::string text = one.substr(uniform_below(dice, 2) * uniform_below(dice, one.size()), 20'000);
    if (uniform_below(dice, 2) == 0) {
      text += lines_from(other, uniform_below(dice, other.size()), 4000);
    }
    for (std::uint64_t i = uniform_below(dice, 6); i > 0 && !text.empty(); --i) {
      const std::size_t at = uniform_below(dice, text.size());
      text.replace(at, uniform_below(dice, 30),
                   std::string(uniform_below(dice, 4), bytes[uniform_below(dice, bytes.size())]));
    }
    try {
      const Evidence evidence = evidence_of(text);
      ++read;
      const ImportedMachine machine = import_machine(evidence, catalog);
      // What is written reads back.
      parse_topology_yaml(topology_yaml(machine.spec, catalog, "seed"), "y", catalog);
      ++merged;
    } catch (const InputError& e) {
      EXPECT_FALSE(std::string(e.what()).empty()) << "seed " << seed;
    }
  }
  EXPECT_GT(read, seeds(6000) / 3);
  EXPECT_GT(merged, seeds(6000) / 10);
}

}  // namespace
}  // namespace weft::test::evidence_damage
