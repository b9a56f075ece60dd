#include "models/host/virtual_root.hpp"

#include <gtest/gtest.h>

#include "models/perftest/perftest.hpp"
#include "models/transport/fluid_transport.hpp"
#include "sim/base/error.hpp"
#include "sim/input/topology_yaml.hpp"
#include "sim/run/runner.hpp"
#include "tests/pcie/host_under_test.hpp"

// A GPU and a NIC that a hypervisor passes through, each below a port of its own. Without a limit
// of the root complex's own (cpu.p2p_port_*=0) a read of the GPU is held from the NIC's virtual
// root on: 2 x 200 ns of root complex and 700 ns of the GPU.
namespace weft::test::models_virtual_root {
namespace {

constexpr const char* kTopology = "../tests/models/virtual_root.yaml";
constexpr double kReadHeld = 2 * 200 + 700;  // ns

std::vector<std::string> with(std::vector<std::string> settings) {
  settings.insert(settings.end(), {"cpu.p2p_port_reads=0 B", "cpu.p2p_port_writes=0 B"});
  return settings;
}

TEST(VirtualRoot, BoundsPeerReadsByWhatItWaitsFor) {
  HostUnderTest h(kTopology, with({"virtual-root.peer_reads=11264 B"}));
  const DmaStream reads = h.nic("nic0", "gpu0", true);
  EXPECT_NEAR(h.fluid(reads), 11264 / kReadHeld, 1e-9);
  const DmaTrafficResult r = h.run({reads});
  EXPECT_NEAR(r.streams[0].rate.as_gigabytes_per_s(), 11264 / kReadHeld, 0.03 * 10.24);
  EXPECT_EQ(r.limited_by(), "peer reads that a virtual root waits for, vroot1@0");
}

TEST(VirtualRoot, BoundsPeerWritesByWhatItHolds) {
  HostUnderTest h(kTopology,
                  with({"virtual-root.peer_writes=4096 B", "virtual-root.latency=200 ns"}));
  const DmaStream writes = h.nic("nic0", "gpu0", false);
  EXPECT_NEAR(h.fluid(writes), 4096.0 / (2 * 200), 1e-9);
  EXPECT_NEAR(h.gigabytes_per_s(writes), 4096.0 / (2 * 200), 0.03 * 10.24);
}

TEST(VirtualRoot, LeavesHostMemoryAlone) {
  HostUnderTest free(kTopology);
  HostUnderTest h(kTopology, {"virtual-root.peer_reads=4 KiB", "virtual-root.peer_writes=4 KiB"});
  for (const bool is_read : {false, true}) {
    EXPECT_EQ(h.fluid(h.nic("nic0", "cpu0", is_read)),
              free.fluid(free.nic("nic0", "cpu0", is_read)));
    EXPECT_EQ(h.gigabytes_per_s(h.nic("nic0", "cpu0", is_read)),
              free.gigabytes_per_s(free.nic("nic0", "cpu0", is_read)));
  }
}

TEST(VirtualRoot, LetsDoorbellsThroughOneAfterAnother) {
  const MachineUnderTest m(kTopology, {"virtual-root.doorbell_time=500 ns"});
  PerftestOptions options;
  options.iterations = 400;
  options.qps = 2;
  options.memory = PerftestMemory::kHost;
  EXPECT_NEAR(perftest(m.machine(), options, Bytes{64}).messages_per_s, 2e6, 0.02 * 2e6);
  options.post_list = 4;
  EXPECT_NEAR(perftest(m.machine(), options, Bytes{64}).messages_per_s, 8e6, 0.03 * 8e6);
}

// One write of 8 B a microsecond, whichever queue pair it is posted on, in the fluid too.
TEST(VirtualRoot, LetsDoorbellsOfPlansThroughOneAfterAnother) {
  const MachineUnderTest m(kTopology, {"virtual-root.doorbell_time=1 us"});
  Plan plan;
  plan.flags = {{0}};
  plan.actors = {{Actor::Kind::kHostThread, m.id("cpu0")}};
  Program poster;
  for (std::uint32_t i = 0; i < 2; ++i) {
    QueuePair q;
    q.nic = m.id("nic0");
    q.peer_nic = m.id("nic0", 1);
    q.memory = m.id("cpu0");
    q.peer_memory = m.id("cpu0", 1);
    q.writes = true;
    q.send_cq = 0;
    q.signal_every = 1;
    plan.queue_pairs.push_back(q);
    poster.repeat(50, [&] { poster.post(Verb::kWrite, i, Bytes{8}); });
  }
  poster.wait(0, 100);
  plan.programs = {poster};
  CauseTable causes;
  EventQueue events;
  FluidTransport transport(m.machine(), events, causes);
  const RunOutcome ran = run_plan(plan, transport, events, causes);
  EXPECT_NEAR(ran.time.as_us(), 99 + 3, 2);
  EXPECT_EQ(shares_of(ran, causes).front().cause, "doorbells through a virtual root");
}

TEST(VirtualRoot, IsAModelOfASwitchOnly) {
  const auto read = [](const std::string& line) {
    const std::string text =
        "topology: t\nnode:\n  devices:\n    cpu0: {kind: cpu}\n    gpu0: {kind: gpu, upstream: "
        "cpu0}\n    x: " +
        line + "\n";
    try {
      const ParamCatalog catalog = make_catalog();
      const PartLibrary parts(catalog);
      Params params(catalog);
      const Fabric fabric(parse_topology_yaml(text, "t.yaml", catalog), 1);
      DeviceParams devices(fabric, params, parts);
      const Machine machine(devices);
      return std::string("taken");
    } catch (const InputError& e) {
      return std::string(e.what());
    }
  };
  EXPECT_EQ(read("{kind: switch, model: virtual-root, upstream: cpu0}"), "taken");
  EXPECT_EQ(read("{kind: gpu, model: virtual-root, upstream: cpu0}"),
            "t.yaml:6:5: x: no model 'virtual-root' of a gpu; known: none");
  EXPECT_EQ(read("{kind: switch, model: virtual-rot, upstream: cpu0}"),
            "t.yaml:6:23: node.devices.x.model: unknown model 'virtual-rot' of a device");
}

}  // namespace
}  // namespace weft::test::models_virtual_root
