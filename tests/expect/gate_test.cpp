#include "models/expect/gate.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/expect/known.hpp"
#include "tests/expect/subjects.hpp"
#include "tests/seeds.hpp"

namespace weft::test::expect_gate {
namespace {

using ::testing::HasSubstr;

const Expected& expected() {
  static const Expected kKnown = [] {
    const ParamCatalog catalog = make_catalog();
    return expect(subject_with("hgx-h100-8nic.yaml", catalog),
                  request_for(2, {Bytes::mib(1), Bytes::gib(1)}, {"allreduce", "alltoall"}),
                  catalog);
  }();
  return kKnown;
}

std::string text() { return gate_json(expected()).dump(); }

std::string with(const std::string& what, const std::string& by) {
  std::string out = text();
  const std::size_t at = out.find(what);
  if (at == std::string::npos) throw std::logic_error("no " + what);
  return out.replace(at, what.size(), by);
}

std::string refusal(const std::string& gate) {
  try {
    parse_gate(gate, "g.json");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

MeasuredRow measured(std::int64_t bytes, std::int64_t ranks = 16, std::int64_t hosts = 2) {
  MeasuredRow row;
  row.transport = hosts > 1 ? "net" : "nvlink";
  if (hosts > 1) row.memory_path = "gdr";
  row.op = "allreduce";
  row.bytes = bytes;
  row.ranks = ranks;
  row.hosts = hosts;
  return row;
}

TEST(Gate, IsReadAsItWasWritten) {
  EXPECT_TRUE(is_gate(text()));
  const Gate gate = parse_gate(text(), "g.json");
  ASSERT_EQ(gate.floors.size(), 2U);  // an all-to-all between nodes has none
  for (std::size_t i = 0; i < 2; ++i) {
    const ExpectedRow& row = expected().healthy.rows[i];
    EXPECT_EQ(gate.floors[i].key.bytes, row.row.bytes);
    EXPECT_EQ(gate.floors[i].key.memory_path, row.row.memory_path);
    EXPECT_EQ(gate.floors[i].floor, *row.floor());
    EXPECT_EQ(gate.floors[i].expected, row.row.busbw_gb_per_s);
    EXPECT_EQ(gate.floors[i].low, row.low());
    EXPECT_EQ(gate.floors[i].high, row.high());
    EXPECT_EQ(gate.floors[i].basis, row.basis());
  }
  EXPECT_EQ(Json::parse(text(), "g.json").at("without_floor").items().size(), 2U);
}

TEST(Gate, FindsTheFloorOfTheSameOperationSizeAndGpus) {
  const Gate gate = parse_gate(text(), "g.json");
  ASSERT_NE(gate.find(measured(1 << 20)), nullptr);
  EXPECT_EQ(gate.find(measured(1 << 20))->floor, gate.floors[0].floor);
  EXPECT_EQ(gate.find(measured(1 << 21)), nullptr);
  EXPECT_EQ(gate.find(measured(1 << 20, 8)), nullptr);
  EXPECT_EQ(gate.find(measured(1 << 20, 16, 4)), nullptr);
}

TEST(Gate, AFloorIsOfOneMemoryPath) {
  const Gate gate = parse_gate(text(), "g.json");
  MeasuredRow row = measured(1 << 20);
  row.memory_path = "host-staged";
  EXPECT_EQ(gate.find(row), nullptr);
  ASSERT_EQ(gate.missing(row).size(), 1U);
  EXPECT_EQ(gate.missing(row).front().field, "memory_path");
}

TEST(Gate, InsideANodeAFloorIsThatOfNvlink) {
  const ParamCatalog catalog = make_catalog();
  const Gate gate = parse_gate(gate_json(expect(subject_with("hgx-h100-8nic.yaml", catalog),
                                                request_for(1, {Bytes::mib(1)}), catalog))
                                   .dump(),
                               "g.json");
  MeasuredRow row = measured(1 << 20, 8, 1);
  EXPECT_NE(gate.find(row), nullptr);
  row.transport = "shm";
  EXPECT_EQ(gate.find(row), nullptr);
}

TEST(Gate, AFloorOfPerftestIsOfItsMemoryQueuePairsAndDepth) {
  const ParamCatalog catalog = make_catalog();
  const Gate gate =
      parse_gate(gate_json(expect(subject_with("hgx-h100-8nic.yaml", catalog),
                                  request_for(2, {Bytes::kib(64)}, {"write_bw"}), catalog))
                     .dump(),
                 "g.json");
  MeasuredRow row = measured(1 << 16, 2);
  row.op = "write_bw";
  EXPECT_NE(gate.find(row), nullptr);
  const auto misses = [&](const MeasuredRow& other, const std::string& field) {
    EXPECT_EQ(gate.find(other), nullptr);
    const std::vector<KeyDifference> missing = gate.missing(other);
    ASSERT_EQ(missing.size(), 1U);
    EXPECT_EQ(missing.front().field, field);
    EXPECT_NE(missing.front().floor, missing.front().measured);
  };
  MeasuredRow in_host = row;
  in_host.memory_path = "host";
  misses(in_host, "memory_path");
  MeasuredRow of_four = row;
  of_four.qps = 4;
  misses(of_four, "qps");
  MeasuredRow shallow = row;
  shallow.tx_depth = 16;
  misses(shallow, "tx_depth");
}

TEST(Gate, NamesTheGpusThatItsFloorsAreOf) {
  EXPECT_THAT(parse_gate(text(), "g.json").gpus, ::testing::ElementsAre("h100-sxm"));
  const std::string older = with("\"gpus\"", "\"gpus_\"");
  EXPECT_THAT(parse_gate(older, "g.json").gpus, ::testing::IsEmpty());
}

TEST(Gate, RefusesWhatIsDamaged) {
  EXPECT_THAT(refusal("{"), HasSubstr("g.json"));
  EXPECT_THAT(refusal("{}"), HasSubstr("schema"));
  EXPECT_THAT(refusal(with("weft.gate/1", "weft.gate/2")),
              HasSubstr("'weft.gate/2', not weft.gate/1"));
  EXPECT_THAT(refusal(with("\"floors\"", "\"others\"")), HasSubstr("floors"));
  EXPECT_THAT(refusal(with("\"bytes\": 1048576", "\"bytes\": 0")),
              HasSubstr("floors, entry 1: bytes: 0: write a number from 1 on"));
  EXPECT_THAT(refusal(with("\"ranks\": 16", "\"ranks\": \"x\"")),
              HasSubstr("floors, entry 1: expected a whole number"));
  EXPECT_THAT(refusal(with("\"floor_GBps\": ", "\"floor_GBps\": -")),
              HasSubstr("floor_GBps: write a bandwidth in GB/s"));
  EXPECT_THAT(refusal(with("\"floor_GBps\": ", "\"floor_GBps\": 1e6, \"x\": ")),
              HasSubstr("must ascend"));
  EXPECT_THAT(
      refusal(with("\"bytes\": 1073741824", "\"bytes\": 1048576")),
      HasSubstr("floors, entry 2: a floor for the same stands before it: allreduce of 1 MiB, 16 "
                "GPUs of 2 nodes, memory_path gdr"));
  EXPECT_THAT(refusal("{\"schema\": \"weft.gate/1\", \"machine\": \"m\", \"floors\": []}"),
              HasSubstr("has no floors"));
  EXPECT_THAT(refusal("topology: t\nnode: {}\n"), HasSubstr("g.json"));
}

TEST(Gate, RefusesWhatIsTooLarge) {
  EXPECT_THAT(refusal(text() + std::string(std::size_t{17} << 20, ' ')),
              HasSubstr("g.json: a gate has 16 MiB at most"));
}

TEST(Gate, DamagedBytesAreRefusedOrRead) {
  const std::string whole = text();
  for (std::uint64_t seed = 0; seed < seeds(300); ++seed) {
    std::mt19937_64 random(seed);
    std::string damaged = whole.substr(0, 1 + random() % whole.size());
    for (int i = 0; i < 4; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      parse_gate(damaged, "g.json");
    } catch (const InputError&) {
    }
  }
}

}  // namespace
}  // namespace weft::test::expect_gate
