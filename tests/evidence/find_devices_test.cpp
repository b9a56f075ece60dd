// Which of a host's functions are its GPUs and NICs, and what those are called.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/evidence/imported.hpp"

namespace weft::test::evidence_find_devices {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Of a machine's devices "name bus-id", in order.
std::vector<std::string> devices(const ImportedMachine& machine, DeviceKind kind) {
  std::vector<std::string> out;
  for (const DeviceSpec& each : machine.spec.node.devices) {
    if (each.kind == kind) out.push_back(each.name + " " + each.bus_id);
  }
  return out;
}

std::vector<std::string> nics(const std::string& text) {
  return devices(imported(text), DeviceKind::kNic);
}

constexpr const char* kGpu =
    "17:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 80GB] [10de:20b5]\n";

TEST(FoundDevices, OfAmazonsDevicesEfaIsANic) {
  const ImportedMachine machine = imported(
      "10:00.0 Ethernet controller: Amazon.com, Inc. Elastic Network Adapter (ENA)\n"
      "10:1b.0 Ethernet controller: Amazon.com, Inc. Device efa0\n"
      "10:1c.0 3D controller: NVIDIA Corporation Device 20b0 (rev a1)\n"
      "20:01.0 Ethernet controller: Amazon.com, Inc. Elastic Network Adapter (ENA)\n"
      "20:1b.0 Ethernet controller: Amazon.com, Inc. Elastic Fabric Adapter (EFA)\n"
      "hca_id: rdmap32s27\n\tport: 1\n\t\tstate: PORT_ACTIVE (4)\n");
  EXPECT_THAT(devices(machine, DeviceKind::kNic),
              ElementsAre("nic0 0000:10:1b.0", "rdmap32s27 0000:20:1b.0"));
}

constexpr const char* kHostEthernet =
    "b1:00.0 Ethernet controller [0200]: Intel Corporation Ethernet Controller E810-C [8086:1592]\n"
    "b3:00.0 Ethernet controller [0200]: Broadcom Inc. and subsidiaries BCM57508 [14e4:1750]\n";

TEST(FoundDevices, NicsOfAnyVendorAreThoseThatVerbsName) {
  const ImportedMachine machine =
      imported(std::string(kGpu) + kHostEthernet +
               "b5:00.0 Ethernet controller [0200]: Intel Corporation Ethernet X722 [8086:37d1]\n"
               "link bnxt_re0/1 state ACTIVE physical_state LINK_UP netdev enp179s0f0np0 \n"
               "link irdma0/1 state ACTIVE physical_state LINK_UP netdev enp177s0f0 \n");
  EXPECT_THAT(devices(machine, DeviceKind::kNic),
              ElementsAre("irdma0 0000:b1:00.0", "bnxt_re0 0000:b3:00.0"));
}

/// Broadcom's ports on servers' boards, and two NICs.
constexpr const char* kLanPort =
    "63:00.0 Ethernet controller [0200]: Broadcom Inc. and subsidiaries BCM57416 NetXtreme-E "
    "Dual-Media 10G RDMA Ethernet Controller [14e4:16d8] (rev 01)\n";
constexpr const char* kTwoNics =
    "19:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 [ConnectX-7] [15b3:1021]\n"
    "b3:00.0 Ethernet controller [0200]: Mellanox Technologies MT2892 [ConnectX-6 Dx] "
    "[15b3:101d]\n";

TEST(FoundDevices, NetworkControllersThatNothingSaysRdmaOfAreNoted) {
  const ImportedMachine machine = imported(std::string(kGpu) + kHostEthernet);
  EXPECT_THAT(devices(machine, DeviceKind::kNic), IsEmpty());
  EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("2 network controllers are left out")));
  EXPECT_THAT(
      imported(std::string(kGpu) + kLanPort).spec.notes,
      Contains(HasSubstr("1 network controller is left out, as nothing says that it does")));
}

