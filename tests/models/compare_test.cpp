#include "models/collective/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/copies/matrices.hpp"
#include "models/perftest/perftest.hpp"
#include "sim/input/topology_file.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_compare {
namespace {

constexpr const char* kHead =
    "transport,memory_path,hosts,ranks,nics_per_host,nic_gbps,nic_latency_us,algo,proto,channels,"
    "op,bytes,us\n";

Comparison compared(const std::string& rows, const std::string& topology,
                    const std::vector<std::string>& settings = {},
                    const std::map<std::string, std::string>& env = {}) {
  PredictOptions options;
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  options.env = env;
  const ParamCatalog catalog = make_catalog();
  return compare(parse_measured(kHead + rows, "m.csv"),
                 read_topology(shipped("topologies/" + topology), catalog), options, catalog);
}

/// The predicted time of one row, or why there is none.
std::string outcome(const std::string& row, const std::string& topology,
                    const std::vector<std::string>& settings = {},
                    const std::map<std::string, std::string>& env = {}) {
  const Comparison c = compared(row, topology, settings, env);
  const ComparedRow& r = c.rows.at(0);
  return r.predicted ? format_number(r.predicted->time_us) : r.not_predicted;
}

double time_of(const std::string& row, const std::string& topology,
               const std::vector<std::string>& settings = {}) {
  return parse_number(outcome(row, topology, settings)).value();
}

TEST(Compare, KeepsTheRowsBeforeAStopAndTellsHowFarItIs) {
  const MeasuredTable table = parse_measured(std::string(kHead) +
                                                 "nvlink,,1,2,0,0,0,Tree,LL,3,allreduce,4096,10\n"
                                                 "nvlink,,1,2,0,0,0,Tree,LL,3,allreduce,65536,20\n"
                                                 "nvlink,,1,2,0,0,0,Ring,LL,3,allreduce,4096,10\n"
                                                 "net,gdr,2,2,0,0,0,auto,auto,0,write_bw,4096,10\n"
                                                 "net,gdr,2,2,0,0,0,auto,auto,0,write_bw,8192,10\n"
                                                 "nvlink,,1,64,0,0,0,Ring,LL,3,allreduce,4096,10\n",
                                             "m.csv");
  const ParamCatalog catalog = make_catalog();
  const TopologySpec machine = read_topology(shipped("topologies/hgx-h100-8nic.yaml"), catalog);
  const auto outcomes = [&](std::size_t stop_after) {
    Stop stop;
    PredictOptions options;
    options.threads = 1;
    options.stop = &stop;
    std::vector<std::size_t> told;
    double last_share = 0;
    options.on_progress = [&](const RunProgress& p) {
      told.push_back(p.rows_done);
      EXPECT_EQ(p.rows, 6);
      last_share = p.work_done / p.work;
      if (p.rows_done >= stop_after) stop.request();
    };
    const Comparison c = compare(table, machine, options, catalog);
    EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
    EXPECT_EQ(last_share == 1, !c.is_stopped());
    std::string out;
    for (const ComparedRow& row : c.rows) {
      out += row.predicted ? 'p' : row.is_stopped ? 's' : 'n';
      EXPECT_EQ(row.is_stopped, row.not_predicted == "stopped before it was run");
    }
    return out + ' ' + lines_stopped(c);
  };
  EXPECT_EQ(outcomes(100), "pppppn ");
  EXPECT_EQ(outcomes(1), "psssss 3-7");
  EXPECT_EQ(outcomes(3), "pppsss 5-7");
  EXPECT_EQ(outcomes(4), "ppppss 6-7");
  EXPECT_EQ(outcomes(0), "ssssss 2-7");
}

TEST(Compare, RunsARowAsItWasMeasured) {
  const Comparison c = compared(
      "nvlink,,1,2,0,0,0,Tree,LL,3,allreduce,4096,10\n"
      "nvlink,,1,2,0,0,0,Tree,LL,3,allreduce,65536,20\n",
      "h200-vm.yaml");
  Scenario scenario;
  scenario.topology = shipped("topologies/h200-vm.yaml");
  scenario.nodes = 1;
  scenario.op = "allreduce";
  scenario.sizes = {Bytes{4096}, Bytes{65536}};
  scenario.memory_paths = {"gdr"};
  PredictOptions options;
  options.set = {parse_setting("gpu.count=2")};
  options.env = {{"NCCL_ALGO", "Tree"},
                 {"NCCL_PROTO", "LL"},
                 {"NCCL_MIN_NCHANNELS", "3"},
                 {"NCCL_MAX_NCHANNELS", "3"}};
  const RunResult alone = predict(scenario, options, make_catalog());
  for (std::size_t i = 0; i < 2; ++i) {
    const ResultRow& row = c.rows[i].predicted.value();
    EXPECT_EQ(row.time_us, alone.rows[i].time_us);
    EXPECT_EQ(row.ranks, 2U);
    EXPECT_EQ(row.algo + row.proto, "TreeLL");
  }
  EXPECT_DOUBLE_EQ(c.rows[0].error(), alone.rows[0].time_us / 10 - 1);
}

// As `weft perftest` and `weft copies` say it, of the machine as the row and the options have it.
TEST(Compare, RowsOfPerftestAndNvbandwidthAreTheirModels) {
  const ParamCatalog catalog = make_catalog();
  const auto compared_row = [&](const std::string& cells, const std::string& topology) {
    const std::string head = "transport,memory_path,hosts,ranks,op,bytes,us,qps,row,column,set\n";
    return compare(parse_measured(head + cells, "m.csv"),
                   read_topology(shipped("topologies/" + topology), catalog), {}, catalog)
        .rows.at(0);
  };
  const MachineUnderTest m("hgx-h100-8nic.yaml", {"wire.mtu=1 KiB"}, 2);
  PerftestOptions two;
  two.qps = 2;
  const PerftestRow gpu = perftest(m.machine(), two, Bytes::kib(64));
  EXPECT_DOUBLE_EQ(
      compared_row("net,gdr,2,2,write_bw,65536,1,2,,,wire.mtu=1 KiB\n", "hgx-h100-8nic.yaml")
          .predicted->time_us,
      65536 / gpu.average.as_bytes_per_s() * 1e6);
  two.qps = 1;
  two.op = RdmaOp::kRead;
  two.memory = PerftestMemory::kHost;
  EXPECT_DOUBLE_EQ(
      compared_row("net,host,2,2,read_lat,65536,1,,,,wire.mtu=1 KiB\n", "hgx-h100-8nic.yaml")
          .predicted->time_us,
      perftest(m.machine(), two, Bytes::kib(64)).latency.as_us());

  const MachineUnderTest vm("h200-vm.yaml", {"cpu.dma_buffers=large"});
  const std::vector<CopyMatrix> matrices = copy_matrices(vm.machine(), {}, Bytes::mib(64));
  for (const CopyMatrix& matrix : matrices) {
    const bool between = matrix.cells.size() > 1;
    const CopyRow& cell = matrix.cells.at(between ? 3 : 0).at(1).value();
    const double rate = (matrix.is_back ? *cell.back : cell.forth).as_bytes_per_s();
    const ComparedRow row =
        compared_row("copy,,1,1," + matrix.test + ",67108864,1,," + (between ? "3" : "0") + ",1,\n",
                     "h200-vm.yaml");
    EXPECT_DOUBLE_EQ(row.predicted.value().time_us, (64 << 20) / rate * 1e6) << matrix.test;
  }
}

TEST(Compare, RowsOfPerftestAndNvbandwidthFollowNoRelease) {
  using Releases = std::set<std::string>;
  const ParamCatalog catalog = make_catalog();
  const TopologySpec machine = read_topology(shipped("topologies/hgx-h100-8nic.yaml"), catalog);
  const auto releases = [&](const std::string& rows, std::optional<NcclVersion> asked = {}) {
    const std::string head = "transport,memory_path,hosts,ranks,op,bytes,us,nccl\n";
    PredictOptions options;
    options.nccl_version = asked;
    return releases_of(compare(parse_measured(head + rows, "m.csv"), machine, options, catalog),
                       options);
  };
  const std::string tools =
      "net,host,2,2,write_bw,65536,9,\ncopy,,1,1,host_to_device_memcpy_ce,67108864,9,\n";
  EXPECT_EQ(releases(tools), Releases{});
  EXPECT_EQ(releases(tools, NcclVersion{2, 21, 5}), Releases{});
  const std::string of_nccl = "nvlink,,1,8,allreduce,1024,9,";
  EXPECT_EQ(releases(tools + of_nccl + '\n'), Releases{NcclVersion{}.text()});
  EXPECT_EQ(releases(tools + of_nccl + "2.21\n"), Releases{"2.21.0"});
  EXPECT_EQ(releases(of_nccl + '\n', NcclVersion{2, 21, 5}), Releases{"2.21.5"});
}

TEST(Compare, WhatTheToolsHaveAndWeftHasNotIsNamed) {
  const auto why = [](const std::string& cells) {
    const std::string head = "transport,memory_path,hosts,ranks,op,bytes,us,row,column,id\n";
    const ParamCatalog catalog = make_catalog();
    return compare(parse_measured(head + cells, "m.csv"),
                   read_topology(shipped("topologies/h200-vm.yaml"), catalog), {}, catalog)
        .rows.at(0)
        .not_predicted;
  };
  EXPECT_EQ(why("net,host,2,2,other,8,1,,,Atomic CMP_AND_SWAP BW Test\n"),
            "weft has no model of this test: Atomic CMP_AND_SWAP BW Test");
  EXPECT_EQ(why("copy,,1,1,host_to_device_memcpy_ce,64,1,0,7,\n"),
            "the machine has no cell in row 0, column 7");
}

// Rows of one configuration: each says its own.
TEST(Compare, EachRowSaysWhyItIsNotRun) {
  const std::string head = "transport,hosts,ranks,op,bytes,us,id\n";
  const ParamCatalog catalog = make_catalog();
  MeasuredTable table = parse_measured(head +
                                           "copy,1,1,other,8,1,device_local_copy\n"
                                           "copy,1,1,other,8,1,host_device_latency_sm\n"
                                           "nvlink,1,2,broadcast,8,1,\n"
                                           "nvlink,1,2,broadcast,8,1,\n",
                                       "m.csv");
  table.rows[3].unlike = "run otherwise";
  const std::vector<ComparedRow> rows =
      compare(table, read_topology(shipped("topologies/h200-vm.yaml"), catalog), {}, catalog).rows;
  EXPECT_EQ(rows[0].not_predicted, "weft has no model of this test: device_local_copy");
  EXPECT_EQ(rows[1].not_predicted, "weft has no model of this test: host_device_latency_sm");
  EXPECT_TRUE(rows[2].predicted);
  EXPECT_EQ(rows[3].not_predicted, "run otherwise");
}

// A log's release is what happened to be there, that of a table what its maker asks for.
TEST(Compare, AReleaseOfALogWithoutAModelIsNoted) {
  const ParamCatalog catalog = make_catalog();
  const auto of = [&](const std::string& release, bool is_log) {
    MeasuredTable table = parse_measured(
        "transport,ranks,op,bytes,us,nccl\nnvlink,2,broadcast,1024,1," + release + "\n", "m.csv");
    table.is_log = is_log;
    return compare(table, read_topology(shipped("topologies/h200-vm.yaml"), catalog), {}, catalog);
  };
  const Comparison old = of("2.17.1", true);
  EXPECT_TRUE(old.rows[0].predicted);
  EXPECT_THAT(old.notes, testing::Contains("m.csv: NCCL 2.17.1 is not modelled: decisions are "
                                           "those of --nccl-version, or 2.28.9"));
  EXPECT_TRUE(of("2.21.5", true).rows[0].predicted);
  EXPECT_EQ(of("2.21.5", true).rows[0].measured.nccl, "2.21.5");
  EXPECT_THAT(of("2.17.1", false).rows[0].not_predicted, testing::HasSubstr("is not modelled"));
}

TEST(Compare, RowsOfOneSizeShareAPrediction) {
  const Comparison c = compared(
      "nvlink,,1,4,0,0,0,auto,auto,0,broadcast,1024,1\n"
      "nvlink,,1,4,0,0,0,auto,auto,0,broadcast,1024,2\n",
      "h200-vm.yaml", {}, {{"NCCL_NVLS_ENABLE", "0"}});
  EXPECT_EQ(c.rows[0].predicted->time_us, c.rows[1].predicted->time_us);
  EXPECT_DOUBLE_EQ(c.rows[0].error(), 2 * c.rows[1].error() + 1);
}

TEST(Compare, ARowMayNameItsMachine) {
  const std::string head = "transport,ranks,op,bytes,us,machine,set,env,nccl\n";
  const std::string size = "nvlink,2,allreduce,1048576,10,";
  const std::string file = shipped("tests/data/m.csv");
  const auto of = [&](const std::string& rows, const std::string& machine = "") {
    const MeasuredTable table = parse_measured(head + rows, file);
    const ParamCatalog catalog = make_catalog();
    return machine.empty() ? compare(table, {}, catalog)
                           : compare(table, read_topology(machine, catalog), {}, catalog);
  };
  const Comparison c = of(
      size + "../../topologies/h200-vm.yaml,,,\n" + size + "../../topologies/hgx-a100.yaml,,,\n" +
      size + "../../topologies/h200-vm.yaml,gpu.nvlink_latency=5 us; wire.mtu=1024 B,,\n" + size +
      "../../topologies/h200-vm.yaml,,NCCL_ALGO=Tree; NCCL_PROTO=LL,\n" + size +
      "../../topologies/h200-vm.yaml,,,2.1\n");
  const double h200 = c.rows[0].predicted.value().time_us;
  EXPECT_GT(c.rows[1].predicted.value().time_us, h200);
  EXPECT_GT(c.rows[2].predicted.value().time_us, h200);
  EXPECT_EQ(c.rows[3].predicted.value().algo + c.rows[3].predicted.value().proto, "TreeLL");
  EXPECT_THAT(c.rows[4].not_predicted, testing::HasSubstr("m.csv:6: NCCL version '2.1'"));
  EXPECT_THAT(c.provenance.topology, testing::HasSubstr("hgx-a100.yaml"));
  // --machine is for all.
  const Comparison one =
      of(size + "../../topologies/hgx-a100.yaml,,,\n", shipped("topologies/h200-vm.yaml"));
  EXPECT_EQ(one.rows[0].predicted.value().time_us, h200);
  EXPECT_THAT(one.notes, testing::Contains("set by the user in place of what rows say: machine"));
  EXPECT_THROW(of(size + ",,,\n"), InputError);
}

TEST(Compare, NicsAreThoseOfTheColumns) {
  const std::string kMachine = "h200-vm-pix.2x2.xml";
  const auto row = [](const std::string& nics, const std::string& gbps, const std::string& us) {
    return "net,gdr,2,4," + nics + "," + gbps + "," + us + ",Ring,Simple,0,allreduce,268435456,1\n";
  };
  const double two = time_of(row("2", "400", "0"), kMachine);
  EXPECT_EQ(time_of(row("0", "0", "0"), kMachine), two) << "0: as the machine has it";
  EXPECT_NEAR(time_of(row("2", "200", "0"), kMachine) / two, 2, 0.05);
  EXPECT_NEAR(time_of(row("1", "400", "0"), kMachine) / two, 2, 0.05);
  EXPECT_EQ(time_of(row("2", "200", "0"), kMachine, {"nic.rate=400 Gb/s", "wire.rate=400 Gb/s"}),
            two)
      << "--set beats a row";
}

TEST(Compare, NcclDecidesForTheRateThatItIsTold) {
  const auto channels = [](const std::string& gbps, const std::vector<std::string>& settings) {
    const std::string row = "net,gdr,2,4,2," + gbps + ",0,Ring,Simple,0,allreduce,268435456,1\n";
    return compared(row, "h200-vm-pix.2x2.xml", settings).rows[0].predicted->channels;
  };
  const std::uint32_t at_400 = channels("400", {});
  EXPECT_LT(channels("200", {}), at_400);
  EXPECT_EQ(channels("200", {"nic.reported_rate=400 Gb/s"}), at_400);
}

TEST(Compare, ALatencyIsThatFromNicToNic) {
  const auto row = [](const std::string& us) {
    return "net,gdr,2,4,2,400," + us + ",Ring,LL,1,allreduce,1024,1\n";
  };
  // Two cables of 5 m and their FEC take 2 x 115 ns; the switch the rest.
  EXPECT_EQ(time_of(row("2"), "h200-vm-pix.2x2.xml"),
            time_of(row("0"), "h200-vm-pix.2x2.xml", {"netswitch.latency=1.77 us"}));
  EXPECT_EQ(outcome(row("0.2"), "h200-vm-pix.2x2.xml"),
            "nic_latency_us: the cables alone take 0.23 us");
  EXPECT_EQ(outcome("net,gdr,2,16,8,400,2,Ring,LL,1,allreduce,1024,1\n", "hgx-h100-8nic.yaml",
                    {"network.kind=leaf-spine", "network.ports=64"}),
            "nic_latency_us: the machine's network has several switches on a route");
}

TEST(Compare, AGpuAloneUsesTheNicBesideIt) {
  const std::string row = "net,gdr,2,2,1,400,0,Ring,Simple,2,allreduce,67108864,1\n";
  const Comparison c = compared(row, "h200-vm-pix.2x2.xml");
  const std::vector<CauseShare>& causes = c.rows[0].predicted->limited_by;
  const auto wire = std::find_if(causes.begin(), causes.end(), [](const CauseShare& cause) {
    return cause.cause.starts_with("wire, NIC");
  });
  ASSERT_NE(wire, causes.end());
  EXPECT_EQ(wire->where.substr(0, 4), "emu0");
}

TEST(Compare, SaysWhyARowHasNoPrediction) {
  const auto row = [](const std::string& over, const std::string& gpus) {
    return over + "," + gpus + ",0,0,0,Ring,auto,0,allreduce,1024,1\n";
  };
  EXPECT_EQ(outcome(row("shm,", "2,4"), "h200-vm.yaml"), "hosts share no memory");
  EXPECT_EQ(outcome(row("net,gdr", "2,4"), "../tests/cli/no_nics.yaml"), "the machine has no NIC");
  EXPECT_EQ(outcome(row("net,gdr", "1,2"), "h200-vm-pix.2x2.xml"),
            "weft uses no NIC inside a host");
  EXPECT_EQ(outcome(row("nvlink,", "2,4"), "h200-vm-pix.2x2.xml"),
            "NVLink between hosts: write the GPUs that it joins as one host");
  EXPECT_EQ(outcome(row("nvlink,", "1,2"), "genoa-2p.yaml"), "the machine has no NVLink");
  EXPECT_EQ(outcome(row("nvlink,", "1,8"), "h200-vm.yaml"), "a node has 4 GPUs");
  EXPECT_EQ(outcome("net,gdr,2,4,3,0,0,Ring,auto,0,allreduce,1024,1\n", "h200-vm-pix.2x2.xml"),
            "a node has 2 NICs");
  EXPECT_EQ(outcome("net,gdr,2,16,8,0,0,PAT,auto,0,allgather,524288,1\n", "hgx-h100-8nic.yaml", {},
                    {{"NCCL_PAT_ENABLE", "1"}}),
            "NCCL_ALGO and nccl.algo leave PAT for allgather, which weft does not execute here; "
            "algorithms that can run it: Ring");
  EXPECT_EQ(outcome(row("net,gdr", "2,16"), "hgx-h100-8nic.yaml", {"gpu.peer_mapping=none"}),
            "on this machine it is host-staged");
  EXPECT_EQ(outcome(row("net,gdr", "2,16"), "hgx-h100-8nic.yaml", {"nodes=3"}),
            "with these options it is 24 GPUs on 3 nodes");
  EXPECT_EQ(outcome("net,gdr,2,4,2,1e6,0,Ring,auto,0,allreduce,1024,1\n", "h200-vm-pix.2x2.xml"),
            "m.csv: set: nic.rate: 1e+06 Gb/s is out of range; allowed: 0.001 GB/s to 1000 GB/s");
}

TEST(Compare, ASizeThatIsTooMuchTakesNoOtherWithIt) {
  const std::string row = "net,gdr,16,128,8,400,0,Ring,Simple,0,allreduce,";
  const Comparison c = compared(row + "1048576,1\n" + row + "4398046511104,1\n" + row + "65536,1\n",
                                "hgx-h100-8nic.yaml");
  EXPECT_TRUE(c.rows[0].predicted);
  EXPECT_EQ(c.rows[0].not_predicted, "");
  EXPECT_THAT(c.rows[1].not_predicted, ::testing::HasSubstr("transfers for allreduce of 4 TiB"));
  EXPECT_TRUE(c.rows[2].predicted);
}

TEST(Compare, SaysWhatTheOptionsDecideInPlaceOfRows) {
  const std::string kMachine = "h200-vm-pix.2x2.xml";
  const std::string row = "net,gdr,2,4,1,400,0,Ring,Simple,2,allreduce,1048576,1\n";
  const auto notes = [&](const std::vector<std::string>& settings,
                         const std::map<std::string, std::string>& env) {
    return compared(row, kMachine, settings, env).notes;
  };
  const std::string kSays = "set by the user in place of what rows say: ";
  EXPECT_THAT(notes({"nic.count=2", "nic.rate=100 Gb/s"}, {{"NCCL_MAX_NCHANNELS", "4"}}),
              ::testing::Contains(kSays + "NCCL_MAX_NCHANNELS, nic.count, nic.rate"));
  EXPECT_THAT(notes({"nic.count=1", "wire.mtu=1 KiB"}, {{"NCCL_ALGO", "Ring"}}),
              ::testing::Each(::testing::Not(::testing::HasSubstr(kSays))));
  EXPECT_EQ(time_of(row, kMachine, {"nic.count=2"}),
            time_of("net,gdr,2,4,2,400,0,Ring,Simple,2,allreduce,1048576,1\n", kMachine));
}

TEST(Compare, RefusesOptionsThatNoRowCouldTake) {
  const std::string row = "nvlink,,1,4,0,0,0,auto,auto,0,allreduce,1024,1\n";
  EXPECT_THROW(compared(row, "nowhere.yaml"), InputError);
  EXPECT_THROW(compared(row, "h200-vm.yaml", {"wire.mut=1 KiB"}), InputError);
  EXPECT_THROW(compared(row, "h200-vm.yaml", {}, {{"NCCL_PROTO", "Fast"}}), InputError);
}

TEST(Intervals, OfARunAreThoseOfRowsThatWereMeasuredAsItRan) {
  const ParamCatalog catalog = make_catalog();
  const TopologySpec machine = read_topology(shipped("topologies/h200-vm.yaml"), catalog);
  const ErrorIntervals intervals{{"transport", "algo", "launch"},
                                 {{{"nvlink", "Ring", "graph"}, 3, 10, 10, {0.1, 1}},
                                  {{"shm", "Ring", "single"}, 3, 10, 10, {0.3, 1}},
                                  {{"shm", "auto", "graph"}, 3, 10, 10, {0.2, 1}}}};
  const auto low = [&](const std::map<std::string, std::string>& env, const std::string& launch) {
    Scenario scenario;
    scenario.nodes = 1;
    scenario.op = "allreduce";
    scenario.sizes = {Bytes{65536}};
    scenario.memory_paths = {"gdr"};
    scenario.env = env;
    PredictOptions options;
    options.set = {parse_setting("nccl.algo=Ring"), parse_setting("nccl.launch=" + launch)};
    RunResult result = predict(scenario, machine, options, catalog);
    add_intervals(result, machine, intervals);
    return result.rows.at(0).interval ? result.rows[0].interval->low : 0;
  };
  EXPECT_EQ(low({}, "graph"), 0.1);
  EXPECT_EQ(low({{"NCCL_P2P_DISABLE", "1"}}, "graph"), 0.2) << "none of rows with Ring forced";
  EXPECT_EQ(low({{"NCCL_P2P_DISABLE", "1"}}, "single"), 0.3);
  EXPECT_EQ(low({{"NCCL_P2P_DISABLE", "0x1"}}, "single"), 0.3);
  EXPECT_EQ(low({{"NCCL_P2P_LEVEL", "LOC"}}, "single"), 0.3);
  EXPECT_EQ(low({{"NCCL_P2P_LEVEL", "NVL"}}, "graph"), 0.1);
  EXPECT_EQ(low({}, "single"), 0) << "no such class";
}

TEST(Intervals, OfARunAreThoseOfItsRelease) {
  const ParamCatalog catalog = make_catalog();
  const TopologySpec machine = read_topology(shipped("topologies/h200-vm.yaml"), catalog);
  const auto low = [&](const std::string& release, const ErrorIntervals& intervals) {
    Scenario scenario;
    scenario.nodes = 1;
    scenario.op = "allreduce";
    scenario.sizes = {Bytes{65536}};
    scenario.memory_paths = {"gdr"};
    scenario.nccl_version = release;
    PredictOptions options;
    options.set = {parse_setting("nccl.algo=Ring")};
    RunResult result = predict(scenario, machine, options, catalog);
    add_intervals(result, machine, intervals);
    return result.rows.at(0).interval ? result.rows[0].interval->low : 0;
  };
  const ErrorIntervals named{{"nccl", "algo"},
                             {{{"", "Ring"}, 2, 10, 10, {0.1, 1}},
                              {{"2.21", "Ring"}, 2, 10, 10, {0.2, 1}},
                              {{"2.21.5", "Ring"}, 2, 10, 10, {0.3, 1}},
                              {{"2.27.3", "auto"}, 2, 10, 10, {0.4, 1}}}};
  EXPECT_EQ(low("", named), 0.1) << "rows that name none are predicted as of the default, too";
  EXPECT_EQ(low("2.28.9", named), 0.1) << "which is this one";
  EXPECT_EQ(low("2.21.0", named), 0.2);
  EXPECT_EQ(low("2.21.5", named), 0.3);
  EXPECT_EQ(low("2.27.3", named), 0.4) << "none of rows with Ring forced";
  EXPECT_EQ(low("2.23.4", named), 0) << "no such class";
  ErrorIntervals both = named;
  both.classes.push_back({{"2.28.9", "Ring"}, 2, 10, 10, {0.5, 1}});
  EXPECT_EQ(low("", both), 0.5);
}

TEST(Compare, IsTheSameOnAnyNumberOfThreads) {
  const MeasuredTable table = read_measured(shipped("tests/data/h200/mixed.csv"));
  const auto text = [&](unsigned threads) {
    PredictOptions options;
    options.threads = threads;
    const ParamCatalog catalog = make_catalog();
    const Comparison c = compare(table, read_topology(shipped("topologies/h200-vm.yaml"), catalog),
                                 options, catalog);
    return comparison_json(c, {{"op"}, false}).dump();
  };
  EXPECT_EQ(text(1), text(7));
}

}  // namespace
}  // namespace weft::test::models_compare
