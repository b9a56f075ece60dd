// What perftest and nvbandwidth print, or write as JSON, as rows of a measured table.
#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/base/random.hpp"
#include "sim/io/file.hpp"
#include "sim/result/measured.hpp"
#include "tests/seeds.hpp"

namespace weft::test::result_tool_logs {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Made from the program's own format strings; the values are invented.
constexpr const char* kPerftestJson =
    R"({"test_info":{"test":"RDMA_Write_BW_Test","Dual_port":"OFF","Device":"mlx5_0",)"
    R"("Number_of_qps":2,"Transport_type":"IB","Connection_type":"RC","Using_SRQ":"OFF",)"
    R"("TX_depth":64,"CQ_Moderation":100,"Mtu":4096,"Link_type":"IB","cuda_device":0},)"
    R"("results":{"MsgSize":65536,"n_iterations":5000,"BW_peak":392.10,"BW_average":391.87,)"
    R"("MsgRate":0.747432}})";

constexpr const char* kNvbandwidthJson =
    R"j({"nvbandwidth":{"version":"v0.8","testcases":[)j"
    R"j({"name":"host_to_device_memcpy_ce","status":"Passed","bandwidth_description":)j"
    R"j("memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)","bandwidth_matrix":[["55.36","50"]]},)j"
    R"j({"name":"device_to_device_memcpy_read_sm","status":"Waived"},)j"
    R"j({"name":"host_device_latency_sm","status":"Passed","bandwidth_description":)j"
    R"j("memory latency SM CPU(row) <-> GPU(column) (ns)","bandwidth_matrix":[["722.9","N/A"]]}]}})j";

constexpr const char* kNvbandwidthText =
    "nvbandwidth Version: v0.8\n"
    "Built from Git version: v0.8\n"
    "\n"
    "Device 0: NVIDIA H100 80GB HBM3 (00000000:18:00)\n"
    "\n"
    "Running host_to_device_memcpy_ce.\n"
    "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
    "           0         1\n"
    " 0     55.36     55.37\n"
    "\n"
    "SUM host_to_device_memcpy_ce 110.73\n"
    "\n"
    "Running device_to_device_memcpy_read_ce.\n"
    "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
    "           0         1\n"
    " 0       N/A    390.60\n"
    " 1    390.40       N/A\n"
    "\n"
    "SUM device_to_device_memcpy_read_ce 781.00\n"
    "\n"
    "NOTE: The reported results may not reflect the full capabilities of the platform.\n";

std::string perftest_text(const std::string& name) {
  return read_text_file(std::string(WEFT_SOURCE_DIR) + "/tests/data/perftest/" + name);
}