// What clouds call so; PCI ids of others' ports tell no RDMA.
TEST(FoundDevices, NicsThatDoNothingButRdmaAreNics) {
  EXPECT_THAT(nics(std::string(kGpu) +
                   "18:00.0 Unclassified device [00ff]: Alibaba (China) Co., Ltd. Elastic RDMA "
                   "Adapter [1ded:107f] (rev 01)\n"
                   "19:00.0 Infiniband controller [0207]: QLogic IBA7322 [1077:7322]\n"),
              ElementsAre("nic0 0000:18:00.0", "nic1 0000:19:00.0"));
}

// A class of their own, which plain lspci names in words and lspci -tv not at all.
TEST(FoundDevices, OmniPathsInterfacesAreNics) {
  const std::string name = "Intel Corporation Omni-Path HFI Silicon 100 Series [discrete]";
  EXPECT_THAT(nics(std::string(kGpu) + "5e:00.0 Fabric controller: " + name + " (rev 11)\n"),
              ElementsAre("nic0 0000:5e:00.0"));
  EXPECT_THAT(nics(std::string(kGpu) + "5e:00.0 Fabric controller [0208]: " + name +
                   " [8086:24f0] (rev 11)\nCA 'hfi1_0'\n\tPort 1:\n\t\tState: Active\n"),
              ElementsAre("hfi1_0 0000:5e:00.0"));
  EXPECT_THAT(nics("-[0000:00]-+-01.0-[17]----00.0  NVIDIA Corporation GA100 [A100 PCIe 80GB]\n"
                   "           \\-02.0-[5e]----00.0  " +
                   name + "\n"),
              ElementsAre("nic0 0000:5e:00.0"));
}

// Alibaba's eRDMA has no class of its own: 00ff.
TEST(FoundDevices, ANicOfADumpMayHaveNoClass) {
  const ImportedMachine machine = imported(
      "<system version=\"1\">\n<cpu numaid=\"0\">\n"
      "<pci busid=\"0000:03:00.0\" class=\"0x030000\" vendor=\"0x10de\" device=\"0x2bb3\">"
      "<gpu dev=\"0\" sm=\"120\"/></pci>\n"
      "<pci busid=\"0000:1a:00.0\" class=\"0x00ff00\" vendor=\"0x1ded\" device=\"0x107f\">"
      "<nic><net name=\"erdma_0\" dev=\"0\" speed=\"100000\" port=\"1\" gdr=\"1\"/></nic></pci>\n"
      "</cpu>\n</system>\n");
  EXPECT_THAT(devices(machine, DeviceKind::kNic), ElementsAre("erdma_0 0000:1a:00.0"));
}

TEST(FoundDevices, LanPortsWithRdmaInTheirNamesAreNoNics) {
  EXPECT_THAT(nics(std::string(kGpu) + kTwoNics + kLanPort +
                   "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n"
                   "CA 'mlx5_1'\n\tPort 1:\n\t\tState: Active\n"),
              ElementsAre("mlx5_0 0000:19:00.0", "mlx5_1 0000:b3:00.0"));
}

/// What ibv_devinfo says of a device.
std::string devinfo(const std::string& name, const std::string& vendor, int part) {
  return "hca_id:\t" + name + "\n\tvendor_id:\t\t\t" + vendor + "\n\tvendor_part_id:\t\t\t" +
         std::to_string(part) + "\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n";
}

TEST(FoundDevices, AFunctionOfAVerbsDevicesPciIdIsANic) {
  EXPECT_THAT(nics(std::string(kGpu) + kHostEthernet +
                   "link bnxt_re0/1 state ACTIVE physical_state LINK_UP netdev ens1f0np0\n" +
                   devinfo("bnxt_re0", "0x14e4", 5968)),
              ElementsAre("bnxt_re0 0000:b3:00.0"));
  EXPECT_THAT(nics(std::string(kGpu) + "00:07.0 Unclassified device [00ff]: Example [1ded:1080]\n" +
                   devinfo("erdma_0", "0x1ded", 0x1080)),
              ElementsAre("erdma_0 0000:00:07.0"));
}

