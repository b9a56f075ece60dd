#include "models/wire/send_window.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace weft::test::models_send_window {
namespace {

constexpr std::uint32_t kMtu = 1000;

std::vector<std::uint32_t> numbers(SendWindow& window, std::uint32_t most = 0) {
  std::vector<std::uint32_t> out;
  while (window.has_next(most)) out.push_back(window.take_next(kMtu).number);
  return out;
}

TEST(SendWindow, CutsMessagesIntoPacketsOfTheMtu) {
  SendWindow window;
  window.append(Bytes{2500}, 7, kMtu);
  window.append(Bytes{0}, 8, kMtu);  // one packet
  window.provide_all();
  for (const std::int64_t payload : {1000, 1000, 500}) {
    const SendWindow::Piece piece = window.take_next(kMtu);
    EXPECT_EQ(piece.payload, payload);
    EXPECT_EQ(piece.tag, 7U);
    EXPECT_EQ(piece.is_last, payload == 500);
    EXPECT_FALSE(piece.is_repeated);
  }
  const SendWindow::Piece empty = window.take_next(kMtu);
  EXPECT_EQ(empty.number, 3U);
  EXPECT_EQ(empty.place, 0U);
  EXPECT_EQ(empty.payload, 0);
  EXPECT_TRUE(empty.is_last);
  EXPECT_FALSE(window.has_next(0));
}

TEST(SendWindow, SendsWhatIsProvidedAndTheWindowAllows) {
  SendWindow window;
  window.append(Bytes{5000}, 0, kMtu);
  EXPECT_FALSE(window.has_next(0));
  for (int i = 0; i < 4; ++i) window.provide();
  EXPECT_EQ(numbers(window, 3), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_TRUE(window.acknowledge(1));
  EXPECT_FALSE(window.acknowledge(1)) << "known already";
  EXPECT_EQ(numbers(window, 3), (std::vector<std::uint32_t>{3}));
}

TEST(SendWindow, MessagesAreDoneInOrderWhenAllTheirPacketsAre) {
  SendWindow window;
  window.append(Bytes{2000}, 1, kMtu);
  window.append(Bytes{1000}, 2, kMtu);
  window.provide_all();
  numbers(window);
  window.acknowledge(1);
  EXPECT_FALSE(window.take_done());
  window.acknowledge(3);
  EXPECT_EQ(window.take_done()->tag, 1U);
  EXPECT_EQ(window.take_done()->tag, 2U);
  EXPECT_FALSE(window.take_done());
  EXPECT_TRUE(window.is_all_acknowledged());
}

TEST(SendWindow, GoesBackToANumberOrRepeatsOneAlone) {
  SendWindow window;
  window.append(Bytes{2000}, 1, kMtu);
  window.append(Bytes{2000}, 2, kMtu);
  window.provide_all();
  numbers(window);
  window.go_back(2);
  const SendWindow::Piece again = window.take_next(kMtu);
  EXPECT_EQ(again.number, 2U);
  EXPECT_EQ(again.tag, 2U);
  EXPECT_TRUE(again.is_repeated);
  window.repeat(1);
  EXPECT_EQ(numbers(window), (std::vector<std::uint32_t>{1, 3}));
  window.repeat(1);
  window.acknowledge(2);
  EXPECT_FALSE(window.has_next(0)) << "it came after all";
}

// A NAK made it go back, and then an ACK says that the packets had come.
TEST(SendWindow, AnAckBeyondTheNextPacketGoesForwardToIt) {
  SendWindow window;
  window.append(Bytes{4000}, 1, kMtu);
  window.provide_all();
  numbers(window);
  window.go_back(0);
  window.acknowledge(3);
  EXPECT_EQ(numbers(window), (std::vector<std::uint32_t>{3}));
}

TEST(SendWindow, SendsNothingOnceItHasStopped) {
  SendWindow window;
  window.append(Bytes{4000}, 1, kMtu);
  window.provide_all();
  window.take_next(kMtu);
  window.repeat(0);
  window.stop();
  EXPECT_FALSE(window.has_next(0));
}

}  // namespace
}  // namespace weft::test::models_send_window
