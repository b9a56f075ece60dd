#include "sim/result/measured.hpp"

#include <string>

#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace weft::test::result_measured {
namespace {

constexpr const char* kHead =
    "transport,memory_path,hosts,ranks,nics_per_host,nic_gbps,nic_latency_us,algo,proto,channels,"
    "op,bytes,us,algbw_GBps,busbw_GBps\n";

std::string refusal(const std::string& text) {
  try {
    parse_measured(text, "m.csv");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

std::string row_refusal(const std::string& row) { return refusal(kHead + row + '\n'); }

TEST(Measured, ReadsEveryColumn) {
  const MeasuredTable table = parse_measured(
      std::string(kHead) +
          "net,gdr,4,8,1,200,2.5,Ring,LL128,4,allgather,1024,174.729,0.0059,0.0088\n",
      "m.csv");
  EXPECT_EQ(table.file, "m.csv");
  ASSERT_EQ(table.rows.size(), 1U);
  const MeasuredRow& row = table.rows.front();
  EXPECT_EQ(row.line, 2);
  EXPECT_EQ(row.transport, "net");
  EXPECT_EQ(row.memory_path, "gdr");
  EXPECT_EQ(row.hosts, 4);
  EXPECT_EQ(row.ranks, 8);
  EXPECT_EQ(row.nics_per_host, 1);
  EXPECT_EQ(row.nic_gbps, 200);
  EXPECT_EQ(row.nic_latency_us, 2.5);
  EXPECT_EQ(row.algo, "Ring");
  EXPECT_EQ(row.proto, "LL128");
  EXPECT_EQ(row.channels, 4);
  EXPECT_EQ(row.op, "allgather");
  EXPECT_EQ(row.bytes, 1024);
  EXPECT_EQ(row.us, 174.729);
  EXPECT_EQ(row.algbw_gb_per_s, 0.0059);
  EXPECT_EQ(row.busbw_gb_per_s, 0.0088);
  EXPECT_EQ(row.launch, "");
}

TEST(Measured, TakesColumnsInAnyOrderAndFillsThoseLeftOut) {
  const MeasuredTable table = parse_measured(
      "us,bytes,launch,op,ranks,transport\r\n"
      "2,4000,graph,allreduce,4,nvlink\r\n"
      "\"3\",8000,,sendrecv,2,shm",
      "m.csv");
  ASSERT_EQ(table.rows.size(), 2U);
  const MeasuredRow& first = table.rows.front();
  EXPECT_EQ(first.hosts, 1);
  EXPECT_EQ(first.algo, "auto");
  EXPECT_EQ(first.proto, "auto");
  EXPECT_EQ(first.channels, 0);
  EXPECT_EQ(first.launch, "graph");
  EXPECT_DOUBLE_EQ(first.algbw_gb_per_s, 2);  // 4000 B in 2 us
  EXPECT_DOUBLE_EQ(first.busbw_gb_per_s, 3);  // x 2 (4 - 1) / 4
  EXPECT_EQ(table.rows.back().us, 3);
  EXPECT_EQ(table.rows.back().launch, "");
}

TEST(Measured, ATableOfOneColumnIsOne) {
  const StatedColumns rest =
      parse_stated("transport=nvlink,op=allreduce,bytes=1024,hosts=1,ranks=2");
  EXPECT_EQ(parse_measured("us\n50\n60\n", "m.csv", rest).rows.size(), 2U);
  EXPECT_EQ(refusal("us;bytes\n1;2\n"), "m.csv: separate columns by commas");
  EXPECT_EQ(refusal("nothing\nof it\n").substr(0, 28), "m.csv: is neither a table (C");
}

TEST(Measured, WordsAreReadHoweverTheyAreSpelled) {
  const std::string text =
      "transport,memory_path,hosts,ranks,op,algo,proto,launch,bytes,us\n"
      "NET,host_staged,2,4,Reduce_Scatter,ring,ll128,back_to_back,8,1\n";
  const MeasuredRow row =
      parse_measured(text, "m.csv", parse_stated("op=reduce-scatter")).rows.at(0);
  EXPECT_EQ(row.transport, "net");
  EXPECT_EQ(row.memory_path, "host-staged");
  EXPECT_EQ(row.op, "reducescatter");
  EXPECT_EQ(row.algo, "Ring");
  EXPECT_EQ(row.proto, "LL128");
  EXPECT_EQ(row.launch, "back-to-back");
  EXPECT_EQ(parse_stated("op=all_to_all"), (StatedColumns{{"op", "alltoall"}}));
}

TEST(Measured, ABandwidthTellsTheTime) {
  const MeasuredTable table = parse_measured(
      "transport,ranks,op,bytes,algbw_GBps,busbw_GBps\n"
      "nvlink,4,allreduce,6000,2,\n"
      "nvlink,4,allreduce,6000,,3\n",
      "m.csv");
  for (const MeasuredRow& row : table.rows) {
    EXPECT_DOUBLE_EQ(row.us, 3);  // 6000 B at 2 GB/s
    EXPECT_DOUBLE_EQ(row.algbw_gb_per_s, 2);
    EXPECT_DOUBLE_EQ(row.busbw_gb_per_s, 3);
  }
  constexpr const char* kNoTime =
      "us: no time, and no bandwidth that tells it; write number, 1e-6 to 1e12";
  const std::string head = "transport,ranks,op,bytes,us,busbw_GBps\n";
  EXPECT_EQ(refusal(head + "nvlink,4,allreduce,8,,0\n"), std::string("m.csv:2:22: ") + kNoTime);
  EXPECT_EQ(refusal(head + "nvlink,1,allreduce,8,,5\n"), std::string("m.csv:2:22: ") + kNoTime)
      << "busbw of one rank is always 0";
}

TEST(Measured, ARowMayNameItsMachineAndItsSource) {
  const MeasuredTable table = parse_measured(
      "transport,ranks,op,bytes,us,machine,set,env,nccl,use,id,source\n"
      "nvlink,4,reduce,8,1,a.yaml,gpu.part=h200-sxm,NCCL_ALGO=Ring,2.20.5,taught,a#1,\"x, y\"\n"
      "nvlink,4,reduce,8,1,,,,,,,\n",
      "m.csv");
  const MeasuredRow& row = table.rows.front();
  EXPECT_EQ(row.machine + row.set + row.env, "a.yamlgpu.part=h200-sxmNCCL_ALGO=Ring");
  EXPECT_EQ(row.nccl + row.use + row.id + row.source, "2.20.5taughta#1x, y");
  EXPECT_EQ(table.rows.back().use, "yes");
  EXPECT_NE(configuration_of(row), configuration_of(table.rows.back()));
  EXPECT_EQ(refusal("transport,ranks,op,bytes,us,use\nnvlink,4,reduce,8,1,no\n"),
            "m.csv:2:21: use: 'no' is not allowed; write one of: yes, taught");
}

TEST(Measured, ByteOrderMarksAreNoPartOfTheHeader) {
  const MeasuredTable table =
      parse_measured("\xEF\xBB\xBFtransport,ranks,op,bytes,us\nnvlink,2,reduce,8,1\n", "m.csv");
  EXPECT_EQ(table.rows.front().transport, "nvlink");
}

TEST(Measured, AColumnWritesWhatItRead) {
  const std::string row = "net,gdr,4,8,1,200,2.5,Ring,LL128,4,allgather,1024,174.729,0.0059,0.0088";
  const MeasuredTable table = parse_measured(kHead + row + '\n', "m.csv");
  std::string text;
  for (const MeasuredColumn& column : measured_columns()) {
    if (column.key.name == "launch") break;  // no column of kHead, nor any after it
    text += (text.empty() ? "" : ",") + column.text(table.rows[0]);
  }
  EXPECT_EQ(text, row);
  EXPECT_EQ(measured_column("bytes").json(table.rows[0]).as_integer(), 1024);
  EXPECT_THROW(measured_column("size"), InputError);
}

TEST(Measured, RefusesTablesThatAreNone) {
  EXPECT_EQ(refusal(""), "m.csv: is empty");
  EXPECT_EQ(refusal(kHead), "m.csv: has no rows");
  EXPECT_EQ(
      refusal("transport,ranks,op,byte,us\n"),
      "m.csv:1:20: 'byte': unknown column (did you mean 'bytes'?); known: algbw_GBps, algo, "
      "busbw_GBps, bytes, channels, column, cq_mod, env, hosts, id, launch, machine, "
      "memory_path, nccl, nic_gbps, nic_latency_us, nics_per_host, op, post_list, proto, qps, "
      "ranks, row, run, set, source, transport, tx_depth, us, use");
  EXPECT_EQ(refusal("transport,ranks,op\n"), "m.csv:1:1: column 'bytes' is missing");
  EXPECT_EQ(refusal("us,ranks,us\n"), "m.csv:1:10: us: column given twice");
  EXPECT_EQ(refusal("us,\"ranks\n"), "m.csv:1:4: a quote is not closed");
  EXPECT_EQ(refusal(std::string("transport,ran\0ks\n", 18)),
            "m.csv:1:14: a NUL byte; a table is text");
  EXPECT_EQ(refusal(std::string(5000, ',')), "m.csv:1:4097: more than 4096 bytes in a line");
  std::string many = "transport,ranks,op,bytes,us\n";
  for (int i = 0; i <= 100'000; ++i) many += "nvlink,2,reduce,1,1\n";
  EXPECT_EQ(refusal(many), "m.csv:100002:1: more than 100000 rows; split the table");
}

TEST(Measured, RefusesVariablesThatContradictTheRowsColumns) {
  const auto refused = [](const std::string& cells) {
    return refusal("transport,ranks,op,bytes,us,algo,proto,channels,env\n" + cells + '\n');
  };
  const std::string row = "nvlink,4,allreduce,8,1,Ring,LL,8,";
  EXPECT_EQ(refused(row + "NCCL_ALGO=Tree"),
            "m.csv:2:34: env: NCCL_ALGO=Tree, but the row's algo is Ring");
  EXPECT_EQ(refused(row + "NCCL_NVLS_ENABLE=0; NCCL_PROTO=^LL"),
            "m.csv:2:34: env: NCCL_PROTO=^LL, but the row's proto is LL");
  EXPECT_EQ(refused(row + "NCCL_MIN_NCHANNELS=16"),
            "m.csv:2:34: env: NCCL_MIN_NCHANNELS=16, but the row's channels is 8");
  EXPECT_EQ(refused(row + "NCCL_MAX_NCHANNELS=4"),
            "m.csv:2:34: env: NCCL_MAX_NCHANNELS=4, but the row's channels is 8");
  EXPECT_EQ(refused(row + "NCCL_P2P_DISABLE=1"),
            "m.csv:2:34: env: NCCL_P2P_DISABLE=1, but the row's transport is nvlink");
  for (const auto& [env, says] :
       {std::pair{"NCCL_MIN_NRINGS=16", "NCCL_MIN_NRINGS=16, but the row's channels is 8"},
        std::pair{"NCCL_MAX_NRINGS=4", "NCCL_MAX_NRINGS=4, but the row's channels is 8"},
        std::pair{"NCCL_MIN_NCHANNELS=0x10",
                  "NCCL_MIN_NCHANNELS=0x10, but the row's channels is 8"},
        std::pair{"NCCL_MIN_NRINGS=011", "NCCL_MIN_NRINGS=011, but the row's channels is 8"},
        std::pair{"NCCL_MAX_NCHANNELS=7up", "NCCL_MAX_NCHANNELS=7up, but the row's channels is 8"},
        std::pair{"NCCL_P2P_DISABLE=0x1",
                  "NCCL_P2P_DISABLE=0x1, but the row's transport is nvlink"},
        std::pair{"NCCL_P2P_LEVEL=LOC", "NCCL_P2P_LEVEL=LOC, but the row's transport is nvlink"},
        std::pair{"NCCL_P2P_LEVEL=0", "NCCL_P2P_LEVEL=0, but the row's transport is nvlink"},
        std::pair{"NCCL_P2P_LEVEL='LOC'", "NCCL_P2P_LEVEL=LOC, but the row's transport is nvlink"},
        std::pair{"NCCL_ALGO='Tree'", "NCCL_ALGO=Tree, but the row's algo is Ring"},
        std::pair{R"("NCCL_PROTO=""Simple""")", "NCCL_PROTO=Simple, but the row's proto is LL"},
        std::pair{"NCCL_MAX_NCHANNELS='4'", "NCCL_MAX_NCHANNELS=4, but the row's channels is 8"}}) {
    EXPECT_EQ(refused(row + env), std::string("m.csv:2:34: env: ") + says);
  }
  EXPECT_EQ(refused("nvlink,4,allgather,8,1,NVLS,,,NCCL_ALGO=Ring"),
            "m.csv:2:31: env: NCCL_ALGO=Ring, but the row's algo is NVLS");
  for (const char* const same :
       {"NCCL_ALGO=ring", "NCCL_ALGO=Ring,Tree", "NCCL_ALGO=^Tree; NCCL_PROTO=LL,Simple",
        "NCCL_ALGO=allreduce:tree", "NCCL_MIN_NCHANNELS=8; NCCL_MAX_NCHANNELS=8",
        "NCCL_P2P_DISABLE=0", "NCCL_ALGO=", "NCCL_ALGO='Ring'; NCCL_PROTO=\"\"LL\"\"",
        "NCCL_MIN_NCHANNELS=0x8; NCCL_MAX_NCHANNELS=010", "NCCL_MIN_NRINGS=8; NCCL_MAX_NRINGS=8",
        "NCCL_MIN_NRINGS=16; NCCL_MIN_NCHANNELS=4", "NCCL_MAX_NRINGS=4; NCCL_MAX_NCHANNELS=8",
        "NCCL_P2P_LEVEL=NVL", "NCCL_P2P_LEVEL=SYS", "NCCL_P2P_LEVEL=1", "NCCL_P2P_LEVEL=loc",
        "NCCL_MAX_NCHANNELS=four", "NCCL_ALGO=\"\"\"\""}) {
    EXPECT_EQ(refused(row + '"' + same + '"'), "") << same;
  }
  for (const char* const right :
       {"nvlink,4,allreduce,8,1,auto,auto,0,NCCL_ALGO=Tree;NCCL_PROTO=LL",
        "nvlink,4,allreduce,8,1,Tree,LL,8,NCCL_ALGO=ring;allreduce:tree",
        "nvlink,4,allgather,8,1,Ring,LL,8,NCCL_ALGO=Tree",
        "nvlink,4,reduce,8,1,Ring,LL,8,NCCL_ALGO=^Ring",
        "nvlink,4,alltoall,8,1,auto,Simple,8,NCCL_PROTO=LL",
        "shm,4,allreduce,8,1,,,,NCCL_P2P_DISABLE=0", "shm,4,allreduce,8,1,,,,NCCL_P2P_DISABLE=1",
        "shm,4,allreduce,8,1,,,,NCCL_P2P_LEVEL=LOC", "shm,4,allreduce,8,1,,,,NCCL_P2P_LEVEL=SYS",
        "nvlink,4,allreduce,8,1,,,0,NCCL_MIN_NRINGS=16;NCCL_MAX_NRINGS=4",
        "nvlink,4,allreduce,8,1,,,,NCCL_P2P_DISABLE=2",
        "nvlink,4,allreduce,8,1,,,8,NCCL_MAX_NCHANNELS=0 ; NCCL_MIN_NCHANNELS=-1"}) {
    EXPECT_EQ(refused(right), "") << right;
  }
  EXPECT_EQ(refused("net,4,allreduce,8,1,,,,"),
            "m.csv:2:1: memory_path: is empty; with net "
            "write gdr, host-staged or nccl");
}

TEST(Measured, RefusesEachKindOfBadRowAtItsCell) {
  EXPECT_EQ(row_refusal("nvlink,1"), "m.csv:2:1: 2 cells, not 15");
  EXPECT_EQ(row_refusal("nvlink"), "m.csv:2:1: 1 cells, not 15");
  EXPECT_EQ(row_refusal("  "), "m.csv: has no rows");  // empty lines are none
  EXPECT_EQ(row_refusal("pcie,,1,4,0,0,0,Ring,LL,0,allreduce,8,1,0,0"),
            "m.csv:2:1: transport: 'pcie' is not allowed; write one of: nvlink, shm, net, copy");
  EXPECT_EQ(row_refusal("nvlink,,0,4,0,0,0,Ring,LL,0,allreduce,8,1,0,0"),
            "m.csv:2:9: hosts: '0' is not allowed; write whole number, 1 to 1048576");
  EXPECT_EQ(row_refusal("nvlink,,1,4x,0,0,0,Ring,LL,0,allreduce,8,1,0,0"),
            "m.csv:2:11: ranks: '4x' is not allowed; write whole number, 1 to 16777216");
  EXPECT_EQ(row_refusal("nvlink,,1,,0,0,0,Ring,LL,0,allreduce,8,1,0,0"),
            "m.csv:2:11: ranks: is empty; write whole number, 1 to 16777216");
  EXPECT_EQ(row_refusal("nvlink,,3,4,0,0,0,Ring,LL,0,allreduce,8,1,0,0"),
            "m.csv:2:11: ranks: 4 is not a multiple of hosts, 3");
  EXPECT_EQ(row_refusal("nvlink,,1,4,0,-1,0,Ring,LL,0,allreduce,8,1,0,0"),
            "m.csv:2:15: nic_gbps: '-1' is not allowed; write number, 0 to 1e12");
  EXPECT_EQ(row_refusal("nvlink,,1,4,0,nan,0,Ring,LL,0,allreduce,8,1,0,0"),
            "m.csv:2:15: nic_gbps: 'nan' is not allowed; write number, 0 to 1e12");
  EXPECT_EQ(row_refusal("nvlink,,1,4,0,0,0,Ring,LL,0,allreduce,8,0,0,0"),
            "m.csv:2:41: us: '0' is not allowed; write number, 1e-6 to 1e12");
  EXPECT_EQ(row_refusal("nvlink,,1,4,0,0,0,Ring,LL,0,allreduce,8,1e-320,0,0"),
            "m.csv:2:41: us: '1e-320' is not allowed; write number, 1e-6 to 1e12");
  EXPECT_EQ(row_refusal("nvlink,,1,4,0,0,0,Ring,LL,0,allreduce,1e3,1,0,0"),
            "m.csv:2:39: bytes: '1e3' is not allowed; write whole number, 1 to 4398046511104");
  EXPECT_EQ(row_refusal("net,,2,4,0,0,0,Ring,LL,0,allreduce,8,1,0,0"),
            "m.csv:2:5: memory_path: is empty; with net write gdr, host-staged or nccl");
  EXPECT_EQ(row_refusal("shm,gdr,1,4,0,0,0,Ring,LL,0,allreduce,8,1,0,0"),
            "m.csv:2:5: memory_path: only rows of net have one; leave it empty");
  EXPECT_EQ(row_refusal("shm,,1,4,0,0,0,Star,LL,0,allreduce,8,1,0,0"),
            "m.csv:2:16: algo: 'Star' is not allowed; write one of: auto, Ring, Tree, NVLS, "
            "NVLSTree, CollNetDirect, CollNetChain, PAT");
}

}  // namespace
}  // namespace weft::test::result_measured
