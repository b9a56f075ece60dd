// Machine state that decides a route: ACS, IOMMU, address translation, peer mapping, BAR1, relaxed
// ordering, MPS, trained links. Numbers are derived beside the tests.
#include "models/machine/machine_state.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "models/machine/dma_routes.hpp"
#include "models/machine/gdr_possible.hpp"
#include "models/nccl/decide/bar1.hpp"
#include "models/nccl/schedule.hpp"
#include "models/pcie/acs.hpp"
#include "models/transport/contraction.hpp"
#include "sim/input/topology_yaml.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_machine_state {
namespace {

using Settings = std::vector<std::string>;
constexpr const char* kHgx = "hgx-h100-8nic.yaml";
constexpr double kGen5x16 = 32.0 * 16 / 8 * 128 / 130;   // 63.015 GB/s
const std::string kRedirect = "switch.acs=SV+RR+CR+UF";  // what Linux sets with an IOMMU driver

Walk nic_writes(const MachineUnderTest& m, const char* nic, const char* to) {
  return {{Leg::Kind::kWrite, Leg::Medium::kPcie, m.id(nic), m.id(nic), m.id(to)}};
}
Walk nic_reads(const MachineUnderTest& m, const char* nic, const char* from) {
  return {{Leg::Kind::kRead, Leg::Medium::kPcie, m.id(nic), m.id(from), m.id(nic)}};
}
double rate(const MachineUnderTest& m, const Walk& walk) {
  return solo_rate(m.machine(), contract(m.machine(), walk)).as_gigabytes_per_s();
}
/// What a byte of the walk takes of a server by its report name; 0 if nothing.
double weight(const MachineUnderTest& m, const Walk& walk, const std::string& where) {
  for (const ServerUse& use : contract(m.machine(), walk).uses) {
    if (m.machine().cause(use.server).where == where) return use.weight;
  }
  return 0;
}
std::string why(const Settings& settings, const char* gpu = "gpu0", const char* nic = "nic0") {
  const MachineUnderTest m(kHgx, settings);
  return gdr_possible(m.machine(), m.id(gpu), m.id(nic)).why;
}

TEST(Acs, RoutesAPeersRequestAsTheRegisterSays) {
  using enum PeerRouting;
  constexpr auto kRr = acs::kRequestRedirect;
  constexpr auto kEc = acs::kEgressControl;
  EXPECT_EQ(route_peer_request(0, true, false), kDirect);
  EXPECT_EQ(route_peer_request(acs::kSourceValidation, true, false), kDirect);
  EXPECT_EQ(route_peer_request(kRr, true, false), kRedirect);
  EXPECT_EQ(route_peer_request(kEc, true, false), kBlock);
  EXPECT_EQ(route_peer_request(kEc, false, false), kDirect);
  EXPECT_EQ(route_peer_request(kRr | kEc, true, false), kRedirect);
  EXPECT_EQ(route_peer_request(kRr | kEc, false, false), kDirect);
  // Translated addresses (ATS): TB refuses them before all else, DT lets them go straight.
  EXPECT_EQ(route_peer_request(kRr | acs::kDirectTranslated, true, true), kDirect);
  EXPECT_EQ(route_peer_request(kRr | acs::kDirectTranslated, true, false), kRedirect);
  EXPECT_EQ(
      route_peer_request(kRr | acs::kDirectTranslated | acs::kTranslationBlocking, true, true),
      kBlock);
  EXPECT_EQ(route_peer_request(acs::kTranslationBlocking, true, false), kDirect);
}

TEST(Acs, RedirectsCompletionsWithoutRelaxedOrderingOnly) {
  EXPECT_EQ(route_peer_completion(acs::kRequestRedirect, false), PeerRouting::kDirect);
  EXPECT_EQ(route_peer_completion(acs::kCompletionRedirect, false), PeerRouting::kRedirect);
  EXPECT_EQ(route_peer_completion(acs::kCompletionRedirect, true), PeerRouting::kDirect);
}

TEST(MachineState, AcsRequestRedirectSendsWritesOverTheUplinkTwiceAndOnlyRequestsOfReads) {
  const MachineUnderTest m(kHgx, {"switch.acs=RR"});
  const Walk write = nic_writes(m, "nic0", "gpu0");
  // Up as the NIC sends them, TLPs of 256 B; down as the Intel root complex issues them, 64 B.
  EXPECT_NEAR(weight(m, write, "pcisw0@0 -> cpu0@0"), 280.0 / 256 + 4.0 / 64, 1e-12);
  EXPECT_NEAR(weight(m, write, "cpu0@0 -> pcisw0@0"), 88.0 / 64 + 4.0 / 256, 1e-12);
  EXPECT_NEAR(rate(m, write), kGen5x16 / (88.0 / 64 + 4.0 / 256), 1e-3);
  const Walk read = nic_reads(m, "nic0", "gpu0");
  // Both ways the request itself, and the DLLPs for it.
  EXPECT_NEAR(weight(m, read, "pcisw0@0 -> cpu0@0"), 28.0 / 512, 1e-12);
  EXPECT_NEAR(weight(m, read, "cpu0@0 -> pcisw0@0"), 28.0 / 512, 1e-12);
  const MachineUnderTest plain(kHgx);
  EXPECT_NEAR(rate(m, read), rate(plain, nic_reads(plain, "nic0", "gpu0")), 1e-9);
}

TEST(MachineState, AcsWithCompletionRedirectHalvesTheUplinkWhereReadsAreStrict) {
  // A root complex that cuts nothing (AMD). One NIC writes and reads its GPU at
  // B each: upwards go written data (280/256), read requests (24/512), completions (276/256) and
  // the DLLPs for what comes down (4/256 for writes and completions, 4/512); downwards the same.
  const MachineUnderTest m(
      kHgx, {"switch.acs=SV+RR+CR+UF", "cpu.p2p_payload=4096 B", "cpu.p2p_port_writes=0 B",
             "cpu.p2p_port_reads=0 B", "nic.relaxed_ordering=off"});
  const char* const up = "pcisw0@0 -> cpu0@0";
  const char* const down = "cpu0@0 -> pcisw0@0";
  const Walk write = nic_writes(m, "nic0", "gpu0");
  const Walk read = nic_reads(m, "nic0", "gpu0");
  const double byte = 280.0 / 256 + 28.0 / 512 + 276.0 / 256 + 8.0 / 256;
  EXPECT_NEAR(weight(m, write, up) + weight(m, read, up), byte, 1e-12);
  EXPECT_NEAR(weight(m, write, down) + weight(m, read, down), byte, 1e-12);
  // 63.015 / 2.258 = 27.9 GB/s each way, half of what either has of the uplink alone (57.6, 58.0).
  EXPECT_NEAR(kGen5x16 / byte / rate(m, write), 0.5, 0.02);
  // With relaxed ordering completions go straight.
  const MachineUnderTest relaxed(kHgx, {kRedirect, "cpu.p2p_payload=4096 B"});
  EXPECT_NEAR(weight(relaxed, nic_reads(relaxed, "nic0", "gpu0"), up), 28.0 / 512, 1e-12);
}

TEST(MachineState, AtsWithDirectTranslatedRestoresTheStraightRoute) {
  const Settings vm{"switch.acs=SV+RR+CR+UF+DT", "cpu.iommu=translate", "nic.ats=on"};
  const MachineUnderTest m(kHgx, vm);
  EXPECT_EQ(weight(m, nic_writes(m, "nic0", "gpu0"), "pcisw0@0 -> cpu0@0"), 0);
  EXPECT_EQ(weight(m, nic_reads(m, "nic0", "gpu0"), "pcisw0@0 -> cpu0@0"), 0);
  // Without DT they are redirected, translated though they are.
  const MachineUnderTest no_dt(kHgx, {kRedirect, "cpu.iommu=translate", "nic.ats=on"});
  EXPECT_GT(weight(no_dt, nic_writes(no_dt, "nic0", "gpu0"), "pcisw0@0 -> cpu0@0"), 1);
}

TEST(MachineState, OnlyThePortsWhereTheRoutesPartMatter) {
  // nic0's port redirects what nic0 asks; gpu0's does not, nor does it matter to nic1.
  const MachineUnderTest m(kHgx, {"nic0.port_acs=RR", "gpu1.port_acs=RR"});
  EXPECT_GT(weight(m, nic_writes(m, "nic0", "gpu0"), "pcisw0@0 -> cpu0@0"), 1);
  EXPECT_EQ(weight(m, nic_writes(m, "nic1", "gpu0"), "pcisw0@0 -> cpu0@0"), 0);
  EXPECT_EQ(weight(m, nic_writes(m, "nic1", "gpu1"), "pcisw0@0 -> cpu0@0"), 0);
}

TEST(MachineState, AnEgressControlVectorNamesPortsOfItsSwitch) {
  // The ports of pcisw0 in the file's order: gpu0, gpu1, nic0, nic1.
  EXPECT_NE(why({"switch.acs=EC", "nic0.port_egress=P0"}), "");
  EXPECT_EQ(why({"switch.acs=EC", "nic0.port_egress=P1+P2+P3"}), "");
  EXPECT_NE(why({"switch.acs=EC", "nic0.port_egress=P1"}, "gpu1"), "");
  // Each port has its own; without one, its switch's word holds.
  EXPECT_NE(why({"switch.acs=EC", "nic1.port_egress=P1"}), "");
  EXPECT_EQ(why({"switch.acs=EC", "switch.acs_egress=none", "nic1.port_egress=P0"}), "");
  // With RR what is named is redirected, what is not goes straight.
  const MachineUnderTest m(kHgx, {"switch.acs=EC+RR", "nic0.port_egress=P1"});
  EXPECT_EQ(weight(m, nic_writes(m, "nic0", "gpu0"), "pcisw0@0 -> cpu0@0"), 0);
  EXPECT_GT(weight(m, nic_writes(m, "nic0", "gpu1"), "pcisw0@0 -> cpu0@0"), 1);
}

TEST(MachineState, NcclSeesWhoMapsMemoryAndNotWhatBlocks) {
  const auto sees = [](const std::string& setting) {
    const MachineUnderTest m(kHgx, {setting});
    const GdrPossible gdr = gdr_possible(m.machine(), m.id("gpu0"), m.id("nic0"));
    EXPECT_FALSE(gdr.possible) << setting;
    return gdr.nccl_sees;
  };
  EXPECT_TRUE(sees("gpu.peer_mapping=none"));
  EXPECT_FALSE(sees("switch.acs=EC"));
}

TEST(MachineState, WhatBlocksMakesGdrImpossibleAndSaysWhere) {
  EXPECT_EQ(why({"switch.acs=EC"}),
            "ACS at the port of pcisw0 above nic0 blocks requests to gpu0 (EC set, RR clear)");
  EXPECT_EQ(why({"switch.acs=EC", "switch.acs_egress=none"}), "");
  EXPECT_EQ(
      why({"switch.acs=TB", "cpu.iommu=translate", "nic.ats=on"}),
      "ACS at the port of pcisw0 above nic0 blocks translated addresses (TB set, nic.ats=on)");
  EXPECT_EQ(why({"switch.acs=TB"}), "");  // nothing is translated
  EXPECT_EQ(
      why({kRedirect, "cpu.acs=none"}),
      "ACS at the port of pcisw0 above nic0 redirects, but the port of cpu0 above pcisw0 does "
      "not turn the packets round (UF clear)");
  EXPECT_EQ(why({kRedirect}), "");
  EXPECT_EQ(why({kRedirect, "cpu.p2p=writes-only"}),
            "the root complex of cpu0 forwards peer writes only (cpu.p2p=writes-only)");
}

TEST(MachineState, PassthroughDoesNotClearAcs) {
  const MachineUnderTest m(kHgx, {kRedirect, "cpu.iommu=passthrough"});
  EXPECT_GT(weight(m, nic_writes(m, "nic0", "gpu0"), "pcisw0@0 -> cpu0@0"), 1);
}

TEST(MachineState, ATranslatingIommuTakesRequestsOverTheRootComplexUnlessDmaBufGivesBusAddresses) {
  const MachineUnderTest m(kHgx, {"cpu.iommu=translate"});
  EXPECT_GT(weight(m, nic_writes(m, "nic0", "gpu0"), "pcisw0@0 -> cpu0@0"), 1);
  // Completions are routed by id: straight back.
  EXPECT_NEAR(weight(m, nic_reads(m, "nic0", "gpu0"), "pcisw0@0 -> cpu0@0"), 28.0 / 512, 1e-12);
  const MachineUnderTest buf(kHgx, {"cpu.iommu=translate", "gpu.peer_mapping=dma-buf"});
  EXPECT_EQ(weight(buf, nic_writes(buf, "nic0", "gpu0"), "pcisw0@0 -> cpu0@0"), 0);
  const MachineUnderTest both(
      kHgx, {"cpu.iommu=translate", "gpu.peer_mapping=dma-buf", "switch.acs=CR+UF"});
  EXPECT_GT(weight(both, nic_writes(both, "nic0", "gpu0"), "pcisw0@0 -> cpu0@0"), 1);
}

TEST(MachineState, IommuPageWalksBoundDmaBeyondTheIotlbsReach) {
  // 64 entries x 4 KiB = 256 KiB of a working set of 64 MiB: 99.6 % of pages are walked, one at a
  // time, 330 ns each: 4096 B / 330 ns / 0.996 = 12.46 GB/s.
  const MachineUnderTest m(kHgx, {"cpu.iommu=translate", "cpu.iommu_page=4096 B"});
  const double misses = 1 - 256.0 / (64 * 1024);
  EXPECT_NEAR(rate(m, nic_writes(m, "nic0", "cpu0")), 4096 / 330.0 / misses, 1e-3);
  // 2 MiB pages reach 128 MiB: no walks. ATS and passthrough: none either.
  for (const char* setting : {"cpu.iommu_page=2097152 B", "nic.ats=on", "cpu.iommu=passthrough"}) {
    const MachineUnderTest free(kHgx, {"cpu.iommu=translate", "cpu.iommu_page=4096 B", setting});
    EXPECT_NEAR(rate(free, nic_writes(free, "nic0", "cpu0")), kGen5x16 * 256 / 280, 1e-3);
  }
}

TEST(MachineState, StrictWritesAreCommittedOneAfterAnother) {
  // Declared from published ends (openucx/ucx pull request 10955): a check of the mechanism, no
  // evidence. Emerald Rapids: 64 B / 4 ns = 16 GB/s to a GPU through the root complex; to memory
  // and behind a switch there is no such limit.
  const Settings emr{"cpu.strict_peer_write_time=4 ns", "nic.relaxed_ordering=off"};
  const MachineUnderTest m(kHgx, emr);
  EXPECT_NEAR(rate(m, nic_writes(m, "nic2", "gpu0")), 16.0, 1e-9);
  EXPECT_NEAR(rate(m, nic_writes(m, "nic2", "cpu0")), kGen5x16 * 256 / 280, 1e-3);
  EXPECT_NEAR(rate(m, nic_writes(m, "nic0", "gpu0")), kGen5x16 * 256 / 280, 1e-3);
  const MachineUnderTest relaxed(kHgx, {"cpu.strict_peer_write_time=4 ns"});
  EXPECT_NEAR(rate(relaxed, nic_writes(relaxed, "nic2", "gpu0")), 45.83, 0.01);
  // EPYC: 64 B / 3.413 ns = 150 Gb/s.
  const MachineUnderTest amd(kHgx, {"cpu.strict_write_time=3.413 ns", "nic.relaxed_ordering=off"});
  EXPECT_NEAR(rate(amd, nic_writes(amd, "nic0", "cpu0")) * 8, 150, 0.1);
}

TEST(MachineState, PeerTrafficIsBoundByWhatRootPortsHold) {
  // Sapphire Rapids: 18,368 B of writes, each held until the other socket has it:
  // 2 x (200 + 60) ns.
  const MachineUnderTest m(kHgx);
  EXPECT_NEAR(rate(m, nic_writes(m, "nic0", "gpu7")), 18368.0 / 520, 1e-6);
  // 51,200 B of reads, held until the data are back: two root complexes, the link between them and
  // the switch above the GPU, both ways, and the GPU's 700 ns.
  EXPECT_NEAR(rate(m, nic_reads(m, "nic0", "gpu7")), 51200.0 / (2 * (200 + 60 + 200 + 115) + 700),
              1e-6);
  EXPECT_NEAR(rate(m, nic_writes(m, "nic0", "cpu1")), kGen5x16 * 256 / 280, 1e-3);
  const MachineUnderTest rome(kHgx, {"cpu.p2p_port_reads=6720 B"});
  EXPECT_NEAR(rate(rome, nic_reads(rome, "nic0", "gpu2")), 6720.0 / (2 * (200 + 115) + 700), 1e-6);
  EXPECT_NEAR(rate(rome, nic_writes(rome, "nic0", "gpu2")), kGen5x16 * 64 / 88, 1e-3);
}

TEST(MachineState, ASocketsRootPortsShareWhatItHolds) {
  const MachineUnderTest m(kHgx, {"cpu.p2p_writes=16384 B"});
  const Contraction one = contract(m.machine(), nic_writes(m, "nic0", "gpu2"));
  const Contraction two = contract(m.machine(), nic_writes(m, "nic2", "gpu0"));
  std::vector<ServerId> shared;
  for (const ServerUse& a : one.uses) {
    for (const ServerUse& b : two.uses) {
      if (a.server == b.server) shared.push_back(a.server);
    }
  }
  // The links are crossed the other way round by each; what both take of one server besides:
  const auto pool = std::find_if(shared.begin(), shared.end(), [&m](ServerId s) {
    return m.machine().unit(s) == ServerUnit::kBytesInFlight;
  });
  ASSERT_NE(pool, shared.end());
  EXPECT_EQ(m.machine().cause(*pool).kind, "peer writes that a root complex holds");
  EXPECT_EQ(m.machine().capacity(*pool), 16'384);
  EXPECT_NEAR(rate(m, nic_writes(m, "nic0", "gpu2")), 16384.0 / 400, 1e-6);
}

/// The servers of a kind that a walk takes.
std::vector<ServerId> servers(const MachineUnderTest& m, const Walk& walk, ServerUnit unit) {
  std::vector<ServerId> out;
  for (const ServerUse& use : contract(m.machine(), walk).uses) {
    if (m.machine().unit(use.server) == unit) out.push_back(use.server);
  }
  return out;
}

TEST(MachineState, BothPortsOfANicAreBelowOneRootPort) {
  const MachineUnderTest m("../tests/models/two_ports_four_sockets.yaml", {}, 1);
  const auto held = [&m](const char* nic) {
    return servers(m, nic_writes(m, nic, "gpu0"), ServerUnit::kBytesInFlight);
  };
  ASSERT_EQ(held("nic0").size(), 1U);
  EXPECT_EQ(held("nic0"), held("nic1"));
}

// From cpu0 to cpu3 there are two ways of two links each. Data come back over the one by which the
// request went, and what holds them is on it.
TEST(MachineState, CompletionsComeBackAsTheRequestWent) {
  const MachineUnderTest m("../tests/models/two_ports_four_sockets.yaml", {"cpu.p2p_reads=11 KiB"},
                           1);
  const std::optional<DmaRoutes> routes = dma_routes(m.machine(), m.id("nic0"), m.id("gpu0"), true);
  ASSERT_TRUE(routes.has_value());
  Route back(routes->request.rbegin(), routes->request.rend());
  for (Hop& hop : back) hop.forward = !hop.forward;
  EXPECT_EQ(routes->completion, back);
  // The NIC's root port and three root complexes on the way.
  EXPECT_EQ(servers(m, nic_reads(m, "nic0", "gpu0"), ServerUnit::kBytesInFlight).size(), 4U);
}

TEST(MachineState, APathHasTheSmallestMpsOfItsDevices) {
  const MachineUnderTest m(
      kHgx, {"nic.mps=512 B", "switch.mps=512 B", "cpu.mps=512 B", "gpu0.mps=128 B"});
  EXPECT_NEAR(rate(m, nic_writes(m, "nic0", "cpu0")), kGen5x16 * 512 / 536, 1e-3);
  EXPECT_NEAR(rate(m, nic_writes(m, "nic0", "gpu0")), kGen5x16 * 128 / 152, 1e-3);
  EXPECT_NEAR(rate(m, nic_writes(m, "nic0", "gpu1")), kGen5x16 * 256 / 280, 1e-3);
}

TEST(MachineState, ALinkRunsAsItHasTrained) {
  const MachineUnderTest m(kHgx, {"nic0.trained_gen=4", "nic0.trained_width=8"});
  EXPECT_NEAR(rate(m, nic_writes(m, "nic0", "gpu0")), kGen5x16 / 4 * 256 / 280, 1e-3);
  EXPECT_NEAR(rate(m, nic_writes(m, "nic1", "gpu0")), kGen5x16 * 256 / 280, 1e-3);
  EXPECT_EQ(m.machine().model(m.id("nic0")).port->width, 8);
  // A link cannot train beyond what it can.
  const MachineUnderTest beyond(kHgx, {"nic.pcie_gen=4", "nic.trained_gen=5"});
  EXPECT_EQ(beyond.machine().model(beyond.id("nic0")).port->generation, 4);
}

TEST(MachineState, PeerMappingsHaveTheirNeeds) {
  EXPECT_EQ(why({"nic.peer_memory_api=off"}),
            "nvidia-peermem needs an RDMA stack with ib_register_peer_memory_client, such as "
            "MLNX_OFED, for nic0 (nic.peer_memory_api=off)");
  EXPECT_EQ(why({"gpu.peer_mapping=dma-buf", "nic.peer_memory_api=off"}), "");
  EXPECT_EQ(why({"gpu.peer_mapping=dma-buf", "gpu.kernel_modules=proprietary"}),
            "DMA-BUF needs the open GPU kernel modules on gpu0 (gpu.kernel_modules=proprietary)");
  EXPECT_NE(why({"gpu.peer_mapping=dma-buf", "nic.dma_buf=off"}), "");
  EXPECT_EQ(why({"gpu.peer_mapping=nv_peer_mem"}), "");
  EXPECT_NE(why({"gpu.peer_mapping=nv_peer_mem", "cpu.iommu=translate"}), "");
}

TEST(MachineState, NcclsFifosOf16ChannelsDoNotFitIntoABar1Of256MiB) {
  // One GPU and one NIC a node, so each of 16 channels comes in and goes out
  // at it: 16 x (4 + 4.6875 + 0.5) in + 16 x (4 + 4.6875) out = 286 MiB.
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  Params params(catalog);
  const Fabric fabric(parse_topology_yaml("topology: t4\n"
                                          "nodes: 2\n"
                                          "node:\n"
                                          "  devices:\n"
                                          "    cpu0: {kind: cpu}\n"
                                          "    gpu0: {kind: gpu, upstream: cpu0, "
                                          "set: {bar1_size: 268435456 B}}\n"
                                          "    nic0: {kind: nic, upstream: cpu0, network: net}\n"
                                          "network: {net: {kind: one-switch}}\n",
                                          "t4.yaml", catalog),
                      2);
  params.set_by_user("nccl.channels", "", {16, Origin::kAssumed, "test"});
  DeviceParams devices(fabric, params, parts);
  const Machine machine(devices);
  const DeviceId gpu = *fabric.find(0, "gpu0");
  const PinnedMemory pinned = nccl_pinned(devices, make_schedule(devices, MemoryPath::kGdr)).at(0);
  EXPECT_EQ(pinned.bytes.count(), 16 * (4'194'304 + 4'915'200 + 524'288 + 4'194'304 + 4'915'200));
  const GdrPossible possible = gdr_possible(machine, gpu, *fabric.find(0, "nic0"), pinned);
  EXPECT_FALSE(possible.possible);
  EXPECT_EQ(possible.why,
            "gpu0: its BAR1 of 256 MiB is too small: 2 MiB in use, and NICs need 16 channels in x "
            "(4.0 MiB Simple + 4.7 LL128 + 0.5 LL) + 16 channels out x (4.0 + 4.7) = 286.0 MiB");
  // 14 channels need 250.25 MiB and fit.
  params.set_by_user("nccl.channels", "", {14, Origin::kAssumed, "test"});
  EXPECT_EQ(gdr_possible(machine, gpu, *fabric.find(0, "nic0"),
                         nccl_pinned(devices, make_schedule(devices, MemoryPath::kGdr)).at(0))
                .why,
            "");
}

TEST(MachineState, ARunWithoutGdrFallsBackToHostStagedAndSaysSo) {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.topology = shipped("topologies/hgx-h100-1nic.yaml");
  scenario.sizes = {Bytes::mib(1)};
  scenario.memory_paths = {"gdr"};
  PredictOptions options;
  options.threads = 1;
  options.set = {parse_setting("gpu.peer_mapping=none")};
  const RunResult result = predict(scenario, options, make_catalog());
  ASSERT_EQ(result.rows.size(), 1u);
  EXPECT_EQ(result.rows[0].memory_path, "host-staged");
  EXPECT_EQ(result.notes.at(0),
            "gdr falls back to host-staged: nothing maps gpu2's memory for NICs "
            "(gpu.peer_mapping=none): load nvidia-peermem or use DMA-BUF");
}

TEST(MachineState, IsShownWhereItIsNotTheDefault) {
  const MachineUnderTest m(kHgx, {kRedirect, "gpu0.bar1_size=268435456 B", "nic.trained_gen=4"});
  using Words = std::vector<std::string>;
  EXPECT_EQ(unusual_state(m.machine().devices(), m.id("pcisw0")), Words{"acs=SV+RR+CR+UF"});
  EXPECT_EQ(unusual_state(m.machine().devices(), m.id("gpu0")), Words{"bar1_size=256 MiB"});
  EXPECT_EQ(unusual_state(m.machine().devices(), m.id("nic0")), Words{"trained_gen=4"});
  EXPECT_EQ(unusual_state(m.machine().devices(), m.id("cpu0")), Words{});
}

TEST(MachineState, AcsIsWrittenAsWordsOrAsTheRegistersMask) {
  const ParamCatalog catalog = make_catalog();
  const ParamSpec& spec = catalog.require("switch.acs");
  EXPECT_EQ(ParamCatalog::parse(spec, "0x1d"), 0x1d);
  EXPECT_EQ(ParamCatalog::format(spec, 0x1d), "SV+RR+CR+UF");
  EXPECT_EQ(ParamCatalog::parse(spec, "SV+RR+CR+UF"), 0x1d);
  EXPECT_EQ(ParamCatalog::parse(spec, "none"), 0);
  EXPECT_EQ(ParamCatalog::format(spec, 0), "none");
  for (const char* bad : {"", "RR+", "+RR", "rr", "RR CR", "0x", "0x80", "0xfffffffff", "RR+0x1"}) {
    EXPECT_THROW(ParamCatalog::parse(spec, bad), InputError) << bad;
  }
}

}  // namespace
}  // namespace weft::test::models_machine_state