TEST(FoundDevices, NamesGoToFunctionsOfTheirPciIds) {
  const std::string text = std::string(kGpu) + kTwoNics;
  const std::string swapped = devinfo("mlx5_0", "0x02c9", 4125) + devinfo("mlx5_1", "0x02c9", 4129);
  EXPECT_THAT(nics(text + swapped), ElementsAre("mlx5_1 0000:19:00.0", "mlx5_0 0000:b3:00.0"));
  EXPECT_THAT(imported(text + swapped).spec.notes, Not(Contains(HasSubstr("in the order of"))));
  // Of one the id is said, and is that of no function.
  EXPECT_THAT(nics(text + devinfo("mlx5_0", "0x02c9", 4119) + devinfo("mlx5_1", "0x02c9", 4129)),
              ElementsAre("mlx5_1 0000:19:00.0", "nic1 0000:b3:00.0"));
  // Two of one id go in order; of the matrix, too.
  const std::string twice = text + "1a:00.0 Infiniband controller [0207]: Mellanox [15b3:1021]\n";
  EXPECT_THAT(nics(twice + swapped + devinfo("mlx5_2", "0x02c9", 4129)),
              ElementsAre("mlx5_1 0000:19:00.0", "mlx5_2 0000:1a:00.0", "mlx5_0 0000:b3:00.0"));
}

constexpr const char* kTwoRows =
    "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV18\tPIX\tSYS\t0-9\t0\nGPU1\tNV18\t X \tSYS\tPIX\t10-19\t1\n"
    "NIC0\tPIX\tSYS\t X \tSYS\t\t\nNIC1\tSYS\tPIX\tSYS\t X \t\t\n\n"
    "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";

TEST(FoundDevices, NicsOfAMatrixStayWhereOneFunctionIsKnown) {
  const std::string one = "/sys/bus/pci/devices/0000:1b:00.0/current_link_width:16\n";
  EXPECT_THAT(nics("mlx5_0 port 1 ==> enp27s0f0np0 (Up)\n" + std::string(kTwoRows) + one),
              ElementsAre("mlx5_0 0000:1b:00.0", "mlx5_1 "));
  const std::string both = "mlx5_0 port 1 ==> ibp27s0 (Up)\nmlx5_1 port 1 ==> ibp155s0 (Up)\n";
  EXPECT_THAT(nics(kTwoRows + both), ElementsAre("mlx5_0 0000:1b:00.0", "mlx5_1 0000:9b:00.0"));
  const ImportedMachine machine = imported(kTwoRows + both + one);
  EXPECT_THAT(devices(machine, DeviceKind::kNic),
              ElementsAre("mlx5_0 0000:1b:00.0", "mlx5_1 0000:9b:00.0"));
  EXPECT_THAT(machine.spec.notes,
              Contains(HasSubstr("topo -m has 2 NICs, other evidence 1: the others are taken")));
}

TEST(FoundDevices, ALegendsNamesSayPlaces) {
  EXPECT_THAT(nics(std::string(kGpu) + kTwoNics +
                   "\tGPU0\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t0-9\t0\n"
                   "NIC0\tSYS\t X \t\t\n\nNIC Legend:\n\n  NIC0: rocep179s0f0\n"),
              ElementsAre("nic0 0000:19:00.0", "rocep179s0f0 0000:b3:00.0"));
}

TEST(FoundDevices, ANameThatSaysAPlaceIsOfNoOther) {
  const std::string nic =
      "19:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 [ConnectX-7] "
      "[15b3:1021]\n";
  EXPECT_THAT(nics(kGpu + nic + "CA 'rocep179s0f0'\n\tPort 1:\n\t\tState: Active\n"),
              ElementsAre("nic0 0000:19:00.0"));
  EXPECT_THAT(nics(kGpu + nic + "mlx5_3 port 1 ==> enp179s0np0 (Up)\n"),
              ElementsAre("nic0 0000:19:00.0"));
}

TEST(FoundDevices, AMatrixHasColumnsByPlaceOrSlot) {
  for (const std::string name : {"rdmap16s27", "rocep179s0f0", "ibs3f1", "roceP1p2s0"}) {
    const Evidence evidence =
        evidence_of("\tGPU0\tGPU1\t" + name + "\tCPU Affinity\nGPU0\t X \tSYS\tPIX\t0-9\n" + name +
                    "\tPIX\tSYS\t X \t\n");
    EXPECT_EQ(said(evidence, "gpu0", "path to " + name), "PIX");
    EXPECT_EQ(said(evidence, name, "path to gpu1"), "SYS");
  }
}