std::string refusal(const std::string& text, const StatedColumns& stated = {}) {
  try {
    parse_measured(text, "log", stated);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(PerftestLog, PrintsRatesThatAreRead) {
  const MeasuredTable table = parse_measured(perftest_text("ib_write_bw.txt"), "log");
  ASSERT_EQ(table.rows.size(), 4U);
  const MeasuredRow& small = table.rows[0];
  EXPECT_EQ(small.op, "write_bw");
  EXPECT_EQ(small.transport + " " + small.memory_path, "net host");
  EXPECT_EQ(small.hosts * 10 + small.ranks, 22);
  EXPECT_EQ(small.bytes, 2);
  EXPECT_NEAR(small.us, 1 / 0.001357, 1e-2) << "0.00 MB/s say nothing";
  EXPECT_EQ(small.qps, 1);
  EXPECT_EQ(small.tx_depth, 20);
  EXPECT_EQ(small.cq_mod, 20);
  EXPECT_EQ(small.set, "wire.mtu=4096 B; wire.kind=roce");
  EXPECT_NEAR(table.rows[3].us, 1048576 / (33.68 * 1048576) * 1e6, 1e-2) << "perftest's MB is MiB";
}

TEST(PerftestLog, PrintsLatenciesThatAreRead) {
  const MeasuredTable table = parse_measured(perftest_text("ib_read_lat.txt"), "log");
  ASSERT_EQ(table.rows.size(), 3U) << "-nan of another column does no harm";
  EXPECT_EQ(table.rows[0].op, "read_lat");
  EXPECT_EQ(table.rows[0].us, 93.83) << "the typical one";
  EXPECT_EQ(table.rows[2].us, 416861.93);
  EXPECT_EQ(table.rows[0].set, "wire.mtu=4096 B; wire.kind=roce; nic.max_rd_atomic=128");
}

// With -D there is no other.
TEST(PerftestLog, OfATimedRunTheAverageIsTheLatency) {
  const std::string text = perftest_text("ib_read_lat.txt");
  const std::size_t begin = text.find(" #bytes");
  const std::string timed = text.substr(0, begin) +
                            " #bytes        #iterations       t_avg[usec]    tps average\n"
                            " 2             1000000           1.62           617283.95\n";
  const MeasuredRow row = parse_measured(timed, "log").rows.at(0);
  EXPECT_EQ(row.op, "read_lat");
  EXPECT_EQ(row.us, 1.62);
  const std::string head =
      std::string(kPerftestJson).substr(0, std::string(kPerftestJson).find("\"results\""));
  const std::string json =
      changed(head, "Write_BW", "Write_Lat") + R"("results":{"MsgSize":2,"t_avg":1.62}})";
  EXPECT_EQ(parse_measured(json, "log").rows.at(0).us, 1.62);
}

TEST(PerftestLog, WritesJsonWithoutAUnitThatIsFound) {
  const MeasuredRow row = parse_measured(kPerftestJson, "log").rows.at(0);
  EXPECT_EQ(row.op + " " + row.memory_path, "write_bw gdr");
  EXPECT_EQ(row.qps, 2);
  EXPECT_EQ(row.tx_depth, 64);
  EXPECT_EQ(row.set, "wire.mtu=4096 B; wire.kind=infiniband");
  EXPECT_NEAR(row.us, 65536 * 8 / 391.87e3, 1e-4);
  // 391.87 Gb/s are 46714.5 MiB/s.
  const std::string in_mib =
      changed(kPerftestJson, "\"BW_average\":391.87", "\"BW_average\":46714.5");
  EXPECT_NEAR(parse_measured(in_mib, "log").rows.at(0).us, row.us, 1e-4);
  EXPECT_THAT(refusal(changed(kPerftestJson, "\"BW_average\":391.87", "\"BW_average\":300")),
              HasSubstr("log: BW_average 300 is neither Gb/s nor MiB/s by MsgRate 0.747432"));
}

// As perftest wrote until 2023.
TEST(PerftestLog, ReadsItsJsonFromBeforeItWasJson) {
  const std::string text =
      "{\ntest_info: {\ntest: Send_Latency_Test,\nDual_port: OFF,\nDevice: \"rxe0\",\n"
      "Number_of_qps: 1,\nTransport_type: IB,\nConnection_type: RC,\nUsing_SRQ: OFF,\n"
      "TX_depth : 1,\nMtu: 1024,\nLink_type: Ethernet,\n},\nresults: {\nMsgSize: 128,\n"
      "t_typical: 2.42,\npercentile_99.9: 4.03,\n},\n}\n";
  const MeasuredRow row = parse_measured(text, "log").rows.at(0);
  EXPECT_EQ(row.op, "send_lat");
  EXPECT_EQ(row.bytes, 128);
  EXPECT_EQ(row.us, 2.42);
  EXPECT_EQ(row.tx_depth, 1);
  EXPECT_EQ(row.set, "wire.mtu=1024 B; wire.kind=roce");
  for (std::size_t size = text.find("test_info:") + 10; size < text.find("t_typical"); ++size) {
    EXPECT_THAT(refusal(text.substr(0, size)), StartsWith("log")) << size;
  }
  EXPECT_THAT(refusal(changed(text, "MsgSize: 128", "MsgSize: big")), StartsWith("log: "));
}

TEST(PerftestLog, AnOnlyRowThatIsCutOffIsSaid) {
  const std::string text = perftest_text("ib_write_bw.txt");
  const std::size_t row = text.find('\n', text.find("#bytes")) + 1;
  const std::string cut = text.substr(0, row) + " 2          2000             0.00";
  EXPECT_THAT(refusal(cut), ::testing::MatchesRegex("log: has no rows; log:[0-9]+: 3 columns, not "
                                                    "5: the log is cut off there; left out"));
}

TEST(PerftestLog, TellsOfRelaxedOrderingAndListsOfRequests) {
  const std::string text = perftest_text("ib_write_bw.txt");
  EXPECT_EQ(parse_measured(text, "log").rows.at(0).post_list, 1);
  const std::string other = changed(changed(text, "PCIe relax order: ON", "PCIe relax order: OFF"),
                                    " TX depth", " Post List       : 4\n TX depth");
  const MeasuredRow row = parse_measured(other, "log").rows.at(0);
  EXPECT_EQ(row.post_list, 4);
  EXPECT_EQ(row.set, "nic.relaxed_ordering=off; wire.mtu=4096 B; wire.kind=roce");
}

TEST(PerftestLog, SaysInWhichMemoryWhereItCan) {
  const std::string text = perftest_text("ib_write_bw.txt");
  EXPECT_EQ(parse_measured("cuMemAlloc() of a 16777216 bytes GPU buffer\n" + text, "log")
                .rows.at(0)
                .memory_path,
            "gdr");
  EXPECT_EQ(parse_measured(text, "log", {{"memory_path", "gdr"}}).rows.at(0).memory_path, "gdr");
  EXPECT_THAT(refusal(kPerftestJson, {{"memory_path", "host"}}),
              HasSubstr("memory_path: gdr in the file, host by --as"));
  EXPECT_EQ(parse_measured(text, "log", {{"set", "nic.pcie_gen=4"}}).rows.at(0).set,
            "wire.mtu=4096 B; wire.kind=roce; nic.pcie_gen=4");
}

// Later releases, and others' GPUs; behind the head, too.
TEST(PerftestLog, KnowsMemoryOfGpusByEachRelease) {
  const std::string text = perftest_text("ib_write_bw.txt");
  const std::string cuda =
      "allocated GPU buffer of a 131072 address at 0x7f for type CUDA_MEM_DEVICE\n";
  for (const std::string& log :
       {cuda + text, "allocated 131072 bytes of GPU buffer at 0x7f\n" + text,
        changed(text, " Dual-port", cuda + " Dual-port")}) {
    EXPECT_EQ(parse_measured(log, "log").rows.at(0).memory_path, "gdr") << log;
  }
}

TEST(PerftestLog, ReadsFactsOfACopiedTerminal) {
  std::string text = perftest_text("ib_write_bw.txt");
  std::replace(text.begin(), text.end(), '\t', ' ');
  const MeasuredRow tabs = parse_measured(perftest_text("ib_write_bw.txt"), "log").rows.at(0);
  const MeasuredRow blanks = parse_measured(text, "log").rows.at(0);
  EXPECT_EQ(blanks.op, tabs.op);
  EXPECT_EQ(blanks.qps, tabs.qps);
  EXPECT_EQ(blanks.tx_depth, tabs.tx_depth);
  EXPECT_EQ(blanks.set, tabs.set);
  const std::string untitled = changed(text, "RDMA_Write BW Test", "");
  EXPECT_EQ(parse_measured(untitled, "log", {{"op", "write_bw"}}).rows.at(0).tx_depth,
            tabs.tx_depth);
}

TEST(PerftestLog, ALastRowThatIsCutOffIsLeftOutAndNoted) {
  const std::string text = perftest_text("ib_write_bw.txt");
  const std::size_t last = text.find(" 1048576 ");
  for (const std::string end : {"", "\n", "\nslurmstepd: error: *** JOB 7 CANCELLED ***\n"}) {
    const MeasuredTable table = parse_measured(text.substr(0, last + 20) + end, "log");
    EXPECT_EQ(table.rows.size(), 3U);
    EXPECT_THAT(table.notes, ::testing::ElementsAre(
                                 "log:26: 2 columns, not 5: the log is cut off there; left out"));
  }
  EXPECT_THAT(refusal(text.substr(0, last + 20) + "\n" + text), HasSubstr("log:26: 2 columns"));
  EXPECT_TRUE(parse_measured(text, "log").notes.empty());
}

/// What the other end prints: its remote address is its peer's local one, and it says nothing of
/// its send queue.
std::string server_of(std::string text) {
  text = changed(text, " TX depth        : 20\n", "");
  text = changed(changed(text, " local address", " other address"), " remote address",
                 " local address");
  return changed(text, " other address", " remote address");
}

std::string rows_and_notes(const std::string& text) {
  const MeasuredTable table = parse_measured(text, "log");
  return std::to_string(table.rows.size()) + " of depth " +
         std::to_string(table.rows.at(0).tx_depth) + ", notes " +
         std::to_string(table.notes.size());
}

TEST(PerftestLog, ClientAndServerOfOneRunCountOnce) {
  const std::string client = perftest_text("ib_write_bw.txt");
  const std::string server = server_of(client);
  EXPECT_EQ(rows_and_notes(client), "4 of depth 20, notes 0");
  EXPECT_EQ(rows_and_notes(client + server), "4 of depth 20, notes 1");
  EXPECT_EQ(rows_and_notes("* Waiting for client to connect... *\n" + server + client),
            "4 of depth 20, notes 1")
      << "the client knows more";
  EXPECT_EQ(rows_and_notes(client + changed(server, "PSN 0xe87450", "PSN 0xe87451")),
            "8 of depth 20, notes 0")
      << "another run";
  EXPECT_EQ(rows_and_notes(client + client), "8 of depth 20, notes 0");
  EXPECT_EQ(rows_and_notes(client + server + client), "8 of depth 20, notes 1");
}

TEST(PerftestLog, OfEndsThatPrintIntoOneAnotherHalfTheRowsCount) {
  const std::string client = perftest_text("ib_write_bw.txt");
  const std::string server = server_of(client);
  std::string mixed;  // line by line
  for (std::size_t at = 0; at < client.size();) {
    const std::size_t end = client.find('\n', at) + 1;
    const std::string line = client.substr(at, end - at);
    mixed += line;
    if (line.find(" local") != line.npos)
      mixed += changed(line, "QPN 0x0011 PSN 0xe87450", "QPN 0x0011 PSN 0x688b76");
    else if (line.find(" remote") != line.npos)
      mixed += changed(line, "PSN 0x688b76", "PSN 0xe87450");
    else
      mixed += line;
    at = end;
  }
  EXPECT_EQ(rows_and_notes(mixed), "4 of depth 20, notes 1");
  // The server's head is whole; its table stands with the client's, or below it.
  const std::size_t table = server.find(" #bytes");
  EXPECT_EQ(rows_and_notes(server.substr(0, table) + client + server.substr(table)),
            "4 of depth 20, notes 1");
  EXPECT_EQ(rows_and_notes(server.substr(0, table) + client), "4 of depth 20, notes 0");
}

// --run_infinitely prints one size again and again, the server nothing, but the head.
TEST(PerftestLog, RowsOfOneSizeAreNotOfTwoEnds) {
  const std::string text = perftest_text("ib_write_bw.txt");
  const std::size_t rows = text.find(" 2          20");
  const std::string row =
      " 65536      20               35.70              31.70  \t\t   0.000507\n";
  const std::string server = server_of(text.substr(0, rows));
  std::string client = text.substr(0, rows) + row + row;
  EXPECT_EQ(rows_and_notes(server + client), "2 of depth 20, notes 0");
  EXPECT_EQ(rows_and_notes(server.substr(0, server.find(" #bytes")) + client),
            "2 of depth 20, notes 0");
  client += row + row;
  EXPECT_EQ(rows_and_notes(server + client), "4 of depth 20, notes 0");
  const std::size_t table = server.find(" #bytes");
  EXPECT_EQ(rows_and_notes(server.substr(0, table) + client + server.substr(table)),
            "4 of depth 20, notes 0")
      << "whose rows these are nothing says";
}

TEST(PerftestLog, TheEndOfMoreSizesCounts) {
  const std::string client = perftest_text("ib_write_bw.txt");
  const std::string cut = client.substr(0, client.find(" 65536")) + "Completion with error\n";
  const std::string server = server_of(client);
  for (const std::string& text : {cut + server, server + cut}) {
    const MeasuredTable table = parse_measured(text, "log");
    ASSERT_EQ(table.rows.size(), 4U);
    EXPECT_EQ(table.rows.back().bytes, 1048576);
    EXPECT_EQ(table.notes.size(), 1U);
  }
  const std::string small = client.substr(0, client.find(" 65536"));
  const std::string large = changed(server,
                                    " 2          20               0.01               0.00   "
                                    "\t\t   0.001357\n",
                                    "");
  EXPECT_EQ(parse_measured(small + large, "log").rows.size(), 4U) << "each has a size of its own";
}

TEST(PerftestLog, EndsOfOtherMemoryBothCount) {
  const std::string client = perftest_text("ib_write_bw.txt");
  const std::string server =
      changed(server_of(client), " Mtu ", " allocated GPU buffer address\n Mtu ");
  const MeasuredTable table = parse_measured(client + server, "log");
  EXPECT_EQ(table.rows.size(), 8U);
  EXPECT_THAT(table.notes, ::testing::ElementsAre(
                               HasSubstr("memory is of another kind (gdr, not host): neither")));
}

TEST(PerftestLog, AddressesThatTellNothingPairNothing) {
  const std::string text = perftest_text("ib_write_bw.txt");
  const auto rows = [&](const std::string& local, const std::string& remote) {
    const std::string client =
        changed(changed(text, "QPN 0x0011 PSN 0xe87450", local), "QPN 0x0011 PSN 0x688b76", remote);
    return rows_and_notes(client + server_of(client));
  };
  const std::string both = "8 of depth 20, notes 0";
  EXPECT_EQ(rows("QPN 0x0011 PSN 0xe87450", "QPN 0x0011 PSN 0x688b76"), "4 of depth 20, notes 1");
  EXPECT_EQ(rows("QPN 0x0000 PSN 0x000000", "QPN 0x0000 PSN 0x000000"), both);
  EXPECT_EQ(rows("QPN 0x0011 PSN 0x000000", "QPN 0x0012 PSN 0x000000"), both);
  EXPECT_EQ(rows("QPN 0x0011 PSN 0xe87450", "QPN 0x0011 PSN 0xe87450"), both);
  EXPECT_EQ(rows("QPN 0xXXXX PSN 0xXXXXXX", "QPN 0xXXXX PSN 0xXXXXXX"), both);
  EXPECT_EQ(rows("QPN 0x0011", "QPN 0x0012"), both);
}

TEST(PerftestLog, ATableWithoutAHeadIsTheCommandsAbove) {
  const std::string bw =
      " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   "
      "MsgRate[Mpps]\n 65536      5000             1000.00            1000.00  "
      "           0.016000\n";
  const std::string lat =
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n"
      " 2       1000          1.10           2.05         1.11               1.12\n";
  const MeasuredTable table = parse_measured(
      "$ ib_write_bw 10.0.0.1\n" + bw + "```\nand\n```\n" + "n7:~# ib_write_lat 10.0.0.1\n" + lat,
      "log");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].op + " " + table.rows[0].memory_path, "write_bw host");
  EXPECT_EQ(table.rows[1].op, "write_lat");
  EXPECT_EQ(table.rows[1].us, 1.11);
  EXPECT_THAT(table.notes,
              ::testing::Contains(HasSubstr("log:8: op write_lat, by 'ib_write_lat' above")));
  const auto op = [&](const std::string& command, const StatedColumns& stated = {}) {
    const MeasuredRow row = parse_measured(command + "\n" + bw, "log", stated).rows.at(0);
    return row.op + " " + row.memory_path;
  };
  EXPECT_EQ(op("sudo ./ib_send_bw -b --use_cuda=0 -d mlx5_0 b"), "send_bw_bidirectional gdr");
  EXPECT_EQ(op("ib_write_bw b", {{"op", "read_bw"}}), "read_bw host");
  for (const char* const none :
       {"we ran ib_write_bw twice", "ib_write_bw -c UC b", "ib_write_bw2"}) {
    EXPECT_THAT(refusal(std::string(none) + "\n" + bw), HasSubstr("op: is not stated")) << none;
  }
}

