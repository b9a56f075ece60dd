#include "models/collective/settings.hpp"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/input/network_keys.hpp"
#include "sim/input/topology_file.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_settings {
namespace {

using ::testing::HasSubstr;

/// Why settings are refused on 16 nodes of hgx-h100-8nic; "" if they are not.
std::string refusal(std::vector<std::string> set) {
  try {
    const MachineUnderTest machine("hgx-h100-8nic.yaml", std::move(set), 16);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(Settings, OfADeviceBeatThoseOfItsKind) {
  MachineUnderTest m("hgx-h100-8nic.yaml", {"nic.pcie_width=8", "nic3.pcie_width=4"});
  EXPECT_EQ(m.devices().number("nic.pcie_width", m.id("nic0")), 8);
  EXPECT_EQ(m.devices().number("nic.pcie_width", m.id("nic3")), 4);
}

TEST(Settings, NicCountKeepsNicsSpreadOverTheSwitches) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {"nic.count=4"});
  ASSERT_EQ(m.fabric().count(DeviceKind::kNic), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const DeviceId nic = m.fabric().device(0, DeviceKind::kNic, i);
    EXPECT_EQ(m.fabric().device(m.fabric().upstream(nic).value()).name,
              "pcisw" + std::to_string(i));
  }
}

TEST(Settings, GpuCountKeepsTheFirstGpusAndTheirNvlinks) {
  const MachineUnderTest m("h200-vm.yaml", {"gpu.count=2"}, 1);
  ASSERT_EQ(m.fabric().count(DeviceKind::kGpu), 2U);
  EXPECT_EQ(m.fabric().device(m.fabric().device(0, DeviceKind::kGpu, 1)).name, "gpu1");
  EXPECT_EQ(m.fabric().spec().node.links.size(), 2U);
  EXPECT_THROW(MachineUnderTest("h200-vm.yaml", {"gpu.count=5"}, 1), InputError);
}

TEST(Settings, NicCountKeepsNicsBesideGpusFirst) {
  const auto kept = [](const std::string& nics) {
    const MachineUnderTest m("hgx-h100-8nic.yaml", {"gpu.count=2", "nic.count=" + nics});
    std::vector<std::string> names;
    for (std::size_t i = 0; i < m.fabric().count(DeviceKind::kNic); ++i) {
      names.push_back(m.fabric().device(m.fabric().device(0, DeviceKind::kNic, i)).name);
    }
    return names;
  };
  EXPECT_THAT(kept("1"), ::testing::ElementsAre("nic1"));
  EXPECT_THAT(kept("2"), ::testing::ElementsAre("nic0", "nic1"));
  EXPECT_THAT(kept("3"), ::testing::ElementsAre("nic0", "nic1", "nic7"));
}

TEST(Settings, NicCountIsOfCabledNicsAndASharedCpuIsNoSharedSwitch) {
  const ParamCatalog catalog = make_catalog();
  const auto kept = [&](const std::string& nics) {
    TopologySpec spec = parse_topology(
        "topology: t\nsource: a test\nnode:\n  devices:\n"
        "    cpu0: {kind: cpu}\n    cpu1: {kind: cpu}\n    gpu0: {kind: gpu, upstream: cpu0}\n"
        "    nic0: {kind: nic, upstream: cpu0, network: fabric}\n"
        "    nic1: {kind: nic, upstream: cpu0, network: none}\n"
        "    nic2: {kind: nic, upstream: cpu1, network: fabric}\n"
        "  links:\n    - {kind: socket, between: [cpu0, cpu1]}\n"
        "network:\n  fabric: {kind: one-switch}\n",
        "t.yaml", catalog);
    Params params(catalog);
    apply_settings({parse_setting("nic.count=" + nics)}, spec, params);
    drop_uncabled_nics(spec);
    std::string names;
    for (const DeviceSpec& device : spec.node.devices) {
      if (device.kind == DeviceKind::kNic) names += device.name + ' ';
    }
    return names;
  };
  EXPECT_EQ(kept("2"), "nic0 nic2 ");
  EXPECT_EQ(kept("1"), "nic2 ") << "the last of an even spread, as ever";
  EXPECT_THROW(kept("3"), InputError);
}

TEST(Settings, NicCountKeepsTheFabricsNicsBeforeSlowerOnesBesideThem) {
  const ParamCatalog catalog = make_catalog();
  TopologySpec spec = parse_topology(
      "topology: t\nsource: a test\nnode:\n  devices:\n"
      "    cpu0: {kind: cpu}\n    pcisw0: {kind: switch, upstream: cpu0}\n"
      "    gpu0: {kind: gpu, upstream: pcisw0}\n"
      "    nic0: {kind: nic, upstream: pcisw0, part: connectx-6-dx, network: fabric}\n"
      "    nic1: {kind: nic, upstream: pcisw0, part: connectx-7, network: fabric}\n"
      "    nic2: {kind: nic, upstream: cpu0, part: connectx-7, network: fabric}\n"
      "    nic3: {kind: nic, upstream: pcisw0, part: connectx-6-dx, network: fabric}\n"
      "network:\n  fabric: {kind: one-switch}\n",
      "t.yaml", catalog);
  Params params(catalog);
  apply_settings({parse_setting("nic.count=2")}, spec, params);
  std::vector<std::string> names;
  for (const DeviceSpec& device : spec.node.devices) {
    if (device.kind == DeviceKind::kNic) names.push_back(device.name);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("nic1", "nic2"));
}

TEST(Settings, ANetworkIsChangedByItsKeys) {
  const std::vector<std::string> leaf_spine{"network.kind=leaf-spine", "network.ports=64"};
  const auto tiers = [&](std::vector<std::string> more) {
    more.insert(more.begin(), leaf_spine.begin(), leaf_spine.end());
    return MachineUnderTest("hgx-h100-8nic.yaml", more, 16).fabric().network_tiers();
  };
  EXPECT_EQ(tiers({}).at(0).up, 32U);
  EXPECT_EQ(tiers({"network.oversubscription=4"}).at(0).up, 8U);
  EXPECT_EQ(tiers({"network.leaf_up=16"}).at(0).up, 16U);
  EXPECT_EQ(tiers({"network.leaf_up=16", "network.oversubscription=4"}).at(0).up, 8U);
  EXPECT_EQ(tiers({"network.oversubscription=4", "network.leaf_up=16"}).at(0).up, 16U);
  EXPECT_EQ(tiers({"network.oversubscription=4", "network.kind=rail-optimised"}).at(0).up, 8U);
  EXPECT_EQ(tiers({"network.oversubscription=4", "network.kind=one-switch"}).size(), 1U);
  EXPECT_EQ(tiers({"network.kind=fat-tree", "network.cores=32", "network.kind=leaf-spine"}).size(),
            2U);
  EXPECT_EQ(tiers({"network.kind=dragonfly", "network.groups=5"}).at(0).groups, 5U);
  EXPECT_EQ(tiers({"network.kind=torus", "network.dims=4x4", "network.kind=leaf-spine"}).size(), 2U)
      << "what belongs to a torus is dropped with it";
  EXPECT_EQ(tiers({"network.inside=ring", "network.rack_leaves=2", "network.locals=3",
                   "network.leaf_up=16"})
                .at(0)
                .local,
            3U);
  EXPECT_EQ(
      tiers({"network.inside=ring", "network.rack_leaves=2", "network.inside=tree"}).at(0).local,
      0U);
}

TEST(Settings, ATiersOwnBeatThoseOfAllSwitches) {
  MachineUnderTest m("hgx-h100-8nic.yaml",
                     {"network.kind=leaf-spine", "network.ports=64", "netswitch.latency=250 ns",
                      "spine.latency=300 ns"},
                     16);
  const auto latency = [&](std::size_t tier) {
    return m.machine().model(m.fabric().network_switch(tier, 0)).crossing_time();
  };
  EXPECT_EQ(latency(0), Duration::ns(250));
  EXPECT_EQ(latency(1), Duration::ns(300));
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"spine.latency=300 ns"}), InputError)
      << "one switch has no spines";
}

