#include "replay/record/salt.hpp"

#include <gtest/gtest.h>

namespace weft::test::record_salt {
namespace {

using weft::record::Salt;

TEST(RecordSalt, OneSaltHidesAlikeAndAnotherDoesNot) {
  const Salt a("job 17", false);
  const Salt b("job 17", false);
  const Salt c("job 18", false);
  EXPECT_EQ(a.key(0x1234), b.key(0x1234));
  EXPECT_EQ(a.address(4096), b.address(4096));
  EXPECT_EQ(a.guid(99), b.guid(99));
  EXPECT_EQ(a.lid(7), b.lid(7));
  EXPECT_EQ(a.name("host", "node1"), b.name("host", "node1"));
  EXPECT_NE(a.key(0x1234), c.key(0x1234));
  EXPECT_NE(a.address(4096), c.address(4096));
  EXPECT_NE(a.name("host", "node1"), c.name("host", "node1"));
  EXPECT_NE(a.name("host", "node1"), a.name("host", "node2"));
}

TEST(RecordSalt, WithoutATextEachIsItsOwn) {
  EXPECT_NE(Salt("", false).key(1), Salt("", false).key(1));
}

TEST(RecordSalt, AddressesKeepDistanceAndAlignment) {
  const Salt salt("s", false);
  const std::uint64_t address = 0x7f12'3456'7890;
  EXPECT_NE(salt.address(address), address);
  EXPECT_EQ(salt.address(address + 12345) - salt.address(address), 12345U);
  EXPECT_EQ(salt.address(address) % (1U << 30), address % (1U << 30));
}

TEST(RecordSalt, KeepNamesKeepsThem) {
  const Salt salt("s", true);
  EXPECT_EQ(salt.address(42), 42U);
  EXPECT_EQ(salt.key(42), 42U);
  EXPECT_EQ(salt.lid(42), 42U);
  EXPECT_EQ(salt.guid(42), 42U);
  EXPECT_EQ(salt.name("host", "node1"), "node1");
}

TEST(RecordSalt, NoLidStaysNone) { EXPECT_EQ(Salt("s", false).lid(0), 0U); }

// The reference's own vector (Aumasson and Bernstein, appendix A): key 00..0f, input 00..0e.
TEST(RecordSalt, HashIsSipHash24) {
  std::array<std::byte, 15> input{};
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = std::byte(i);
  EXPECT_EQ(weft::record::siphash({0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL}, input),
            0xa129ca6149be45e5ULL);
}

}  // namespace
}  // namespace weft::test::record_salt
