#include "sim/io/kernel_log.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weft::test::io_kernel_log {
namespace {

TEST(KernelLog, TakesAwayWhatEachToolPutsBeforeAMessage) {
  const std::string message = "NVRM: Xid (PCI:0000:19:00): 79, pid=1";
  struct Case {
    std::string before;
    std::string host;
  };
  for (const Case& each : {Case{"[    0.000000] ", ""},
                           Case{"[123456.654321] ", ""},
                           Case{"[Tue Mar  5 10:11:12 2024] ", ""},
                           Case{"kern  :warn  : [   12.000001] ", ""},
                           Case{"Mar 05 10:11:12 node7 kernel: ", "node7"},
                           Case{"Mar  5 10:11:12 node7 kernel: [   12.000001] ", "node7"},
                           Case{"Mar 05 10:11:12.123456 node7 kernel: ", "node7"},
                           Case{"[    0.000000][    T0] ", ""},
                           Case{"[   12.000001] [  C31] ", ""},
                           Case{"<4>[   12.000001] ", ""},
                           Case{"<30>[    0.000000][    T0] ", ""},
                           Case{"[Mar 5 10:11] ", ""},
                           Case{"", ""},
                           Case{"kern  :err   : ", ""},
                           Case{"[Nov15 10:11] ", ""},
                           Case{"[  +0.000123] ", ""},
                           Case{"2024-03-05T10:11:12,123456+01:00 ", ""},
                           Case{"kern  :err   : 2024-03-05T10:11:12,123456-08:00 ", ""},
                           Case{"Tue 2024-03-05 10:11:12 CET node7 kernel: ", "node7"},
                           Case{"Mar 05 10:11:12 node7 kernel: [   12.000001][ T1234] ", "node7"},
                           Case{"2024-03-05T10:11:12+0100 n-7.example.org kernel: ", "n-7"},
                           Case{"2024-03-05T10:11:12+0100 10.0.0.7 kernel: ", "10.0.0.7"},
                           Case{"[Mo Okt  6 17:59:27 2025] ", ""},
                           Case{"[Okt 6 17:59] ", ""},
                           Case{"Okt 06 17:59:27 node7 kernel: ", "node7"},
                           Case{"f\u00e9vr. 06 17:59:27 node7 kernel: ", "node7"},
                           Case{"10\u6708 06 17:59:27 node7 kernel: ", "node7"},
                           Case{"Mar 05 10:11:12 localhost kernel: ", ""}}) {
    const std::string text = each.before + message;
    const std::optional<KernelLine> line = kernel_line(text);
    ASSERT_TRUE(line) << each.before;
    EXPECT_EQ(line->message, message);
    EXPECT_EQ(line->host, each.host);
  }
  EXPECT_EQ(kernel_line("[    1.000000] ")->message, "");
  EXPECT_EQ(kernel_line("[    1.000000] [T] x")->message, "[T] x");
}

TEST(KernelLogBogus, OtherLinesAreNone) {
  for (const char* const line : {"",
                                 "[",
                                 "[]",
                                 "[12] x",
                                 "[1.] x",
                                 "[.5] x",
                                 "[Tue] x",
                                 "[Tue Mar] x",
                                 "[0.25] it",
                                 "[1.1234567] x",
                                 "[Tue F0o  5 10:11:12 2024] x",
                                 "[Tue  5 10:11:12 2024] x",
                                 "[a 5 10:11] x",
                                 "10 06 17:59:27 node7 kernel: x",
                                 "thirteen-bytes 06 17:59:27 node7 kernel: x",
                                 "[2026-05-05 06:16:47] b2:10:11 [3] net.cc:9 NCCL WARN no route",
                                 "kern  :warn",
                                 "kern  :",
                                 " kernel: x",
                                 "the panicking kernel: x",
                                 "10.0.0.7 kernel: x",
                                 "node7 kernel: x",
                                 "Mar 05 node7 kernel: x",
                                 "node7 kernel:x",
                                 "<4>x",
                                 "<4",
                                 "<",
                                 "<4444>[1.000000] x",
                                 "[+] x",
                                 "[Mar 5] x",
                                 "2024-03-05T10:11:12,123456 x",
                                 "2024-03-05T10:11:12,123456+01 x",
                                 "Tue 2024-03-05 node7 kernel: x"}) {
    EXPECT_FALSE(kernel_line(line)) << line;
  }
}

}  // namespace
}  // namespace weft::test::io_kernel_log
