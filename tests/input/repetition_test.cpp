#include "sim/input/repetition.hpp"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/input/topology_yaml.hpp"
#include "sim/topology/fabric.hpp"
#include "tests/input/catalog.hpp"

namespace weft::test::input_repetition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string why_not(const std::string& text, std::int64_t i = 0) {
  return refusal([&] { fill_in(text, i); });
}

TEST(Repetition, FillsInExpressions) {
  EXPECT_EQ(fill_in("gpu{i}", 7), "gpu7");
  EXPECT_EQ(fill_in("cpu{i/2}", 7), "cpu3");
  EXPECT_EQ(fill_in("plain", 7), "plain");
  EXPECT_EQ(fill_in("{2*i+1}-{i%4}", 7), "15-3");
  EXPECT_EQ(fill_in("{1+2*3-4/2}", 0), "5") << "products before sums";
  EXPECT_EQ(fill_in("{10-3-2}", 0), "5") << "from the left";
  EXPECT_EQ(fill_in("{ ( i + 1 ) * 2 }", 3), "8");
  EXPECT_EQ(fill_in("{7}", 3), "7");
}

TEST(RepetitionBogus, ExpressionsSayWhatIsWrong) {
  EXPECT_EQ(why_not("gpu{i/}"),
            "'{i/}': a number or i is missing; allowed: an expression such as "
            "i/2+1, not negative");
  EXPECT_THAT(why_not("gpu{}"), HasSubstr("a number or i is missing"));
  EXPECT_THAT(why_not("gpu{j}"), HasSubstr("a number or i is missing"));
  EXPECT_THAT(why_not("gpu{i i}"), HasSubstr("'i' is left over"));
  EXPECT_THAT(why_not("gpu{(i}"), HasSubstr("a parenthesis is not closed"));
  EXPECT_THAT(why_not("gpu{i"), HasSubstr("'gpu{i': a brace is not closed"));
  EXPECT_THAT(why_not("gpu{i-1}"), HasSubstr("it is -1 for i = 0"));
  EXPECT_THAT(why_not("gpu{4/i}"), HasSubstr("it divides by 0 for i = 0"));
  EXPECT_THAT(why_not("gpu{4%i}"), HasSubstr("it divides by 0 for i = 0"));
  EXPECT_THAT(why_not("{99999999999999999999}"), HasSubstr("a number or i is missing"));
  EXPECT_THAT(why_not("{2147483647*2147483647*2147483647}"), HasSubstr("it is beyond 2^31"));
  EXPECT_THAT(why_not("{" + std::string(200, '(') + "1}"), HasSubstr("nested too deep"));
}

const std::string kTray = R"(topology: tray
node:
  devices:
    cpu{i}: {repeat: 2, kind: cpu}
    gpu{i}: {repeat: 4, kind: gpu, upstream: "cpu{i/2}", bus_id: "000{i}:01:00.0"}
    nic{i}:
      repeat: 2
      kind: nic
      upstream: "cpu{1-i}"
      network: fabric
      set: {rate: "{100*(i+1)} Gb/s"}
  links:
    - {repeat: 4, kind: c2c, between: ["gpu{i}", "cpu{i/2}"], count: "{i+1}"}
    - {kind: socket, between: [cpu0, cpu1]}
network: {fabric: {kind: one-switch}}
)";

TopologySpec parse(const std::string& text) {
  return parse_topology_yaml(text, "f.yaml", test_catalog());
}

std::string with(const std::string& piece, const std::string& by) {
  std::string text = kTray;
  return text.replace(text.find(piece), piece.size(), by);
}

std::string refused(const std::string& text) {
  return refusal([&] { parse(text); });
}

TEST(Repetition, MakesDevicesAndLinks) {
  const TopologySpec spec = parse(kTray);
  std::vector<std::string> names;
  for (const DeviceSpec& device : spec.node.devices) {
    names.push_back(device.name + "<" + device.upstream);
  }
  EXPECT_THAT(names, ElementsAre("cpu0<", "cpu1<", "gpu0<cpu0", "gpu1<cpu0", "gpu2<cpu1",
                                 "gpu3<cpu1", "nic0<cpu1", "nic1<cpu0"));
  EXPECT_EQ(spec.node.devices[5].bus_id, "0003:01:00.0");
  EXPECT_EQ(spec.node.devices[5].place.text(), "f.yaml:5:5") << "where the entry stands";
  EXPECT_DOUBLE_EQ(spec.node.devices[7].settings.at("rate").number, 25.0);
  ASSERT_EQ(spec.node.links.size(), 5U);
  EXPECT_EQ(spec.node.links[3].a + "-" + spec.node.links[3].b, "gpu3-cpu1");
  EXPECT_EQ(spec.node.links[3].count, 4U);
  EXPECT_NO_THROW(Fabric(spec, 2));
}

TEST(Repetition, BracesMeanNothingWithoutIt) {
  EXPECT_THAT(refusal([&] { Fabric(parse(with("repeat: 2, ", "")), 1); }),
              HasSubstr("device name 'cpu{i}'"));
}