TEST(PerftestLog, FirstReleasesHadUnitsWithoutBrackets) {
  const std::string text = perftest_text("ib_write_bw.txt");
  EXPECT_EQ(parse_measured(changed(text, "4096[B]", "2048B"), "log").rows.at(0).set,
            "wire.mtu=2048 B; wire.kind=roce");
}

// "%-7.2f%-7.2f" of the last columns.
TEST(PerftestLog, LargeNumbersBehindTheLatencyMayTouch) {
  const std::string head =
      "                    Send Latency Test\n #bytes #iterations    t_min[usec]"
      "    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
      "99% percentile[usec]   99.9% percentile[usec] \n";
  const std::string row =
      " 2       1000          453.06         37330.73     692.41            "
      "928.05           2465.901216.65                 37330.73\n";
  const std::string end = "-----\n                    Send Latency Test\n";
  EXPECT_EQ(parse_measured(head + row + end, "log").rows.at(0).us, 692.41);
  EXPECT_THAT(refusal(head + changed(row, "901216", "901 216").substr(0, 60) + "\n" + end),
              HasSubstr("columns, not 9"));
}

TEST(PerftestLog, SaysWhyThereIsNoRow) {
  const std::string text = perftest_text("ib_write_bw.txt");
  const std::size_t row = text.find('\n', text.find("#bytes")) + 1;
  EXPECT_EQ(refusal(text.substr(0, row) + "Failed to exchange data between server and clients\n"),
            "log: has no rows; its table has a head alone: the run ended before it measured");
  EXPECT_THAT(refusal(changed(text, "10.94 ", "-10.94 ")), HasSubstr("'-10.94': below 0"));
}