TEST(Settings, APlainSizeOnTheCommandLineIsBytes) {
  MachineUnderTest m("hgx-h100-8nic.yaml", {"wire.mtu=1024"});
  EXPECT_EQ(m.params().bytes("wire.mtu"), Bytes{1024});
}

TEST(Settings, RefuseWhatDoesNotExist) {
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"nic9.pcie_width=4"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"nic.count=9"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"nic.count=two"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"wire.rate=400"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"network.kind=torus"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"network.size=3"}), InputError);
  EXPECT_THROW(MachineUnderTest("h200-vm.yaml", {"network.kind=leaf-spine"}, 1), InputError);
  EXPECT_THROW(parse_setting("wire.mtu"), InputError);
}

TopologySpec settled(const std::string& text, const std::vector<std::string>& settings) {
  const ParamCatalog catalog = make_catalog();
  Params params(catalog);
  TopologySpec spec = parse_topology(text, "f.xml", catalog);
  std::vector<ScenarioSetting> parsed;
  for (const std::string& setting : settings) parsed.push_back(parse_setting(setting));
  apply_settings(parsed, spec, params);
  return spec;
}

TEST(Settings, PutAnotherProductInADevicesPlace) {
  const MachineUnderTest m("hgx-h100-8nic.yaml", {"gpu.part=h200", "nic3.part=connectx-8"});
  EXPECT_EQ(m.fabric().device(m.id("gpu7")).part, "h200-sxm");
  EXPECT_EQ(m.fabric().device(m.id("nic3")).part, "connectx-8");
  EXPECT_EQ(m.fabric().device(m.id("nic4")).part, "connectx-7");
  for (const char* product : {"A100-SXM4-80GB", "a100-sxm4-80gb", "NVIDIA-A100-SXM4-40GB"}) {
    const MachineUnderTest named("hgx-h100-8nic.yaml", {std::string("gpu.part=") + product});
    EXPECT_EQ(named.fabric().device(named.id("gpu7")).part, "a100-sxm");
  }
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"gpu.part=h1000"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"gpu.part=connectx-7"}), InputError);
  EXPECT_THROW(MachineUnderTest("hgx-h100-8nic.yaml", {"tpu.part=h100"}), InputError);
}