TEST(FoundDevices, ATreesGpusAreThoseCalledByChipAndProduct) {
  const ImportedMachine machine = imported(
      "-+-[e532:00]---00.0  NVIDIA Corporation GV100GL [Tesla V100 PCIe 16GB]\n"
      " +-[0001:00]-+-00.0  NVIDIA Corporation AD102 [GeForce RTX 4090]\n"
      " |           +-00.1  NVIDIA Corporation AD102 High Definition Audio Controller\n"
      " |           +-01.0  NVIDIA Corporation LR10 [NVSwitch]\n"
      " |           +-02.0  NVIDIA Corporation Device 22a3\n"
      " |           +-03.0  NVIDIA Corporation MCP78S [GeForce 8200] Memory Controller\n"
      " |           +-04.0  NVIDIA Corporation MCP78S [GeForce 8200] SMBus [10de:0752]\n"
      " |           \\-05.0  NVIDIA Corporation GH100 [H100L 94GB] [10de:23ff]\n"
      " \\-[0000:00]---02.0  Mellanox Technologies MT27700 Family [ConnectX-4]\n");
  EXPECT_THAT(devices(machine, DeviceKind::kGpu),
              ElementsAre("gpu0 0001:00:00.0", "gpu1 0001:00:05.0", "gpu2 e532:00:00.0"));
  EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("'NVIDIA Corporation AD102 [GeForce RTX")));
}

// What lspci's list of names lacks: its audio function, an NVSwitch and a chipset are no GPUs.
TEST(FoundDevices, ATreesNumbersAreDevicesByVendorAndPlace) {
  const ImportedMachine machine = imported(
      "-[0000:00]-+-01.1-[01]--+-00.0  NVIDIA Corporation Device 2b85\n"
      "           |            \\-00.1  NVIDIA Corporation Device 22e8\n"
      "           +-02.0-[02]----00.0  NVIDIA Corporation Device 22a3\n"
      "           +-03.0-[03]----00.0  Mellanox Technologies Device 1025\n"
      "           +-04.0-[04]----00.0  Mellanox Technologies Device c2d5\n"
      "           +-05.0-[05]----00.0  NVIDIA Corporation Device 2330\n"
      "           +-06.0-[06]----00.0  NVIDIA Corporation Device [10de:2bb4]\n"
      "           \\-07.0  NVIDIA Corporation Device 0752\n");
  EXPECT_THAT(devices(machine, DeviceKind::kGpu),
              ElementsAre("gpu0 0000:01:00.0", "gpu1 0000:05:00.0", "gpu2 0000:06:00.0"));
  EXPECT_THAT(devices(machine, DeviceKind::kNic), ElementsAre("nic0 0000:03:00.0"));
  EXPECT_THAT(machine.spec.notes,
              Contains(HasSubstr("gpu0, gpu2: lspci -tv has NVIDIA's number without a name")));
  EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("that these are NICs is assumed")));
}

// A line that prints a class is no tree's: that one tells, whether or not weft knows its name.
TEST(FoundDevices, NumbersAreDevicesOfATreeAlone) {
  const std::string tree =
      "-[0000:00]-+-01.0-[08]----00.0  NVIDIA Corporation Device 2b85\n"
      "           \\-02.0-[09]----00.0  Mellanox Technologies Device 1025\n";
  const std::string list =
      std::string(kGpu) +
      "05:00.0 Memory controller: Mellanox Technologies Device 1025\n"
      "06:00.0 Non-Volatile memory controller: NVIDIA Corporation Device 2b85\n"
      "07:00.0 New class: NVIDIA Corporation Device 2b85 (rev a1)\n"
      "08:00.0 Bridge: NVIDIA Corporation Device 2b85 (rev a1)\n"
      "09:00.0 RAM memory: Mellanox Technologies Device 1025\n";
  EXPECT_THAT(devices(imported(tree), DeviceKind::kGpu), ElementsAre("gpu0 0000:08:00.0"));
  for (const std::string& text : {list, list + tree, tree + list}) {
    EXPECT_EQ(devices(imported(text), DeviceKind::kGpu),
              devices(imported(std::string(kGpu)), DeviceKind::kGpu));
    EXPECT_THAT(devices(imported(text), DeviceKind::kNic), IsEmpty());
  }
}

