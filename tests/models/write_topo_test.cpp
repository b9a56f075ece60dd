#include "models/nccl/decide/write_topo.hpp"

#include <filesystem>
#include <regex>

#include <gtest/gtest.h>

#include "models/nccl/decide/tuning_input.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/input/topology_file.hpp"

namespace weft::test::models_write_topo {
namespace {

FabricAsNccl written(TopologySpec spec, const ParamCatalog& catalog) {
  const PartLibrary parts(catalog);
  Params params(catalog);
  for (const auto& [key, value] : spec.defaults) params.set_by_topology(key, value);
  const Fabric fabric(std::move(spec), 1);
  return nccl_tree_of(DeviceParams(fabric, params, parts));
}

FabricAsNccl written(const std::string& yaml) {
  const ParamCatalog catalog = make_catalog();
  return written(parse_topology(yaml, "t.yaml", catalog), catalog);
}

FabricAsNccl written_file(const std::string& name) {
  const ParamCatalog catalog = make_catalog();
  return written(read_topology(WEFT_SOURCE_DIR "/topologies/" + name, catalog), catalog);
}

/// Whether every line is one tag as NCCL's reader wants it: no declaration or comment, tags without
/// line breaks, tabs or blanks but the one before each attribute, nothing between tags.
void expect_strict(const std::string& text) {
  static const std::regex kLine(R"( *(</[a-z0-9]+>|<[a-z0-9]+( [a-z_]+="[^"<>&\t]*")*/?>))");
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    ASSERT_NE(end, std::string::npos) << "the last line has no end";
    const std::string line = text.substr(at, end - at);
    EXPECT_TRUE(std::regex_match(line, kLine)) << line;
    at = end + 1;
  }
}

/// Decisions as comparable text: what differs is named by the first line that does.
std::string decisions_of(const NcclTree& tree, int hosts) {
  const NcclDecisions d = decide_nccl(tree, hosts, NcclEnv{}, NcclVersion{});
  const Tuning tuning(tuning_input(d));
  std::string out;
  for (const NcclGraph* graph : {&d.ring, &d.tree}) {
    out += std::to_string(graph->channel_count()) + " channels " + std::to_string(graph->bw_intra) +
           "/" + std::to_string(graph->bw_inter) + " " +
           std::string(nccl_path_type_name(graph->type_intra)) + "/" +
           std::string(nccl_path_type_name(graph->type_inter)) + "\n";
  }
  for (const auto& ring : d.connections.rings) {
    for (const int rank : ring) out += std::to_string(rank) + " ";
    out += "\n";
  }
  for (const NcclGdr& gdr : d.gdr) out += gdr.check.enabled ? "on " : "off ";
  for (std::int64_t bytes = 1024; bytes <= 1 << 30; bytes *= 4) {
    const auto choice = tuning.choose(NcclOp::kAllReduce, Bytes{bytes}).value();
    out += "\n" + std::string(nccl_algo_name(choice.algo)) + " " +
           std::string(nccl_proto_name(choice.proto)) + " " + std::to_string(choice.channels);
  }
  return out;
}

class WriteTopo : public testing::TestWithParam<const char*> {};

TEST_P(WriteTopo, IsReadBackToTheSameDecisions) {
  const FabricAsNccl fabric = written_file(GetParam());
  const std::string text = nccl_tree_text(fabric.tree);
  expect_strict(text);
  const NcclTree again = parse_nccl_tree(text, "written.xml");
  EXPECT_EQ(nccl_tree_text(again), text);
  EXPECT_EQ(decisions_of(again, 1), decisions_of(fabric.tree, 1));
  // weft's own reader of XML makes the same machine of it.
  const ParamCatalog catalog = make_catalog();
  const FabricAsNccl twice = written(parse_topology(text, "written.xml", catalog), catalog);
  EXPECT_EQ(decisions_of(twice.tree, 1), decisions_of(fabric.tree, 1));
}