TEST(Settings, ANetworksSwitchesMayBeAnotherProduct) {
  const std::vector<std::string> leaf_spine{"network.kind=leaf-spine", "network.ports=64"};
  const auto parts = [&](std::vector<std::string> set) {
    set.insert(set.begin(), leaf_spine.begin(), leaf_spine.end());
    const MachineUnderTest m("hgx-h100-8nic.yaml", set, 16);
    const Fabric& fabric = m.fabric();
    return std::pair{fabric.device(fabric.network_switch(0, 0)).part,
                     fabric.device(fabric.network_switch(1, 0)).part};
  };
  using Parts = std::pair<std::string, std::string>;
  EXPECT_EQ(parts({"netswitch.part=quantum-x800"}), Parts("quantum-x800", "quantum-x800"));
  EXPECT_EQ(parts({"spine.part=quantum-x800"}), Parts("quantum-2", "quantum-x800"));
  EXPECT_EQ(parts({"spine.part=quantum-2", "netswitch.part=quantum-x800"}),
            Parts("quantum-x800", "quantum-x800"));
  EXPECT_THROW(parts({"leaf.part=h100-sxm"}), InputError);
  for (const char* const early : {"leaf.part=quantum-x800", "leaf.latency=1 ns",
                                  "spine.part=quantum-x800", "spine.latency=300 ns"}) {
    EXPECT_THAT(refusal({early}), HasSubstr("a one-switch network has no tiers")) << early;
  }
  for (const char* const none : {"core.part=quantum-x800", "core.latency=1 ns"}) {
    EXPECT_THAT(refusal({leaf_spine[0], leaf_spine[1], none}),
                HasSubstr("a leaf-spine network has no core switches"))
        << none;
  }
}

TEST(Settings, ThatNobodyKnowsNameTheNearest) {
  EXPECT_THAT(refusal({"netwrk.kind=leaf-spine"}), HasSubstr("(did you mean 'network.kind'?)"));
  EXPECT_THAT(refusal({"wrie.mtu=1 KiB"}), HasSubstr("(did you mean 'wire.mtu'?)"));
  EXPECT_THAT(refusal({"ncl.launch=graph"}), HasSubstr("(did you mean 'nccl.launch'?)"));
  EXPECT_THAT(refusal({"gpus.part=h100-sxm"}), HasSubstr("(did you mean 'gpu'?)"));
  EXPECT_THAT(refusal({"gpus@1.trained_width=8"}), HasSubstr("(did you mean 'gpu'?)"));
  for (const char* const part : {"gpu3@1.part=h200-sxm", "gpu@1.part=h200-sxm"}) {
    EXPECT_THAT(refusal({part}), HasSubstr("gpu.part is the same on all nodes; what one node may"));
  }
}