TEST(PerftestLog, NamesWhatHasNoModel) {
  const std::string text = perftest_text("ib_write_bw.txt");
  const auto id = [](const std::string& log) {
    const MeasuredRow row = parse_measured(log, "log").rows.at(0);
    return row.op + ": " + row.id;
  };
  EXPECT_EQ(id(changed(text, "RDMA_Write BW Test", "Atomic FETCH_AND_ADD BW Test")),
            "other: Atomic FETCH_AND_ADD BW Test");
  EXPECT_EQ(id(changed(text, "RDMA_Write BW Test", "RDMA_Write_imm BW Test")),
            "other: RDMA_Write_imm BW Test");
  EXPECT_EQ(id(changed(text, "Connection type : RC", "Connection type : UC")),
            "other: RDMA_Write BW Test, Connection type UC");
  EXPECT_EQ(id(changed(text, "RDMA_Write BW Test", "RDMA_Write Bidirectional BW Test")),
            "write_bw_bidirectional: ");
}

TEST(PerftestLog, RefusesWhatIsDamaged) {
  const std::string text = perftest_text("ib_write_bw.txt");
  EXPECT_THAT(refusal(changed(text, "average[MB/sec]", "average[MB/hour]")),
              HasSubstr("log:22: '[MB/hour]': unknown unit; known: [Gb/sec], [MB/sec], [MiB/sec]"));
  EXPECT_THAT(refusal(changed(text, "RDMA_Write BW Test", "")), HasSubstr("op: is not stated"));
  EXPECT_EQ(refusal(changed(text, "RDMA_Write BW Test", ""), {{"op", "write_bw"}}), "");
  EXPECT_THAT(refusal(changed(text, "RDMA_Write BW Test", ""), {{"op", "write_lat"}}),
              HasSubstr("op=write_lat is not what this table shows"));
  EXPECT_THAT(refusal(changed(text, "0.01               0.00   		   0.001357", "0.01")),
              HasSubstr("log:23: 3 columns, not 5"));
  EXPECT_THAT(refusal(changed(text, "0.001357", "0.000000")), HasSubstr("a rate of 0"));
}

