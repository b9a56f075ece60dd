#include "replay/trace/connect.hpp"

#include <gtest/gtest.h>

#include "replay/trace/record.hpp"

namespace weft::test::trace_connect {
namespace {

using namespace weft::trace;
using Peers = std::vector<std::uint32_t>;

TEST(Connect, EndsFindEachOtherByTheirNumbers) {
  const std::vector<PairEnd> ends{{100, 200}, {200, 100}, {101, 300}, {5, 0}, {0, 5}};
  EXPECT_EQ(connect(ends), (Peers{1, 0, kNone, kNone, kNone}));
}

// Two devices that count alike: the first queue pair of each has one number.
TEST(Connect, TwoEndsMayHaveOneNumber) {
  const std::vector<PairEnd> ends{{17, 17}, {17, 17}, {18, 18}, {18, 18}};
  EXPECT_EQ(connect(ends), (Peers{1, 0, 3, 2}));
}

// Four devices that count alike, LIDs 1 to 4: 1 with 3, 2 with 4. Without LIDs nobody knows.
TEST(Connect, LidsTellApartWhatNumbersDoNot) {
  std::vector<PairEnd> ends{{17, 17, 3, {1}}, {17, 17, 4, {2}}, {17, 17, 1, {3}}, {17, 17, 2, {4}}};
  EXPECT_EQ(connect(ends), (Peers{2, 3, 0, 1}));
  for (PairEnd& end : ends) end.lids = {};
  EXPECT_EQ(connect(ends), (Peers{kNone, kNone, kNone, kNone}));
}

}  // namespace
}  // namespace weft::test::trace_connect