TEST(Settings, DrawASkeletonsNvlinksFromItsGpusPart) {
  const std::string skeleton =
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"1\" class=\"0x030200\"/>"
      "<pci busid=\"2\" class=\"0x030200\"/></cpu></system>";
  const TopologySpec named = settled(skeleton, {"gpu.part=h100"});
  ASSERT_EQ(named.node.links.size(), 2U);
  EXPECT_EQ(named.node.links[1].b, "nvswitch");
  EXPECT_EQ(named.node.links[1].count, 18U);
  EXPECT_EQ(Fabric(named, 1).count(DeviceKind::kNvSwitch), 1U);
  EXPECT_THAT(named.notes.back(), HasSubstr("all of each GPU's to an NVSwitch"));
  EXPECT_TRUE(settled(skeleton, {"gpu.part=v100"}).node.links.empty()) << "wired in many ways";
  for (const char* other : {"gpu1.part=l4", "gpu1.part=v100"}) {
    const TopologySpec one = settled(skeleton, {"gpu0.part=gb300", other});
    EXPECT_TRUE(one.node.links.empty()) << other;
    EXPECT_EQ(Fabric(one, 1).count(DeviceKind::kNvSwitch), 0U) << other;
    EXPECT_THAT(one.notes.back(), HasSubstr("gpu0 alone is known to be wired")) << other;
  }
  EXPECT_TRUE(settled(skeleton, {"gpu0.part=gb300"}).node.links.empty())
      << "another's is not known";
  const TopologySpec unnamed = settled(skeleton, {});
  EXPECT_TRUE(unnamed.node.links.empty());
  EXPECT_THAT(unnamed.notes.back(), HasSubstr("--gpu"));
}

TEST(Settings, NicCountKeepsPortsOfTheirNic) {
  std::string nets;
  for (int i = 0; i < 4; ++i) {
    nets += "<net name=\"p" + std::to_string(i) + "\" dev=\"" + std::to_string(i) + "\"/>";
  }
  const TopologySpec spec = settled(
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"1\"><gpu dev=\"0\"/></pci>"
      "<pci busid=\"0:1:0.0\"><nic>" +
          nets + "</nic></pci></cpu></system>",
      {"nic.count=2"});
  const Fabric fabric(spec, 1);
  ASSERT_EQ(fabric.count(DeviceKind::kNic), 2U);
  EXPECT_EQ(fabric.upstream_link(fabric.device(0, DeviceKind::kNic, 0)),
            fabric.upstream_link(fabric.device(0, DeviceKind::kNic, 1)));
}

/// A value that a key takes, from what its listing says.
std::string allowed_value(const SettingKey& key) {
  if (key.origin != "topology") return key.fallback;
  std::string range = key.range;
  if (range.starts_with("whole number from 0")) return "0";
  if (range.starts_with("whole number")) return "2";
  if (range.starts_with("number")) return "2";
  if (range.starts_with("SWITCH:LINKS")) return "leaf0:2";
  if (range.starts_with("one of: ")) range = range.substr(8);
  return range.substr(0, range.find(','));
}

/// Of the tests' machine, the first device of a kind.
std::string with_device(const std::string& key) {
  static const std::map<std::string, std::string> kDevices{
      {"<cpu>", "cpu0"}, {"<switch>", "pcisw0"},     {"<gpu>", "gpu0"},
      {"<nic>", "nic0"}, {"<nvswitch>", "nvswitch"}, {"<virtual-root>", "pcisw3"}};
  for (const auto& [kind, device] : kDevices) {
    if (!key.starts_with(kind)) continue;
    constexpr std::string_view kOnNode = "@<node>";
    const std::string rest = key.substr(kind.size());
    return device + (rest.starts_with(kOnNode) ? "@1" + rest.substr(kOnNode.size()) : rest);
  }
  return key;
}

