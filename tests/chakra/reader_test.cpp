#include "replay/chakra/reader.hpp"

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/chakra/graph.hpp"
#include "sim/base/error.hpp"
#include "tests/chakra/traces.hpp"

namespace weft::test::chakra_reader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = ChakraNode::Kind;

std::string refused(const std::string& bytes) {
  try {
    parse_chakra(bytes, "t.0.et");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}
std::string refused(const MadeNode& node) { return refused(made_trace({node})); }

TEST(Chakra, ReadsEveryKindOfNode) {
  const ChakraTrace trace = parse_chakra(
      made_trace(
          {MadeNode(7, kMetadataNode),
           MadeNode(1, kCompNode).after({7}).begins(5).takes(120).with("is_cpu_op", 1, 27),
           MadeNode(2, kCollectiveNode)
               .after({1}, false)
               .after({7, 1})
               .with("comm_type", 2)
               .with("comm_size", 4096, 13)
               .named("pg_name", "3")
               .involves(std::string("\1\1", 2)),
           MadeNode(3, kSendNode).with("comm_dst", 1, 7).with("comm_size", 8).with("comm_tag", 4),
           MadeNode(4, kReceiveNode).with("comm_src", 2, 11).with("comm_size", 9),
           MadeNode(5, kCompNode)}),
      "t.0.et");
  EXPECT_EQ(trace.version, "0.0.4");
  ASSERT_EQ(trace.nodes.size(), 6u);
  EXPECT_EQ(trace.nodes[0].kind, Kind::kNothing);
  EXPECT_EQ(trace.nodes[1].kind, Kind::kCompute);
  EXPECT_EQ(trace.nodes[1].time, Duration::us(120));
  EXPECT_EQ(trace.nodes[1].start_us, 5u);
  EXPECT_TRUE(trace.nodes[1].on_host);
  EXPECT_FALSE(trace.nodes[2].on_host);
  EXPECT_EQ(trace.nodes[2].kind, Kind::kCollective);
  EXPECT_EQ(trace.nodes[2].op, Op::kAllGather);
  EXPECT_EQ(trace.nodes[2].bytes, Bytes{4096});
  EXPECT_EQ(trace.nodes[2].group, "3");
  EXPECT_THAT(trace.nodes[2].before, ElementsAre(1, 7));
  EXPECT_EQ(trace.nodes[3].kind, Kind::kSend);
  EXPECT_EQ(trace.nodes[3].peer, 1u);
  EXPECT_EQ(trace.nodes[3].tag, 4);
  EXPECT_EQ(trace.nodes[4].kind, Kind::kReceive);
  EXPECT_EQ(trace.nodes[4].peer, 2u);
  EXPECT_EQ(trace.nodes[5].kind, Kind::kNothing);  // no time
}

TEST(Chakra, RefusesWhatItCannotTake) {
  const auto collective = [](unsigned type) {
    return MadeNode(2, kCollectiveNode).with("comm_type", type).with("comm_size", 8);
  };
  EXPECT_EQ(refused(""), "t.0.et: is empty");
  EXPECT_THAT(refused("{\"schema\": 1}"), HasSubstr("at byte 0"));
  EXPECT_THAT(refused(made_trace({collective(0)}) + "\x05"), HasSubstr("or cut off"));
  EXPECT_THAT(refused(std::string("\xff\xff\xff\xff\xff\xff", 6)), HasSubstr("at byte 0"));
  EXPECT_THAT(refused(MadeNode(2, 9)), HasSubstr("node 2: type 9 is not taken"));
  EXPECT_THAT(refused(MadeNode(2, 0)), HasSubstr("type 0 is not taken"));
  EXPECT_EQ(refused(collective(9)), "t.0.et: node 2: BARRIER is not modelled");
  EXPECT_THAT(refused(collective(10)), HasSubstr("comm_type is 10; allowed: 0 to 9"));
  EXPECT_THAT(refused(MadeNode(2, kCollectiveNode).with("comm_size", 8)),
              HasSubstr("has no comm_type"));
  EXPECT_THAT(refused(MadeNode(2, kCollectiveNode).with("comm_type", 0)),
              HasSubstr("has no comm_size"));
  EXPECT_THAT(refused(MadeNode(2, kSendNode).with("comm_size", 8)), HasSubstr("has no comm_dst"));
  EXPECT_THAT(refused(MadeNode(2, kSendNode).with("comm_dst", 1).with("comm_size", 0)),
              HasSubstr("comm_size is 0; allowed: 1 to"));
  EXPECT_THAT(refused(MadeNode(2, kSendNode).named("comm_dst", "x").with("comm_size", 8)),
              HasSubstr("comm_dst is no whole number"));
  EXPECT_THAT(refused(collective(0).named("pg_name", "a\x1b[2J")), HasSubstr("no plain word"));
  EXPECT_THAT(refused(collective(0).involves(std::string("\1\0", 2))), HasSubstr("involved_dim"));
  EXPECT_THAT(refused(MadeNode(2, kCompNode).with("num_ops", 5)),
              HasSubstr("without duration_micros"));
  EXPECT_THAT(refused(MadeNode(2, kCompNode).takes(20'000'000'000)), HasSubstr("above 10,000 s"));
  EXPECT_THAT(refused(made_trace({MadeNode(2, kCompNode), MadeNode(2, kCompNode)})),
              HasSubstr("node 2 is there twice"));
  EXPECT_THAT(refused(MadeNode(2, kCompNode).after({3})),
              HasSubstr("node 2 depends on node 3, which is not there"));
}

// Whatever the bytes: read or refused, and made a graph with a sound one or refused.
TEST(Chakra, DamagedFilesAreReadOrRefused) {
  const std::string sound = made_trace(
      {MadeNode(1, kCompNode).takes(3),
       MadeNode(2, kCollectiveNode).after({1}).with("comm_type", 0).with("comm_size", 64),
       MadeNode(3, kSendNode).after({1, 2}).with("comm_dst", 1).with("comm_size", 8)});
  const ChakraTrace peer = parse_chakra(
      made_trace({MadeNode(2, kCollectiveNode).with("comm_type", 0).with("comm_size", 64),
                  MadeNode(3, kReceiveNode).after({2}).with("comm_src", 0).with("comm_size", 8)}),
      "peer");
  std::size_t read = 0;
  std::size_t made = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    std::string damaged = sound;
    for (std::uint64_t n = 1 + random() % 6; n > 0 && !damaged.empty(); --n) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, random() % 8);
          break;
        case 2:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 16));
          break;
        default:
          damaged.resize(at);
      }
    }
    try {
      const ChakraTrace trace = parse_chakra(damaged, "t");
      ++read;
      chakra_graph({trace, peer}, {{"0", {0, 1}}}, "groups.json");
      ++made;
    } catch (const InputError&) {
    }
  }
  EXPECT_GT(read, 0u);
  EXPECT_LT(read, 3000u);
  EXPECT_GT(made, 0u);
  EXPECT_LT(made, read);
}

}  // namespace
}  // namespace weft::test::chakra_reader
