#include "sim/input/nccl_xml.hpp"

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/topology/fabric.hpp"
#include "tests/input/catalog.hpp"

namespace weft::test::input_nccl_xml {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TopologySpec parse(const std::string& text) {
  return parse_nccl_xml(text, "f.xml", test_catalog());
}

std::string refused(const std::string& text) {
  return refusal([&] { parse(text); });
}

std::string in_cpu(const std::string& body) {
  return "<system version=\"1\">\n<cpu numaid=\"0\">\n" + body + "\n</cpu>\n</system>\n";
}

std::string gpu(const std::string& bus, int dev, const std::string& body = "") {
  return "<pci busid=\"" + bus + "\" class=\"0x030200\"><gpu dev=\"" + std::to_string(dev) +
         "\" sm=\"90\">" + body + "</gpu></pci>\n";
}

std::string nvlink(const std::string& target, int count, const std::string& target_class) {
  return "<nvlink target=\"" + target + "\" count=\"" + std::to_string(count) + "\" tclass=\"" +
         target_class + "\"/>";
}

std::vector<std::string> device_names(const TopologySpec& spec) {
  std::vector<std::string> names;
  for (const DeviceSpec& device : spec.node.devices) names.push_back(device.name);
  return names;
}

std::vector<std::string> link_texts(const TopologySpec& spec) {
  std::vector<std::string> texts;
  for (const PeerLinkSpec& link : spec.node.links) {
    texts.push_back(std::string(link_kind_name(link.kind)) + " " + link.a + " " + link.b + " x" +
                    std::to_string(link.count));
  }
  return texts;
}

const DeviceSpec& named(const TopologySpec& spec, const std::string& name) {
  for (const DeviceSpec& device : spec.node.devices) {
    if (device.name == name) return device;
  }
  throw std::logic_error("test: no device " + name);
}

const std::string kOwnFile = std::string(WEFT_SOURCE_DIR) + "/topologies/h200-vm-pix.2x2.xml";

TEST(NcclXml, ReadsADumpOfOurOwn) {
  const TopologySpec spec = read_nccl_xml(kOwnFile, test_catalog());
  EXPECT_EQ(spec.name, "h200-vm-pix.2x2");
  EXPECT_EQ(spec.nodes, 1U);
  EXPECT_THAT(device_names(spec),
              ElementsAre("cpu0", "pcisw0", "pcisw1", "gpu0", "gpu1", "emu0", "emu1", "nvswitch"));
  EXPECT_THAT(link_texts(spec),
              ElementsAre("nvlink gpu0 nvswitch x18", "nvlink gpu1 nvswitch x18"));
  EXPECT_EQ(named(spec, "cpu0").part, "emerald-rapids");
  EXPECT_EQ(named(spec, "gpu1").part, "h200-sxm");
  EXPECT_EQ(named(spec, "gpu1").bus_id, "0000:00:07.0");
  EXPECT_EQ(named(spec, "gpu1").upstream, "pcisw1");
  EXPECT_EQ(named(spec, "emu1").part, "connectx-7");
  EXPECT_EQ(named(spec, "emu1").network, "fabric");
  EXPECT_EQ(spec.network.kind, NetworkSpec::Kind::kOneSwitch);

  const Fabric fabric(spec, 2);
  const auto label = [&](const char* a, const char* b) {
    return fabric.path_label(fabric.find(0, a).value(), fabric.find(0, b).value()).text();
  };
  EXPECT_EQ(label("gpu0", "emu0"), "PIX");
  EXPECT_EQ(label("gpu0", "gpu1"), "NV18");
}

TEST(NcclXml, TakesSettingsWithTheirSource) {
  const TopologySpec spec = read_nccl_xml(kOwnFile, test_catalog());
  const ParamValues& nic = named(spec, "emu0").settings;
  EXPECT_DOUBLE_EQ(nic.at("rate").number, 50.0);  // 400,000 Mb/s in GB/s
  EXPECT_EQ(nic.at("rate").origin, Origin::kMeasured);
  EXPECT_EQ(nic.at("rate").source, kOwnFile + ": speed of 0001:01:00.0");
  EXPECT_EQ(nic.at("pcie_gen").number, 5.0);
  EXPECT_EQ(nic.at("pcie_gen").source, kOwnFile + ": link_speed of 0001:01:00.0");
  EXPECT_EQ(nic.at("pcie_width").number, 16.0);
  EXPECT_EQ(nic.at("gdr").number, 1.0);  // "on"
  EXPECT_EQ(spec.defaults.at("wire.kind").number, 0.0) << "class 0x020700 is InfiniBand";
}

TEST(NcclXml, TwoDevicesWithOneBusIdAreRefusedWithBothPlaces) {
  const TopologySpec spec = parse(in_cpu(gpu("0000:1b:00.0", 0) + gpu("0000:1B:00.0", 1)));
  const std::string text = refusal([&] { const Fabric fabric(spec, 1); });
  const std::string first = named(spec, "gpu0").place.text();
  const std::string second = named(spec, "gpu1").place.text();
  EXPECT_EQ(text, second + ": gpu1: bus id 0000:1B:00.0 is that of gpu0 too (" + first + ")");
}

TEST(NcclXml, SetsOnlyWhatTheCatalogKnows) {
  const ParamCatalog empty{{}};
  const TopologySpec spec = read_nccl_xml(kOwnFile, empty);
  EXPECT_TRUE(spec.defaults.empty());
  EXPECT_TRUE(named(spec, "emu0").settings.empty());
}

TEST(NcclXml, ReadsWidthAndSpeedAsNcclDoes) {
  const auto settings_of = [](const std::string& attributes) {
    return named(parse(in_cpu("<pci busid=\"1\" class=\"0x030200\" " + attributes +
                              "><gpu dev=\"0\" gdr=\"0\"/></pci>")),
                 "gpu0")
        .settings;
  };
  const ParamValues odd = settings_of("link_speed=\"\" link_width=\"0\"");
  EXPECT_EQ(odd.at("pcie_width").number, 16.0);
  EXPECT_EQ(odd.at("pcie_width").origin, Origin::kAssumed);
  EXPECT_FALSE(odd.contains("pcie_gen")) << "unknown: left to the part";
  EXPECT_EQ(odd.at("gdr").number, 0.0);
  EXPECT_EQ(settings_of("link_width=\"8\"").at("pcie_width").number, 8.0);
  EXPECT_EQ(settings_of("link_speed=\"2.5 GT/s PCIe\"").at("pcie_gen").number, 1.0);
  EXPECT_EQ(settings_of("link_speed=\"8 GT/s\"").at("pcie_gen").number, 3.0);
  EXPECT_EQ(settings_of("link_speed=\"16.0 GT/s PCIe\"").at("pcie_gen").number, 4.0);
  EXPECT_EQ(settings_of("link_speed=\"64.0 GT/s PCIe\"").at("pcie_gen").number, 6.0);
}

TEST(NcclXml, ListsGpusByTheirNumberWhateverTheirPlace) {
  const TopologySpec spec = parse(in_cpu(gpu("b", 10) + gpu("a", 9) + gpu("c", 0)));
  EXPECT_THAT(device_names(spec), ElementsAre("cpu0", "gpu0", "gpu9", "gpu10"));
}

TEST(NcclXml, JoinsGpusDirectlyOncePerPair) {
  const TopologySpec spec =
      parse(in_cpu(gpu("0000:0A:00.0", 0,
                       nvlink("0000:0b:00.0", 2, "0x030200") + nvlink("0:b:00.0", 2, "0x030200")) +
                   gpu("0000:0b:00.0", 1, nvlink("0000:0a:00.0", 4, "0x030200")) +
                   gpu("0000:0c:00.0", 2,
                       nvlink("0000:0c:00.0", 12, "0x030200") +       // to itself, as in some VMs
                           nvlink("0000:99:00.0", 4, "0x030200"))));  // not in the file
  // "0:b:00.0" has other digits than "0000:0b:00.0", so NCCL takes it for another GPU, as we do.
  EXPECT_THAT(link_texts(spec), ElementsAre("nvlink gpu0 gpu1 x4"));
}

TEST(NcclXml, CollapsesAllNvSwitchesIntoOne) {
  const TopologySpec spec =
      parse(in_cpu(gpu("1", 0, nvlink("7", 5, "0x068000") + nvlink("8", 4, "0x068000")) +
                   gpu("2", 1, nvlink("fffffff:ff:ff.0", 9, "0x068000"))));
  EXPECT_THAT(link_texts(spec), ElementsAre("nvlink gpu0 nvswitch x9", "nvlink gpu1 nvswitch x9"));
  EXPECT_EQ(named(spec, "nvswitch").kind, DeviceKind::kNvSwitch);
}

TEST(NcclXml, JoinsC2cGpusToTheirCpuAndCpusPairwise) {
  const TopologySpec spec = parse("<system version=\"1\"><cpu numaid=\"0\">" +
                                  gpu("1", 0, "<c2c bw=\"56376\" count=\"7\"/>") +
                                  "</cpu><cpu numaid=\"1\"/><cpu numaid=\"2\"/></system>");
  EXPECT_THAT(link_texts(spec), ElementsAre("socket cpu0 cpu1 x1", "socket cpu0 cpu2 x1",
                                            "socket cpu1 cpu2 x1", "c2c gpu0 cpu0 x7"));
}

TEST(NcclXml, MakesANicOfEachPort) {
  const TopologySpec spec =
      parse(in_cpu(gpu("1", 0) +
                   "<pci busid=\"2\" class=\"0x020000\" vendor=\"0x15b3\" device=\"0x101d\"><nic>"
                   "<net name=\"mlx5_0\" dev=\"0\" speed=\"100000\" gdr=\"0\"/>"
                   "<net name=\"mlx5_0\" dev=\"1\" speed=\"-1\"/></nic></pci>"
                   "<nic><net name=\"a.b/c\" dev=\"2\"/></nic>"));
  EXPECT_THAT(device_names(spec), ElementsAre("cpu0", "gpu0", "mlx5_0", "mlx5_0_2", "a_b_c"));
  EXPECT_EQ(named(spec, "mlx5_0").part, "connectx-6-dx");
  EXPECT_EQ(named(spec, "mlx5_0").settings.at("gdr").number, 0.0);
  EXPECT_DOUBLE_EQ(named(spec, "mlx5_0_2").settings.at("rate").number, 1.25);  // 10 Gb/s
  EXPECT_EQ(named(spec, "a_b_c").upstream, "cpu0");
  EXPECT_EQ(spec.defaults.at("wire.kind").number, 1.0) << "class 0x020000 is Ethernet";
}

TEST(NcclXml, NamesCpuParts) {
  const auto part = [](const std::string& attributes) {
    return named(parse("<system version=\"1\"><cpu numaid=\"-1\" " + attributes + ">" +
                       gpu("1", 0) + "</cpu></system>"),
                 "cpu0")
        .part;
  };
  EXPECT_EQ(part("vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\""), "sapphire-rapids");
  EXPECT_EQ(part("vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"1\""), "milan");
  EXPECT_EQ(part("vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"17\""), "genoa");
  EXPECT_EQ(part("vendor=\"AuthenticAMD\" familyid=\"143\" modelid=\"49\""), "rome");
  EXPECT_EQ(part("vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"48\""), "");
  EXPECT_EQ(part(""), "");
}

TEST(NcclXml, PassesOverFunctionsThatNcclPassesOver) {
  const TopologySpec spec =
      parse(in_cpu(gpu("1", 0) +
                   "<nic><net name=\"a\" dev=\"0\"/></nic><pci busid=\"2\" class=\"0x030200\"/>"
                   "<pci busid=\"3\" class=\"0x020700\"/><pci busid=\"4\" class=\"0x068000\"/>"
                   "<pci busid=\"5\" class=\"0x060400\"/><new/>"));
  EXPECT_THAT(device_names(spec), ElementsAre("cpu0", "gpu0", "a"));
  EXPECT_THAT(spec.notes, IsEmpty());
  EXPECT_FALSE(spec.nvlinks_unknown);
}

std::string function(const std::string& bus, const std::string& attributes) {
  return "<pci busid=\"" + bus + "\" " + attributes + "/>\n";
}

TEST(NcclXml, ReadsASkeletonByItsClasses) {
  const TopologySpec spec = parse(
      in_cpu(function("0000:9a:00.0", "class=\"0x030200\" vendor=\"0x10de\" device=\"0x20b0\"") +
             function("0000:18:00.0", "class=\"0x030200\" link_speed=\"16 GT/s\"") +
             function("0000:03:00.0", "class=\"0x030000\" vendor=\"0x1a03\"") +  // a server's VGA
             function("0001:00:00.0", "class=\"0x020700\" vendor=\"0x15b3\" device=\"0x1021\"") +
             function("0000:1b:00.0", "class=\"0x020000\" vendor=\"0x1d0f\" device=\"0xefa0\"") +
             function("0000:02:00.0", "class=\"0x010802\"")));  // an NVMe drive
  EXPECT_THAT(device_names(spec), ElementsAre("cpu0", "gpu0", "gpu1", "nic0", "nic1"))
      << "numbered by bus id";
  EXPECT_EQ(named(spec, "gpu0").bus_id, "0000:18:00.0");
  EXPECT_EQ(named(spec, "gpu0").part, "");
  EXPECT_EQ(named(spec, "gpu0").settings.at("pcie_gen").number, 4.0);
  EXPECT_EQ(named(spec, "gpu1").part, "a100-sxm");
  EXPECT_EQ(named(spec, "nic0").part, "efa");
  EXPECT_EQ(named(spec, "nic1").part, "connectx-7");
  EXPECT_TRUE(spec.nvlinks_unknown);
  EXPECT_THAT(spec.notes, Each(StartsWith("f.xml: ")));
  EXPECT_THAT(spec.notes, SizeIs(2));
}

TEST(NcclXml, ReadsPciNumbersHoweverTheyAreWritten) {
  for (const char* const pci_class : {"0x030200", "030200", "197120"}) {
    for (const auto& [vendor, device] : {std::pair{"0x10de", "0x2330"}, {"10de", "2330"}}) {
      const std::string hex_device = std::string(vendor) == "10de" ? "0x2330" : device;
      const TopologySpec spec =
          parse(in_cpu(function("1", "class=\"" + std::string(pci_class) + "\" vendor=\"" + vendor +
                                         "\" device=\"" + hex_device + "\"")));
      EXPECT_EQ(named(spec, "gpu0").part, "h100-sxm") << pci_class << " " << vendor;
    }
  }
}

TEST(NcclXml, ReadsRcclsVersion2) {
  const auto mi100 = [](const std::string& bus, int dev, const std::string& peer) {
    return "<pci busid=\"" + bus + "\" class=\"0x038000\" link_speed=\"16 GT/s\"><gpu dev=\"" +
           std::to_string(dev) +
           "\" sm=\"80\" gcn=\"908\" arch=\"38911\" gdr=\"1\"><xgmi target=\"" + peer +
           "\" count=\"2\" tclass=\"0x038000\"/></gpu></pci>";
  };
  const TopologySpec spec =
      parse("<system version=\"2\"><cpu numaid=\"0\">" + mi100("0000:43:00.0", 0, "0000:63:00.0") +
            mi100("0000:63:00.0", 1, "0000:43:00.0") + "</cpu></system>");
  EXPECT_EQ(named(spec, "gpu0").part, "mi100") << "sm is AMD's number of compute units here";
  EXPECT_THAT(link_texts(spec), ElementsAre("xgmi gpu0 gpu1 x2"));
  const Fabric fabric(spec, 1);
  const DeviceId a = fabric.device(0, DeviceKind::kGpu, 0);
  const DeviceId b = fabric.device(0, DeviceKind::kGpu, 1);
  EXPECT_EQ(fabric.path_label(a, b).text(), "XGMI");
  EXPECT_EQ(fabric.nvlink_route(a, b).value().size(), 1U);
  EXPECT_EQ(fabric.pcie_route(a, b).value().size(), 2U);
}

TEST(NcclXml, PortsAndFunctionsOfOneNicShareItsPcieLink) {
  const auto nic = [](const std::string& bus, const std::string& nets) {
    return "<pci busid=\"" + bus + "\" class=\"0x020000\"><nic>" + nets + "</nic></pci>";
  };
  const TopologySpec spec =
      parse(in_cpu(gpu("0000:01:00.0", 0) +
                   nic("0000:31:00.0", "<net name=\"a\" dev=\"0\"/><net name=\"b\" dev=\"1\"/>") +
                   nic("0000:31:00.1", "<net name=\"c\" dev=\"2\"/>") +
                   nic("0000:32:00.0", "<net name=\"d\" dev=\"3\"/>")));
  EXPECT_EQ(named(spec, "a").port_of, "");
  EXPECT_EQ(named(spec, "b").port_of, "a");
  EXPECT_EQ(named(spec, "c").port_of, "a");
  EXPECT_EQ(named(spec, "d").port_of, "");
  const Fabric fabric(spec, 1);
  const auto id = [&](const char* name) { return fabric.find(0, name).value(); };
  EXPECT_EQ(fabric.upstream_link(id("b")), fabric.upstream_link(id("a")));
  EXPECT_NE(fabric.upstream_link(id("d")), fabric.upstream_link(id("a")));
  EXPECT_NE(fabric.wire_link(id("b")), fabric.wire_link(id("a")));
  EXPECT_EQ(fabric.pcie_route(id("gpu0"), id("c")), fabric.pcie_route(id("gpu0"), id("a")));
  EXPECT_EQ(fabric.path_label(id("a"), id("b")).text(), "PIX");
  EXPECT_EQ(fabric.path_label(id("gpu0"), id("b")).text(), "NODE");
}

TEST(NcclXml, TakesAVirtualBridgeAsFastAsWhatIsBelow) {
  const auto link = [](const char* speed, const char* width) {
    return std::string("link_speed=\"") + speed + "\" link_width=\"" + width + "\"";
  };
  const auto bridge = [&](const std::string& bus, const std::string& its,
                          const std::string& below) {
    return "<pci busid=\"" + bus + "\" class=\"0x060400\" " + its + ">" + below + "</pci>";
  };
  const auto with_gpu = [&](const std::string& its, const std::string& bus, int dev) {
    return "<pci busid=\"" + bus + "\" class=\"0x030200\" " + its + "><gpu dev=\"" +
           std::to_string(dev) + "\"/></pci>";
  };
  const std::string slow = link("2.5 GT/s PCIe", "1");
  const TopologySpec spec =
      parse(in_cpu(bridge("0:1:0.0", slow, with_gpu(link("32.0 GT/s PCIe", "16"), "0:2:0.0", 0)) +
                   bridge("0:3:0.0", slow, with_gpu(slow, "0:4:0.0", 1))));
  const ParamValues& virtual_link = named(spec, "pcisw0").settings;
  EXPECT_EQ(virtual_link.at("pcie_gen").number, 5.0);
  EXPECT_EQ(virtual_link.at("pcie_width").number, 16.0);
  EXPECT_EQ(virtual_link.at("pcie_width").origin, Origin::kAssumed);
  EXPECT_EQ(named(spec, "pcisw1").settings.at("pcie_gen").number, 1.0) << "slow below, too: real";
  ASSERT_THAT(spec.notes, SizeIs(1));
  EXPECT_THAT(spec.notes[0], HasSubstr("(0:1:0.0)"));
}

TEST(NcclXml, TakesSeveralHostsOfOneNvlinkDomainAsOneNode) {
  const auto host = [](const std::string& hash) {
    return "<cpu numaid=\"0\" host_hash=\"" + hash + "\">" +
           gpu("0008:06:00.0", 0, nvlink("fffffff:ff:ff.0", 18, "0x068000")) +
           gpu("0009:06:00.0", 1, nvlink("0008:06:00.0", 2, "0x030200")) +
           "</cpu><cpu numaid=\"1\" host_hash=\"" + hash + "\"/>";
  };
  const TopologySpec spec =
      parse("<system version=\"1\">" + host("0x1") + host("0x2") + "</system>");
  EXPECT_THAT(device_names(spec), ElementsAre("cpu0", "cpu1", "cpu0-host1", "cpu1-host1", "gpu0",
                                              "gpu1", "gpu0-host1", "gpu1-host1", "nvswitch"));
  EXPECT_THAT(link_texts(spec),
              ElementsAre("socket cpu0 cpu1 x1", "socket cpu0-host1 cpu1-host1 x1",
                          "nvlink gpu0 nvswitch x18", "nvlink gpu0-host1 nvswitch x18",
                          "nvlink gpu0 gpu1 x2", "nvlink gpu0-host1 gpu1-host1 x2"));
  EXPECT_NO_THROW(Fabric(spec, 1));
}

TEST(NcclXmlBogus, OtherFilesAndFragments) {
  EXPECT_EQ(refused("<graphs version=\"1\"/>"),
            "f.xml:1:1: this is an NCCL graph file, the rings and trees that NCCL chose "
            "(<graphs>), not a topology file; NCCL writes a topology file where "
            "NCCL_TOPO_DUMP_FILE says, beginning with <system>");
  EXPECT_THAT(refused("<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
                      "<topology version=\"2.0\"/>"),
              StartsWith("f.xml:3:1: this is an hwloc topology"));
  EXPECT_THAT(refused("<pci busid=\"1\"/>"),
              StartsWith("f.xml:1:1: a fragment: <pci> stands outside of <system>"));
  EXPECT_THAT(refused("<html/>"), StartsWith("f.xml:1:1: <html> begins no file that weft reads"));
  EXPECT_EQ(refused("<system version=\"1\">\n <pci busid=\"1\"><gpu dev=\"0\"/></pci></system>"),
            "f.xml:2:2: a fragment: this <pci> stands in no <cpu>, so it is not known what it "
            "hangs below");
  EXPECT_EQ(refused("<!-- x -->\n <system/>"),
            "f.xml:2:2: <system version=''> is not known; known: 1 (NCCL), 2 (RCCL)");
  EXPECT_THAT(refused(in_cpu("<pci busid=\"1\"/>")),
              StartsWith("f.xml:1:1: no <gpu> in this file, and no class that says"));
  EXPECT_THAT(refused(in_cpu("")), StartsWith("f.xml:1:1: no GPU in this file"));
  EXPECT_THAT(refused(in_cpu("<pci busid=\"1\"><gpu dev=\"0\"/><gpu dev=\"0\"/></pci>")),
              StartsWith("f.xml:3:1: two <gpu>"));
}

TEST(NcclXmlBogus, Values) {
  EXPECT_EQ(refused(in_cpu("<pci busid=\"1\"><gpu dev=\"x\"/></pci>")),
            "f.xml:3:16: <gpu>: dev='x' is not a whole number");
  EXPECT_EQ(refused(in_cpu("<pci busid=\"1\"><gpu/></pci>")),
            "f.xml:3:16: <gpu> without a device number (dev)");
  EXPECT_THAT(refused(in_cpu("<pci class=\"0x03\" link_width=\"99\"><gpu dev=\"0\"/></pci>")),
              StartsWith("f.xml:3:1: <pci>: gpu.pcie_width: 99 is out of range"));
  EXPECT_THAT(refused(in_cpu(gpu("1", 0, "<nvlink target=\"2\" tclass=\"0x068000\"/>"))),
              HasSubstr("<nvlink> needs a count from 0 to 1024"));
  EXPECT_THAT(refused(in_cpu(gpu("1", 0, nvlink("2", -1, "0x068000")))), HasSubstr("count"));
  EXPECT_EQ(refused("<system version=\"1\"><cpu/></system>"), "f.xml:1:21: <cpu> without numaid");
  EXPECT_EQ(refused("<system version=\"1\"><cpu numaid=\"0\"/><cpu numaid=\"0\"/></system>"),
            "f.xml:1:38: <cpu> with numaid 0 is given twice");
}

TEST(NcclXmlBogus, TruncatedAnywhere) {
  std::ifstream in(kOwnFile);
  std::ostringstream whole;
  whole << in.rdbuf();
  const std::string text = whole.str();
  const std::size_t end = text.rfind("</system>");
  ASSERT_NE(end, std::string::npos);
  for (std::size_t length = 1; length < end + 9; ++length) {
    EXPECT_THAT(refused(text.substr(0, length)), StartsWith("f.xml:")) << length;
  }
}

TEST(NcclXmlBogus, ACutOffFileSaysWhereItIsCut) {
  EXPECT_EQ(refused("<system version=\"1\">\n  <cpu numaid=\"0\">\n    <pci busid=\"1\"/>\n"),
            "f.xml:3:21: the file is cut off: it ends inside <cpu> of line 2 (not valid XML)");
  EXPECT_EQ(refused("<system version=\"1\">\n  <cpu numaid=\"0\">\n    <pci bu"),
            "f.xml:3:12: the file is cut off: it ends inside <cpu> of line 2 (not valid XML)");
  EXPECT_THAT(refused("<system version=\"1"), HasSubstr("cut off: it ends before"));
  EXPECT_THAT(refused("<system version=\"1\"><!-- no end"), HasSubstr("inside <system> of line 1"));
}

TEST(NcclXmlBogus, MalformedXmlIsLocated) {
  EXPECT_THAT(refused("<system version=\"1\">\n  <cpu numaid=0>\n  </cpu>\n</system>\n"),
              StartsWith("f.xml:2:"));
  EXPECT_EQ(refused("<system version=\"1\">\n  <cpu>\n</system>\n"),
            "f.xml:3:1: not valid XML: </system> stands where <cpu> of line 2 is still open");
  EXPECT_EQ(refused("<system version=\"1\">\n</system></cpu>\n"),
            "f.xml:2:10: not valid XML: </cpu> closes nothing");
  EXPECT_EQ(refused(""), "f.xml: is empty: there is no XML element in it");
}

// NCCL itself writes ` =""` into a dump where its input had a blank before "/>".
TEST(NcclXml, AttributesWithoutANameArePassedOver) {
  EXPECT_THAT(device_names(parse(in_cpu(R"(<pci busid="0000:01:00.0" class="0x030200" ="">
    <gpu dev="0" sm="90" =""/></pci>)"))),
              ::testing::Contains("gpu0"));
  // Not where a name stands before the blank, and not in other places of a tag.
  EXPECT_THAT(device_names(parse(in_cpu(R"(<pci busid="0000:01:00.0" class ="0x030200">
    <gpu dev="0" sm="90" rank =""/></pci>)"))),
              ::testing::Contains("gpu0"));
  EXPECT_THAT(refused(in_cpu("<pci =\"\" busid=\"0000:01:00.0\"/>")), HasSubstr("f.xml:3:"));
}

TEST(NcclXmlBogus, EntityBomb) {
  const std::string bomb =
      "<?xml version=\"1.0\"?>\n<!DOCTYPE s [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b "
      "\"&a;&a;&a;&a;&a;\">]>\n<system version=\"1\"><cpu numaid=\"&b;\"/></system>";
  EXPECT_EQ(refused(bomb), "f.xml: defines entities (<!DOCTYPE ... [...]>), which is refused");
}

TEST(NcclXmlBogus, DeepAndWideFilesAreRefusedQuickly) {
  const auto start = std::chrono::steady_clock::now();
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "<pci busid=\"1\" class=\"0x060400\">";
  EXPECT_THAT(refused(deep), HasSubstr("cut off"));
  for (int i = 0; i < 10'000; ++i) deep += "</pci>";
  EXPECT_THAT(refused(in_cpu(deep)), HasSubstr("nested deeper than 64 levels"));

  std::string wide;
  for (int i = 0; i < 70'000; ++i) wide += "<pci/>";
  EXPECT_THAT(refused(in_cpu(wide)), HasSubstr("more than 65536 elements"));
  EXPECT_THAT(refused("<system " + std::string(2 << 20, '=') + "/>"), HasSubstr("attributes"));
  EXPECT_THAT(refused(std::string(1 << 20, '<')), HasSubstr("more than 65536 elements"));
  std::string cpus;
  for (int i = 0; i < 300; ++i) cpus += "<cpu numaid=\"" + std::to_string(i) + "\"/>";
  EXPECT_THAT(refused("<system version=\"1\">" + cpus + "</system>"), HasSubstr("more than 256"));
  EXPECT_THAT(refused("<system " + std::string(kMaxXmlBytes, ' ') + "/>"),
              HasSubstr("larger than 16 MiB"));
  // Milliseconds in truth; the bound allows for sanitizers on a busy machine.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace weft::test::input_nccl_xml