// What was pasted has an ellipsis in place of the line above the title.
TEST(ToolLogs, ARunWithoutATableSaysWhy) {
  const std::string text = perftest_text("ib_write_bw.txt");
  EXPECT_THAT(refusal(text.substr(0, text.find(" #bytes"))),
              HasSubstr("perftest printed no table"));
  EXPECT_EQ(refusal("# nThread 1 nGpus 8 minBytes 8\n# Using devices\n"
                    "t: Test CUDA failure common.cu:941 'system not yet initialized'\n"),
            "log: nccl-tests failed before its first row: t: Test CUDA failure common.cu:941 "
            "'system not yet initialized'");
}

TEST(NvbandwidthLog, ASumNamesTheTestOfItsMatrix) {
  const std::string text =
      changed(kNvbandwidthText, "Running device_to_device_memcpy_read_ce.", "...");
  const MeasuredTable table = parse_measured(text, "log");
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(table.rows[3].op, "device_to_device_memcpy_read_ce");
  EXPECT_EQ(table.rows[3].line, 17);
  EXPECT_EQ(table.rows[3].algbw_gb_per_s, 390.4);
  const std::string alone = text.substr(text.find("memcpy CE GPU"));
  EXPECT_EQ(parse_measured(alone, "log").rows.size(), 2U);
  const std::string nameless = changed(text, "SUM device_to_device", "...");
  const MeasuredTable first = parse_measured(nameless, "log");
  EXPECT_EQ(first.rows.size(), 2U);
  EXPECT_THAT(first.notes, ::testing::ElementsAre(HasSubstr("log:14: a matrix without its test")));
  const std::string op = "host_to_device_memcpy_ce";
  EXPECT_EQ(parse_measured(nameless, "log", {{"op", op}}).rows.at(2).op, op) << "--as says it";
  EXPECT_THAT(refusal(changed(text, "390.40", "x")), HasSubstr("log:17: 'x': write a number"));
}