INSTANTIATE_TEST_SUITE_P(Topologies, WriteTopo,
                         testing::Values("h200-vm.yaml", "hgx-h100-4nic.yaml",
                                         "hgx-h100-8nic.yaml"));

// 8 x H100 with 8 x 400 Gb/s: eight channels at 48 GB/s, GPU and NIC below one switch, 16
// channels after doubling (NCCL src/graph/search.cc and connect.cc).
TEST(WriteTopoOfHgx, GivesTheChannelsThatSuchMachinesHave) {
  const NcclDecisions d =
      decide_nccl(written_file("hgx-h100-8nic.yaml").tree, 2, NcclEnv{}, NcclVersion{});
  EXPECT_EQ(d.ring.channel_count(), 8);
  EXPECT_EQ(d.ring.bw_inter, 48.0F);
  EXPECT_EQ(d.ring.type_inter, NcclPathType::kPix);
  EXPECT_EQ(d.ring.type_intra, NcclPathType::kNvl);
  EXPECT_EQ(d.channels.coll, 16);
}

constexpr const char* kSmall = R"(topology: small
node:
  devices:
    cpu0: {kind: cpu, part: genoa}
    sw0: {kind: switch, upstream: cpu0}
    idle: {kind: switch, upstream: cpu0}
    nic0: {kind: nic, part: connectx-6, upstream: sw0, network: fabric, set: {gdr: "off"}}
    nic1: {kind: nic, upstream: sw0, network: none}
    gpu0: {kind: gpu, part: h100-sxm, upstream: sw0, bus_id: "0000:02:00.0"}
    gpu1: {kind: gpu, part: h100-sxm, upstream: cpu0}
  links:
    - {kind: nvlink, between: [gpu0, gpu1], count: 4}
network:
  fabric: {kind: one-switch}
)";

TEST(WriteTopoOfSmall, SaysWhatTheTopologySays) {
  const FabricAsNccl fabric = written(kSmall);
  EXPECT_EQ(nccl_tree_text(fabric.tree),
            R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="16">
    <pci busid="0000:01:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x0" subsystem_device="0x0" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" vendor="0x10de" device="0x2330" subsystem_vendor="0x0" subsystem_device="0x0" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:04:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x020700" vendor="0x15b3" device="0x101b" subsystem_vendor="0x0" subsystem_device="0x0" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="nic0" dev="0" latency="0.000000" speed="200000" port="1" guid="0x1" maxconn="131072" gdr="0"/>
        </nic>
      </pci>
    </pci>
    <pci busid="0000:04:00.0" class="0x030200" vendor="0x10de" device="0x2330" subsystem_vendor="0x0" subsystem_device="0x0" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="90" rank="1" gdr="1">
        <nvlink target="0000:02:00.0" count="4" tclass="0x030200"/>
      </gpu>
    </pci>
  </cpu>
</system>
)");
  ASSERT_EQ(fabric.notes.size(), 1U);
  EXPECT_TRUE(fabric.notes[0].starts_with("3 devices have no bus_id")) << fabric.notes[0];
}

TEST(WriteTopoOfSmall, ANicsSpeedIsWhatItReports) {
  const auto speed = [](const std::string& rate) {
    const std::string text =
        nccl_tree_text(written(kSmall + ("defaults: {nic.reported_rate: " + rate + "}\n")).tree);
    const std::size_t at = text.find("speed=\"", text.find("<net ")) + 7;
    return text.substr(at, text.find('"', at) - at);
  };
  EXPECT_EQ(speed("0 Gb/s"), "200000");
  EXPECT_EQ(speed("400 Gb/s"), "400000");
  EXPECT_EQ(speed("0.0001 Gb/s"), "1") << "NCCL takes 0 for 10 Gb/s";
}