TEST(RepetitionBogus, IsToldWhereItStands) {
  EXPECT_EQ(refused(with("cpu{i/2}\", bus", "cpu{i/0}\", bus")),
            "f.yaml:5:36: node.devices.gpu{i}.upstream: '{i/0}': it divides by 0 for i = 0; "
            "allowed: an expression such as i/2+1, not negative");
  EXPECT_THAT(refused(with("gpu{i}:", "gpu{i-1}:")),
              HasSubstr("f.yaml:5:5: node.devices.gpu{i-1}: '{i-1}': it is -1 for i = 0"));
  EXPECT_THAT(refused(with("repeat: 4, kind: gpu", "repeat: 0, kind: gpu")),
              HasSubstr("f.yaml:5:14: node.devices.gpu{i}.repeat: '0' is not a whole number from 1 "
                        "to 4096"));
  EXPECT_THAT(refused(with("repeat: 4, kind: gpu", "repeat: \"{i}\", kind: gpu")),
              HasSubstr("is not a whole number from 1 to 4096"));
  EXPECT_THAT(refused(with("repeat: 4, kind: gpu", "repeat: 4096, kind: gpu")),
              HasSubstr("node.devices.gpu{i}.repeat: makes 4098 entries; allowed: up to 4096"));
  EXPECT_THAT(refusal([&] { Fabric(parse(with("gpu{i}:", "gpu:")), 1); }),
              HasSubstr("f.yaml:5:5: gpu: the node has two devices of this name"));
}

TEST(RepetitionBogus, ManyLinesOfManyMakeNoHugeTopology) {
  std::string text = "topology: t\nnode:\n  devices: {c: {kind: cpu}}\n  links:\n";
  for (int i = 0; i < 5000; ++i) {
    text += "    - {repeat: 4096, kind: c2c, between: [\"g{i}\", c]}\n";
  }
  const auto before = std::chrono::steady_clock::now();
  EXPECT_THAT(refused(text), HasSubstr("node.links[16].repeat: makes 69632 entries; allowed: up to "
                                       "65536"));
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(20));
}

TEST(Repetition, AnNvl72RackIsItsTraysOneByOne) {
  // The rack written out, as the file was before it repeated its trays.
  std::string devices;
  std::string links;
  const auto number = [](int i) { return std::to_string(i); };
  const auto add = [&](int count, const std::string& prefix, const auto& body) {
    for (int i = 0; i < count; ++i) {
      devices += "    " + prefix + number(i) + ": {" + body(number(i), number(i / 2)) + "}\n";
    }
  };
  using Text = const std::string&;
  add(36, "cpu", [](Text, Text) { return std::string("kind: cpu, part: grace"); });
  add(72, "gpu", [](Text, Text cpu) { return "kind: gpu, part: gb200, upstream: cpu" + cpu; });
  add(72, "nic", [](Text, Text cpu) {
    return "kind: nic, part: connectx-7, network: fabric, upstream: cpu" + cpu;
  });
  add(36, "dpu", [](Text cpu, Text) {
    return "kind: nic, part: bluefield-3, network: none, upstream: cpu" + cpu;
  });
  for (int i = 0; i < 36; i += 2) {
    links += "    - {kind: socket, between: [cpu" + number(i) + ", cpu" + number(i + 1) + "]}\n";
  }
  for (int i = 0; i < 72; ++i) {
    links += "    - {kind: c2c, between: [gpu" + number(i) + ", cpu" + number(i / 2) + "]}\n";
  }
  for (int i = 0; i < 72; ++i) {
    links += "    - {kind: nvlink, between: [gpu" + number(i) + ", nvswitch], count: 18}\n";
  }
  const TopologySpec whole =
      parse("topology: t\nnode:\n  devices:\n" + devices +
            "    nvswitch: {kind: nvswitch, part: nvswitch-4}\n  links:\n" + links +
            "network: {fabric: {kind: one-switch, part: quantum-2}}\n");
  const TopologySpec file = read_topology_yaml(
      std::string(WEFT_SOURCE_DIR) + "/topologies/gb200-nvl72.yaml", test_catalog());
  ASSERT_EQ(file.node.devices.size(), whole.node.devices.size());
  for (std::size_t i = 0; i < whole.node.devices.size(); ++i) {
    const DeviceSpec& a = file.node.devices[i];
    const DeviceSpec& b = whole.node.devices[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.part + a.upstream + a.network, b.part + b.upstream + b.network) << a.name;
  }
  ASSERT_EQ(file.node.links.size(), whole.node.links.size());
  for (std::size_t i = 0; i < whole.node.links.size(); ++i) {
    const PeerLinkSpec& a = file.node.links[i];
    const PeerLinkSpec& b = whole.node.links[i];
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.count, b.count);
    EXPECT_EQ(a.a + "-" + a.b, b.a + "-" + b.b);
  }
}

}  // namespace
}  // namespace weft::test::input_repetition
