#include "sim/io/tool_text.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace weft::test::io_tool_text {
namespace {

using ::testing::StartsWith;

const std::string kOutput = "# Using devices\n\nsize  time\n8  3.10\n16  3.20\n";

std::string with_prefix(const std::string& text, const std::string& prefix,
                        const std::string& behind = "") {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    out += prefix + text.substr(at, end - at) + behind + '\n';
    at = end + 1;
  }
  return out;
}

TEST(ToolText, IsWithoutWhatStandsBeforeEachLine) {
  for (const char* prefix : {"[pod/nccl-launcher-x7f2p/main] ",
                             "[1,0]<stdout>:",
                             "[1,0]<stderr>: ",
                             "[prterun-node01-12345@1,0]<stdout>: ",
                             "Mon Nov  3 10:15:32 2025<stdout>:",
                             "0: ",
                             " 0: ",
                             "node12: ",
                             "worker-1  | ",
                             "2025-11-03T10:15:32.123456789Z ",
                             "[pod/a/b] 2025-11-03T10:15:32Z ",
                             "nccl-launcher-x7f2p mpi-launcher ",
                             "nccl-launcher-x7f2p mpi-launcher 2025-11-03T10:15:32Z ",
                             "\x1b[36m0:\x1b[0m ",
                             "2025-11-03T10:15:32.123456789Z stdout F ",
                             "[rank0]: ",
                             "[default7]:",
                             "[3] ",
                             "(Worker pid=41, ip=10.0.0.2) ",
                             "(train, rank=0, pid=4321) "}) {
    EXPECT_EQ(without_prefixes(with_prefix(kOutput, prefix), "f"), kOutput) << prefix;
  }
  EXPECT_EQ(without_prefixes(with_prefix(kOutput, "\x1b[0;32m", "\x1b[0m\r"), "f"), kOutput);
}

TEST(ToolText, LinesOfTheScriptMayStandAmongThem) {
  const std::string few = "+ mpirun -np 16\n" + with_prefix(kOutput + kOutput, "[1,0]<stdout>:");
  EXPECT_EQ(without_prefixes(few, "f"), "+ mpirun -np 16\n" + kOutput + kOutput);
  const std::string half = kOutput + with_prefix(kOutput, "[1,0]<stdout>:");
  EXPECT_EQ(without_prefixes(half, "f"), half) << "half of the lines have it by chance";
}

TEST(ToolText, WhatAToolPrintsIsNoPrefix) {
  for (const char* text :
       {"State: Active\nWidth: 4x\nSpeed: NDR\n", "node01:10:20 [0] NCCL INFO a\n",
        "lrwxrwxrwx 1 root root 0 a -> b\nlrwxrwxrwx 1 root root 0 c -> d\n",
        "crw-rw-rw- 1 root\ncrw-rw-rw- 1 root\n", "link mlx5_0/1 state\nlink mlx5_1/1 state\n",
        "[1]\t\"H-1\"[1](b8) \t\t# \"n1\"\n[1]\t\"H-1\"[1](b8) \t\t# \"n1\"\n",
        "[1]  \"H-1\"[1](b8)  # \"n1\"\n[1]  \"H-1\"[1](b8)  # \"n1\"\n",
        "[1](b8) \t\"S-1\"[2]\n[1](b8) \t\"S-1\"[2]\n", "{\"a\": 1}"}) {
    EXPECT_THAT(without_prefixes(text, "f"), StartsWith(text));
  }
}

TEST(ToolText, RefusesWhatIsTooLong) {
  EXPECT_THROW(
      {
        try {
          without_prefixes("a\n" + std::string(kMostToolLineBytes + 1, 'x'), "f");
        } catch (const InputError& e) {
          EXPECT_STREQ(e.what(), "f:2: more than 65536 bytes in a line");
          throw;
        }
      },
      InputError);
  EXPECT_THROW(without_prefixes(std::string(kMostToolLines + 1, '\n'), "f"), InputError);
}

}  // namespace
}  // namespace weft::test::io_tool_text
