// Emulated NICs (models/nic/emulated.md): two hosts of one H200, ring all-reduce of one channel,
// so two messages behind each other, and LL128, so one slice each; and GPUs that meet in the memory
// of their host.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "tests/models/prediction.hpp"

namespace weft::test::models_emulated_nic {
namespace {

double time_us(const char* path, std::vector<std::string> settings,
               Fidelity fidelity = Fidelity::kFluid) {
  for (const char* held : {"gpu.count=1", "nic.count=1", "nccl.proto=LL128", "nccl.channels=1",
                           "nccl.launch=single"}) {
    settings.emplace_back(held);
  }
  return predict_one(path, Bytes::kib(64), settings, "topologies/h200-vm.yaml", 2, "allreduce",
                     fidelity)
      .time_us;
}

double later(const char* path, const std::string& key, const char* before, const char* after) {
  return time_us(path, {key + "=" + after}) - time_us(path, {key + "=" + before});
}

constexpr double kMessages = 2;

TEST(EmulatedNic, AMessageIsCopiedTwiceByGpusAndSeenToEnd) {
  // A proxy sends and receives: one is in the other's way, at the second message once more.
  const double called = later("gdr", "nic.copy_call", "3 us", "13 us");
  EXPECT_GE(called, kMessages * 2 * 10 - 0.01);
  EXPECT_LE(called, (kMessages * 2 + 1) * 10 + 0.01);
  // Both ends look for a copy's event; the GPU sees the flags of the second copy itself, but the
  // receiver's look for the first message is in the way of the second.
  const double looked = later("gdr", "nic.copy_check", "1 us", "11 us");
  EXPECT_GE(looked, (kMessages + 0.5) * 10);
  EXPECT_LE(looked, kMessages * 2 * 10 + 0.01);
  // The second copy's flags are seen by the GPU itself. Less than a microsecond of it hides behind
  // a proxy that is busy when the first copy ends.
  EXPECT_NEAR(later("gdr", "nic.copy_delay", "1 us", "11 us"), kMessages * 10, 1);
}

TEST(EmulatedNic, AMessageIsCopiedTwiceByThreadsAndLookedThrough) {
  const double bytes = 32'768.0 * 16 / 15;  // half of the data, with flags
  const double nanoseconds_more = bytes * (1 / 5.0 - 1 / 10.0);
  EXPECT_NEAR(later("host-staged", "cpu.memcpy_rate", "10 GB/s", "5 GB/s"),
              kMessages * 2.25 * nanoseconds_more / 1e3, 0.01);
  // Seen, and slots given back by the same proxies, which may be in the way.
  const double handled = later("host-staged", "nic.message_time", "1 us", "11 us");
  EXPECT_GE(handled, kMessages * 10 - 0.01);
  EXPECT_LE(handled, kMessages * 3 * 10 + 2);
  EXPECT_NEAR(later("host-staged", "nic.copy_call", "3 us", "13 us"), 0, 0.01);
}

// Past the copies of 64 KiB the wire does not show; at 10 Gb/s 16 MiB take what they take on it,
// but for what LL and LL128 have in their FIFO, whose flags are copied ahead of the pace.
TEST(EmulatedNic, TheWirePacesLargeMessages) {
  EXPECT_NEAR(later("gdr", "netswitch.latency", "1 us", "2 us"), 0, 0.01);
  for (const char* proto : {"Simple", "LL128", "LL"}) {
    for (const char* path : {"gdr", "host-staged"}) {
      std::vector<std::string> slow{"nic.rate=10 Gb/s",
                                    "wire.rate=10 Gb/s",
                                    "gpu.count=1",
                                    "nic.count=1",
                                    "nccl.channels=1",
                                    "nccl.launch=single",
                                    "nccl.proto=" + std::string(proto)};
      const double us =
          predict_one(path, Bytes::mib(16), slow, "topologies/h200-vm.yaml", 2).time_us;
      const bool ll = proto == std::string("LL");
      const bool ll128 = proto == std::string("LL128");
      const double flags = ll ? 2 : ll128 ? 16.0 / 15 : 1;
      const double fifo = ll ? 8 * 32'768.0 : ll128 ? 8 * 576'000.0 : 0;
      EXPECT_GE(us, flags * ((16 << 20) - fifo) / 1250) << proto << " " << path;
    }
  }
}

// All hosts are pretended on one machine: what its memory takes is of all of them.
TEST(EmulatedNic, PretendedHostsShareOneMemory) {
  const auto of = [](const char* dram) {
    return predict_one("gdr", Bytes::mib(64),
                       {"gpu.count=1", "nic.count=1", "nccl.proto=Simple", "nccl.algo=Ring",
                        "nic.rate=8000 Gb/s", "wire.rate=8000 Gb/s", dram},
                       "topologies/h200-vm.yaml", 4);
  };
  const ResultRow slow = of("cpu.dram_channels=1");
  // Each of four GPUs sends and gets 1.5 times the data; one channel of DDR5-5600 at 0.8 has 35.84
  // GB/s.
  EXPECT_GE(slow.time_us, 4 * 2 * 1.5 * (64 << 20) / 35.84e3);
  EXPECT_EQ(slow.limited_by.front().cause.substr(0, 16), "DRAM of a socket");
  EXPECT_LT(of("cpu.dram_channels=8").time_us, slow.time_us / 2);
}

// A proxy tests the oldest request of a connection only: so of two channels each has its own turn,
// but messages of one go through copies and tests one after another. 8 slots are not the limit.
TEST(EmulatedNic, MessagesOfAConnectionAreTestedOneAfterAnother) {
  const auto delayed = [](const char* delay) {
    return predict_one("gdr", Bytes::mib(4),
                       {"gpu.count=1", "nic.count=1", "nccl.proto=LL128", "nccl.algo=Ring",
                        "nccl.channels=1", "nccl.launch=single", "nic.rate=8000 Gb/s",
                        "wire.rate=8000 Gb/s", std::string("nic.copy_delay=") + delay},
                       "topologies/h200-vm.yaml", 2)
        .time_us;
  };
  // 2 MiB each way twice, with flags, in slots of 576,000 B: at least so many messages wait for it.
  const double messages = 2 * (2 << 20) * 16.0 / 15 / 576'000;
  EXPECT_GE(delayed("101 us") - delayed("1 us"), 100 * messages);
}

TEST(EmulatedNic, PacketsRefuseIt) {
  for (const char* path : {"gdr", "host-staged"}) {
    try {
      time_us(path, {}, Fidelity::kPacket);
      ADD_FAILURE() << path;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find("does not model emulated NICs"), std::string::npos)
          << e.what();
    }
  }
}

// Every parameter of NICs either counts somewhere or is named: those that are named change nothing,
// and what carries data on a real NIC is.
TEST(EmulatedNic, ParametersThatItDoesNotHaveAreNamed) {
  const ParamCatalog catalog = make_catalog();
  const auto run = [&](const std::string& setting) {
    Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
    scenario.topology = shipped("topologies/h200-vm.yaml");
    scenario.nodes = 2;
    scenario.sizes = {Bytes::kib(64)};
    PredictOptions options;
    options.threads = 1;
    options.set = {parse_setting("gpu.count=1"), parse_setting("nccl.channels=1")};
    if (!setting.empty()) options.set.push_back(parse_setting(setting));
    return predict(scenario, options, catalog);
  };
  const std::vector<ResultRow> before = run("").rows;
  std::set<std::string> named;
  for (const ParamSpec& spec : catalog.specs()) {
    if (!spec.key.starts_with("nic.") || spec.key.starts_with("nic.flap") ||
        spec.key == "nic.cable_loss" || spec.key == "nic.emulation") {
      continue;  // losses are refused
    }
    const double other = spec.fallback == spec.min ? spec.max : spec.min;
    const std::string key(spec.key);
    const RunResult changed = run(key + "=" + ParamCatalog::format(spec, other));
    const bool is_named =
        std::any_of(changed.notes.begin(), changed.notes.end(), [&](const std::string& note) {
          return note == "no effect on emulated NICs (nic.emulation): " + key;
        });
    if (!is_named) continue;
    named.insert(key);
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(changed.rows.at(i).trajectory, before[i].trajectory) << key;
    }
  }
  for (const char* key : {"nic.latency", "nic.mrrs", "nic.read_tags", "nic.wqe_time",
                          "nic.completion_latency", "nic.doorbell_latency", "nic.mps"}) {
    EXPECT_TRUE(named.contains(key)) << key;
  }
  EXPECT_FALSE(named.contains("nic.rate"));
}