TEST(NvbandwidthLog, QuotesMayStandBeforeSomeLines) {
  const std::string text = changed(kNvbandwidthText, "Running host", "> Running host");
  EXPECT_EQ(parse_measured(text, "log").rows.size(), 4U);
}

TEST(NvbandwidthLog, WritesJsonThatIsRead) {
  const MeasuredTable table = parse_measured(kNvbandwidthJson, "log");
  ASSERT_EQ(table.rows.size(), 3U) << "a waived test measured nothing";
  const MeasuredRow& row = table.rows[1];
  EXPECT_EQ(row.op + " " + row.transport, "host_to_device_memcpy_ce copy");
  EXPECT_EQ(row.row * 10 + row.column, 1);
  EXPECT_EQ(row.bytes, 512 << 20);
  EXPECT_NEAR(row.us, (512 << 20) / 50e3, 1e-6);
  EXPECT_EQ(table.rows[2].op + ": " + table.rows[2].id, "other: host_device_latency_sm");
  EXPECT_NEAR(table.rows[2].us, 0.7229, 1e-9);
  EXPECT_EQ(parse_measured(kNvbandwidthJson, "log", {{"bytes", "1024"}}).rows[0].bytes, 1024);
}

TEST(NvbandwidthLog, PrintsMatricesThatAreRead) {
  const MeasuredTable table = parse_measured(kNvbandwidthText, "log");
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(table.rows[2].op, "device_to_device_memcpy_read_ce");
  EXPECT_EQ(table.rows[3].row * 10 + table.rows[3].column, 10);
  EXPECT_NEAR(table.rows[3].algbw_gb_per_s, 390.4, 1e-9);
  EXPECT_EQ(table.rows[3].line, 17);
}

