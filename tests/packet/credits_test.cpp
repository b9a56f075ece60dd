#include "sim/packet/credits.hpp"

#include <gtest/gtest.h>

#include "sim/packet/packet.hpp"

namespace weft::test::packet_credits {
namespace {

Packet packet_of(std::uint32_t bytes) {
  Packet packet;
  packet.buffer_bytes = bytes;
  return packet;
}

// PCIe Base 2.6: data credits are units of 16 B, a part of a unit counts as a whole one.
TEST(SenderCredits, CoverWhatHasAHeaderAndItsUnits) {
  SenderCredits credits(CreditPool{.packets = 2, .units = 5, .unit = Bytes{16}});
  EXPECT_TRUE(credits.cover(packet_of(80)));
  EXPECT_FALSE(credits.cover(packet_of(81)));
  credits.spend(packet_of(33));  // 3 units
  EXPECT_TRUE(credits.cover(packet_of(32)));
  EXPECT_FALSE(credits.cover(packet_of(33)));
  credits.spend(packet_of(0));
  EXPECT_FALSE(credits.cover(packet_of(0))) << "no header is left";
}

TEST(SenderCredits, ComeBackWhenTheirTimeHasCome) {
  SenderCredits credits(CreditPool{.packets = 1, .units = 1});
  Fifo<CreditReturn> returns;
  credits.spend(packet_of(64));
  returns.push({.at_ps = 100, .packets = 1, .units = 1});
  credits.collect(returns, 99);
  EXPECT_FALSE(credits.cover(packet_of(64)));
  credits.collect(returns, 100);
  EXPECT_TRUE(credits.cover(packet_of(64)));
  EXPECT_TRUE(returns.empty());
}

TEST(SenderCredits, WithoutLimitStayWithoutLimit) {
  SenderCredits credits(CreditPool{});
  for (int i = 0; i < 3; ++i) credits.spend(packet_of(4'000'000'000));
  EXPECT_TRUE(credits.cover(packet_of(4'000'000'000)));
}

TEST(OwedCredits, AreSaidWithTheLastPacketOfAnUpdateOrInTime) {
  using Update = OwedCredits::Update;
  OwedCredits owed(CreditPool{.unit = Bytes{64}, .packets_per_update = 3});
  EXPECT_EQ(owed.add(packet_of(64)), Update::kInTime);
  EXPECT_EQ(owed.add(packet_of(65)), Update::kWaits);
  EXPECT_EQ(owed.add(packet_of(1)), Update::kNow);
  const CreditReturn all = owed.take(7);
  EXPECT_EQ(all.at_ps, 7);
  EXPECT_EQ(all.packets, 3U);
  EXPECT_EQ(all.units, 4U);  // 1 + 2 + 1
  EXPECT_FALSE(owed.end_wait()) << "all was said before the time came";
  EXPECT_EQ(owed.add(packet_of(64)), Update::kInTime);
  EXPECT_TRUE(owed.end_wait());
}

}  // namespace
}  // namespace weft::test::packet_credits