// LL takes a round trip of PCIe for each trip of 8 KiB, half of it data; 4 MiB of one channel to
// one other GPU, where only the receiver loads from the host: 1.335 us a trip.
TEST(SharedMemory, LlTakesARoundTripATrip) {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.topology = shipped("topologies/h200-vm.yaml");
  scenario.nodes = 1;
  scenario.op = "broadcast";
  scenario.sizes = {Bytes::mib(4)};
  scenario.memory_paths = {"gdr"};
  scenario.env = {{"NCCL_P2P_DISABLE", "1"}, {"NCCL_NVLS_ENABLE", "0"}, {"NCCL_PROTO", "LL"}};
  PredictOptions options;
  options.threads = 1;
  for (const char* text : {"gpu.count=2", "nccl.channels=1", "nccl.launch=graph"}) {
    options.set.push_back(parse_setting(text));
  }
  const auto run = [&] { return predict(scenario, options, make_catalog()).rows.at(0); };
  const ResultRow ll = run();
  EXPECT_EQ(ll.limited_by.front().cause, "SM loads of host memory in flight");
  EXPECT_NEAR(ll.time_us, 1024 * 1.335, 0.03 * 1024 * 1.335);
  // LL128 loads each line twice: two round trips for 38,400 B of data.
  scenario.env["NCCL_PROTO"] = "LL128";
  EXPECT_NEAR(run().time_us, 4'194'304 / 38'400.0 * 2 * 1.335, 0.08 * 291);
  // Fewer threads take as long for less.
  scenario.env["NCCL_PROTO"] = "LL";
  scenario.env["NCCL_NTHREADS"] = "128";
  const ResultRow few = run();
  EXPECT_NEAR(few.time_us, 4 * 1024 * 1.335, 0.03 * 4 * 1024 * 1.335);
  scenario.env.erase("NCCL_NTHREADS");
  // Without either way to meet there is only the network, and no NIC within a node.
  scenario.env["NCCL_SHM_DISABLE"] = "1";
  EXPECT_THROW(run(), InputError);
}

}  // namespace
}  // namespace weft::test::models_emulated_nic