TEST(NvbandwidthLog, SizesAreTheCommandsOrTheReleases) {
  const auto size = [](const std::string& text, const StatedColumns& stated = {}) {
    return parse_measured(text, "log", stated).rows.at(0).bytes >> 20;
  };
  const std::string text = kNvbandwidthText;
  const std::string old = changed(text, "Version: v0.8", "Version: v0.6");
  EXPECT_EQ(size(text), 512);
  EXPECT_EQ(size(old), 64);
  EXPECT_EQ(size(changed(text, "Version: v0.8", "Version: v0.10")), 512);
  EXPECT_EQ(size("$ ./nvbandwidth -t host_to_device_memcpy_ce -b 1024\n" + old), 1024);
  for (const char* const option : {"--bufferSize 256", "--bufferSize=256", "-b256"}) {
    EXPECT_EQ(size("$ nvbandwidth " + (option + ("\n" + text))), 256) << option;
  }
  const std::string runs = "$ nvbandwidth -b 1024\n" + text + old + text;
  const MeasuredTable several = parse_measured(runs, "log");
  EXPECT_EQ(several.rows.at(0).bytes >> 20, 1024);
  EXPECT_EQ(several.rows.at(4).bytes >> 20, 64) << "another run's";
  EXPECT_EQ(several.rows.at(8).bytes >> 20, 512);
  EXPECT_EQ(size("$ nvbandwidth -b 256\n" + text, {{"bytes", "1048576"}}), 1);
  EXPECT_EQ(size(changed(kNvbandwidthJson, "\"v0.8\"", "\"v0.6\"")), 64);
}

TEST(NvbandwidthLog, ALastRowThatIsCutOffIsLeftOutAndNoted) {
  const std::string text = kNvbandwidthText;
  const auto cut_behind = [&](const std::string& what, std::size_t rows, const std::string& why) {
    const std::string cut = text.substr(0, text.find(what) + what.size());
    const MeasuredTable table = parse_measured(cut, "log");
    EXPECT_EQ(table.rows.size(), rows) << what;
    EXPECT_THAT(table.notes, ::testing::ElementsAre(HasSubstr(why + ": the log is cut off there")));
  };
  cut_behind(" 1    390.40", 3, "log:17: 1 cells, not 2");
  cut_behind(" 0       N/A    39", 2, "log:16: '39' is no whole number");
  cut_behind("GPU(row) -> GPU(column) bandwidth (GB/", 2, "no unit; known: (GB/s), (ns)");
  EXPECT_TRUE(parse_measured(text.substr(0, text.find("390.60") + 6), "log").notes.empty());
  const std::string within = changed(text, "390.40       N/A", "390.40");
  EXPECT_EQ(refusal(within), "log:17: 1 cells, not 2") << "its sum follows";
}