// The same file by `weft nccl` and by `weft run`, which makes a fabric of it: with CollNet NVLS may
// span nodes.
TEST(WriteTopoOfHgx, NicsOfAnXmlKeepTheirCollnet) {
  const ParamCatalog catalog = make_catalog();
  std::string text = nccl_tree_text(written_file("hgx-h100-8nic.yaml").tree);
  EXPECT_EQ(text.find("coll="), std::string::npos);
  for (std::size_t at = 0; (at = text.find(" gdr=\"1\"/>", at)) != std::string::npos;) {
    text.insert(at += 8, " coll=\"1\"");
  }
  const NcclTree again = written(parse_topology(text, "coll.xml", catalog), catalog).tree;
  EXPECT_EQ(nccl_tree_text(again), text);
  const Tuning tuning(
      tuning_input(decide_nccl(again, 4, parse_nccl_env({{"NCCL_COLLNET_ENABLE", "1"}}), {})));
  EXPECT_EQ(tuning.choose(NcclOp::kAllReduce, Bytes::mib(1))->algo, NcclAlgo::kNvls);
}

TEST(WriteTopoOfSmall, PortsOfOneNicShareItsFunctionAndGuid) {
  std::string yaml = kSmall;
  yaml.insert(yaml.find("    nic1:"),
              "    nic0b: {kind: nic, part: connectx-6, port_of: nic0, network: fabric}\n");
  const std::string text = nccl_tree_text(written(yaml).tree);
  const std::size_t nic = text.find("<nic>");
  const std::string inside = text.substr(nic, text.find("</nic>") - nic);
  EXPECT_NE(
      inside.find(R"(name="nic0" dev="0" latency="0.000000" speed="200000" port="1" guid="0x1")"),
      std::string::npos)
      << text;
  EXPECT_NE(
      inside.find(R"(name="nic0b" dev="1" latency="0.000000" speed="200000" port="2" guid="0x1")"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("<nic>", nic + 1), std::string::npos);
}

std::string refusal(const std::string& yaml) {
  try {
    written(yaml);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(WriteTopoOfSmall, RefusesGpusWhoseComputeCapabilityIsNotKnown) {
  std::string yaml = kSmall;
  for (std::size_t at; (at = yaml.find("part: h100-sxm, ")) != std::string::npos;)
    yaml.erase(at, 16);
  EXPECT_EQ(refusal(yaml),
            "t.yaml:9:5: gpu0: NCCL decides by the compute capability, which its part '' does not "
            "say; name the GPUs with --gpu PART (such as h100-sxm)");
}

TEST(NcclTreeText, RefusesWhatNcclsReaderWouldNotTake) {
  const auto refused = [](NcclElement element) {
    NcclTree tree;
    tree.system.tag = "system";
    tree.system.children.push_back(std::move(element));
    EXPECT_THROW(nccl_tree_text(tree), InputError);
  };
  for (const std::string& value : {std::string(256, 'x'), std::string("a\"b"), std::string("a\nb"),
                                   std::string("<"), std::string("\t")}) {
    NcclElement cpu;
    cpu.tag = "cpu";
    cpu.set("vendor", value);
    refused(cpu);
  }
  NcclElement many;
  many.tag = "cpu";
  for (int i = 0; i < 17; ++i) many.set("a" + std::to_string(i), "1");
  refused(many);
  NcclElement full;
  full.tag = "cpu";
  full.children.resize(641);
  refused(full);
}

TEST(NcclTreeText, LeavesOutElementsThatNcclDoesNotHave) {
  const NcclTree tree = parse_nccl_tree(
      "<?xml version='1.0'?>\n<!-- c -->\n<system version='1'><cpu numaid='0'\n arch='x86_64'>"
      "<story/></cpu></system>",
      "t.xml");
  EXPECT_EQ(nccl_tree_text(tree),
            "<system version=\"1\">\n  <cpu numaid=\"0\" arch=\"x86_64\"/>\n</system>\n");
}

}  // namespace
}  // namespace weft::test::models_write_topo