/// Why a setting is refused on a machine with a network of three tiers; "" if it is not.
std::string setting_refusal(const std::string& key, const std::string& value) {
  const ParamCatalog catalog = make_catalog();
  Params params(catalog);
  TopologySpec spec =
      read_topology(std::string(WEFT_SOURCE_DIR) + "/topologies/hgx-h100-8nic.yaml", catalog);
  for (DeviceSpec& device : spec.node.devices) {
    if (device.name == "pcisw3") device.model = "virtual-root";
  }
  try {
    apply_settings({{"network.kind", "fat-tree", {}}, {key, value, {}}}, spec, params);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(SettingKeys, AreAllTakenWithWhatTheyAllow) {
  std::size_t narrower = 0;
  for (const SettingKey& key : setting_keys(make_catalog())) {
    EXPECT_EQ(setting_refusal(key.key, allowed_value(key)), "") << key.key;
    for (const std::string& also : key.also) {
      EXPECT_EQ(setting_refusal(with_device(also), allowed_value(key)), "") << also;
      ++narrower;
    }
  }
  EXPECT_GT(narrower, 50U);
}

TEST(SettingKeys, NameEverySettingThatIsNoParameter) {
  std::set<std::string> listed;
  for (const SettingKey& key : setting_keys(make_catalog())) listed.insert(key.key);
  std::vector<std::string> candidates{"nodes", "nic.count", "gpu.count"};
  for (const KeySpec& key : network_keys()) {
    candidates.push_back("network." + std::string(key.name));
  }
  for (const char* kind : {"cpu", "switch", "gpu", "nic", "nvswitch", "netswitch", "wire"}) {
    candidates.push_back(std::string(kind) + ".part");
  }
  for (const std::string& key : candidates) {
    bool taken = false;
    for (const char* value :
         {"2", "packed", "leaf-spine", "ring", "minimal", "leaf0:2", "sapphire-rapids", "pex89144",
          "h100", "connectx-7", "nvswitch-3", "quantum-2"}) {
      taken = taken || setting_refusal(key, value).empty();
    }
    EXPECT_EQ(taken, listed.contains(key)) << key;
  }
}

TEST(NcclEnv, IsTakenOrNamedAsNotModelled) {
  const ParamCatalog catalog = make_catalog();
  Params params(catalog);
  EXPECT_TRUE(
      apply_nccl_env({{"NCCL_PROTO", "LL"}, {"NCCL_NVLS_ENABLE", "0"}}, params).notes.empty());
  EXPECT_EQ(params.choice("nccl.proto"), "LL");
  apply_nccl_env({{"NCCL_BUFFSIZE", "1048576"}}, params);
  EXPECT_EQ(params.bytes("nccl.buffer_size"), Bytes::mib(1));
  apply_nccl_env({{"NCCL_LL_BUFFSIZE", "65536"}, {"NCCL_LL128_BUFFSIZE", "131072"}}, params);
  EXPECT_EQ(params.bytes("nccl.ll_buffer_size"), Bytes::kib(64));
  EXPECT_EQ(params.bytes("nccl.ll128_buffer_size"), Bytes::kib(128));
  apply_nccl_env({}, params);
  EXPECT_EQ(params.number("wire.timeout_exponent"), 20);  // perftest's is 14
  EXPECT_EQ(params.number("wire.retry_count"), 7);
  EXPECT_TRUE(apply_nccl_env({{"NCCL_IB_TIMEOUT", "17"}, {"NCCL_IB_RETRY_CNT", "3"}}, params)
                  .notes.empty());
  EXPECT_EQ(params.get("wire.timeout_exponent").source, "NCCL_IB_TIMEOUT");
  EXPECT_EQ(params.number("wire.timeout_exponent"), 17);
  EXPECT_EQ(params.number("wire.retry_count"), 3);
  EXPECT_THROW(apply_nccl_env({{"NCCL_IB_TIMEOUT", "32"}}, params), InputError);
  EXPECT_EQ(params.choice("nic.dma_buf"), "on");
  EXPECT_TRUE(apply_nccl_env({{"NCCL_DMABUF_ENABLE", "0"}}, params).notes.empty());
  EXPECT_EQ(params.choice("nic.dma_buf"), "off");
  EXPECT_EQ(apply_nccl_env({{"NCCL_IB_TC", "106"}}, params).notes.size(), 1U);
  EXPECT_THROW(apply_nccl_env({{"PATH", "/bin"}}, params), InputError);
  EXPECT_THROW(apply_nccl_env({{"NCCL_PROTO", "Fast"}}, params), InputError);
  try {
    apply_nccl_env({{"NCCL_PROTO", "Fast"}}, params, {{"NCCL_PROTO", {"s.yaml", 7, 9}}});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("s.yaml:7:9: NCCL_PROTO='Fast': "));
  }
}

}  // namespace
}  // namespace weft::test::models_settings