TEST(NvbandwidthLog, ATestThatIsWaivedEndsTheRows) {
  const std::string text =
      changed(kNvbandwidthText, "\nSUM host_to_device_memcpy_ce 110.73\n", "Waived: \nWaived: \n");
  const MeasuredTable table = parse_measured(text, "log");
  EXPECT_EQ(table.rows.size(), 4U);
  EXPECT_THAT(table.notes, ::testing::IsEmpty());
}

TEST(NvbandwidthLog, SumsAloneAreNoRows) {
  EXPECT_THAT(refusal("SUM host_to_device_memcpy_ce 110.73\nSUM device_to_host_memcpy_ce 99.10\n"),
              HasSubstr("has no rows; sums alone; give all that nvbandwidth prints"));
}

TEST(NvbandwidthLog, RefusesWhatIsDamaged) {
  EXPECT_THAT(refusal(R"({"nvbandwidth": 3})"), ::testing::StartsWith("log: "));
  EXPECT_EQ(refusal(changed(kNvbandwidthText, "390.60", "")), "log:16: 1 cells, not 2");
  EXPECT_THAT(refusal(changed(kNvbandwidthText, "390.60", "fast")), HasSubstr("'fast': write a"));
  EXPECT_THAT(refusal(changed(kNvbandwidthText, "(GB/s)", "(MB/s)")), HasSubstr("no unit"));
  EXPECT_THAT(refusal(changed(kNvbandwidthJson, "\"50\"", "\"-1\"")),
              HasSubstr("log: testcases, number 1: '-1'"));
  EXPECT_THAT(refusal(changed(kNvbandwidthJson, "[[\"55.36\"", "[\"55.36\"")), StartsWith("log"));
  EXPECT_EQ(refusal(R"({"nvbandwidth": {"testcases": []}})"), "log: has no rows");
}

TEST(ToolLogs, DamageIsRefusedOrRead) {
  constexpr std::string_view kBytes = "#\n {}[]\",:0-9e.\tN/A\xff";
  const std::string bw = perftest_text("ib_write_bw.txt");
  const std::vector<std::string> logs{bw,
                                      bw + server_of(bw),
                                      perftest_text("ib_read_lat.txt"),
                                      kPerftestJson,
                                      kNvbandwidthJson,
                                      kNvbandwidthText};
  for (std::uint64_t seed = 1; seed <= seeds(5000); ++seed) {
    std::mt19937_64 dice = random_stream(seed, "damage");
    std::string text = logs[seed % logs.size()];
    for (std::uint64_t i = 0; i <= uniform_below(dice, 4); ++i) {
      const std::size_t at = uniform_below(dice, text.size());
      text.replace(at, uniform_below(dice, 30),
                   std::string(uniform_below(dice, 4), kBytes[uniform_below(dice, kBytes.size())]));
    }
    try {
      for (const MeasuredRow& row : parse_measured(text, "log").rows) {
        EXPECT_GT(row.bytes, 0);
        EXPECT_GT(row.us, 0);
      }
    } catch (const InputError& e) {
      EXPECT_THAT(e.what(), StartsWith("log")) << "seed " << seed;
    }
  }
}

TEST(ToolLogs, RowsAreThoseOfATableToo) {
  const std::string head = "transport,memory_path,hosts,ranks,op,bytes,us\n";
  EXPECT_EQ(refusal(head + "net,host,2,2,write_bw,64,1\n"), "");
  EXPECT_EQ(refusal(head + "copy,,1,1,host_to_device_memcpy_ce,64,1\n"), "");
  EXPECT_THAT(refusal(head + "net,host,2,4,allreduce,64,1\n"),
              HasSubstr("host is that of perftest"));
  EXPECT_THAT(refusal(head + "net,host,2,4,write_bw,64,1\n"), HasSubstr("between 2 hosts and 2"));
  EXPECT_THAT(refusal(head + "net,host-staged,2,2,write_bw,64,1\n"), HasSubstr("is gdr or host"));
  EXPECT_THAT(refusal(head + "copy,,1,1,allreduce,64,1\n"), HasSubstr("only theirs"));
  EXPECT_THAT(refusal(head + "nvlink,,1,1,host_to_device_memcpy_sm,64,1\n"),
              HasSubstr("only theirs"));
}

}  // namespace
}  // namespace weft::test::result_tool_logs