TEST(FoundDevices, WhatGoesWithGpusAndNicsIsNoneByItsNumber) {
  const ImportedMachine machine = imported(
      "-[0000:00]-+-01.0-[17]----00.0  NVIDIA Corporation GA100 [A100 PCIe 80GB]\n"
      "           +-02.0-[5d]----00.0  NVIDIA Corporation Device 1ad6\n"
      "           +-03.0-[5e]--+-00.0  Mellanox Technologies Device 1025\n"
      "           |            +-00.1  Mellanox Technologies Device 101e\n"
      "           |            \\-00.2  Mellanox Technologies Device 1026\n"
      "           +-04.0-[5f]----00.0  NVIDIA Corporation Device 22e8\n"
      "           \\-05.0-[60]----00.0  NVIDIA Corporation Device 2b8\n");
  EXPECT_THAT(devices(machine, DeviceKind::kGpu), ElementsAre("gpu0 0000:17:00.0"));
  EXPECT_THAT(devices(machine, DeviceKind::kNic), ElementsAre("nic0 0000:5e:00.0"));
}

// An L40's SR-IOV functions have its number; in a virtual machine they are on a root bus.
TEST(FoundDevices, VirtualFunctionsAreNoneByTheirNumber) {
  const ImportedMachine machine = imported(
      "-+-[0000:00]---00.0  Intel Corporation Device 09a2\n"
      " +-[0000:40]---01.0-[41]--+-00.0  NVIDIA Corporation Device 26b5\n"
      " |                        +-00.4  NVIDIA Corporation Device 26b5\n"
      " |                        +-01.0  NVIDIA Corporation Device 26b5\n"
      " |                        \\-02.0  NVIDIA Corporation Device 26b5\n"
      " +-[0000:60]---01.0-[61]--+-00.0  Mellanox Technologies Device 1025\n"
      " |                        \\-01.0  Mellanox Technologies Device 1025\n"
      " \\-[0001:00]---02.0  NVIDIA Corporation Device 26b5\n");
  EXPECT_THAT(devices(machine, DeviceKind::kGpu),
              ElementsAre("gpu0 0000:41:00.0", "gpu1 0001:00:02.0"));
  EXPECT_THAT(devices(machine, DeviceKind::kNic), ElementsAre("nic0 0000:61:00.0"));
}

TEST(FoundDevices, AServersVgaIsNoGpu) {
  const ImportedMachine machine = imported(
      "<topology version=\"2.0\">\n<object type=\"Machine\" nodeset=\"0x1\">\n"
      "<object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"0000:[00-9e]\">\n"
      "<object type=\"PCIDev\" pci_busid=\"0000:01:00.0\" pci_type=\"0300 [1002:515e]\"/>\n"
      "<object type=\"PCIDev\" pci_busid=\"0000:02:00.0\" pci_type=\"0380 [1002:66a1]\"/>\n"
      "</object></object></topology>\n"
      "03:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] ES1000 (rev 02)\n"
      "04:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] Vega 20\n");
  EXPECT_THAT(devices(machine, DeviceKind::kGpu),
              ElementsAre("gpu0 0000:02:00.0", "gpu1 0000:04:00.0"));
}

TEST(FoundDevices, NotesNameDevicesInTheOrderOfTheirNumbers) {
  std::string text =
      "| NVIDIA-SMI 570.124.06   Driver Version: 570.124.06   CUDA Version: 12.8 |\n";
  for (int i = 1; i <= 11; ++i) {
    const std::string n = std::to_string(i);
    text += "|   " + n + "  NVIDIA H20      Off |   00000000:" + (i < 10 ? "0" : "") + n +
            ":00.0 Off |   Off |\n";
  }
  EXPECT_THAT(imported(text).spec.notes,
              Contains(HasSubstr("gpu1, gpu2, gpu3, gpu4, gpu5, gpu6, gpu7, gpu8, gpu9, gpu10, "
                                 "gpu11: 'NVIDIA H20'")));
}

}  // namespace
}  // namespace weft::test::evidence_find_devices
