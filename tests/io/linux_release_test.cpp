#include "sim/io/linux_release.hpp"

#include <gtest/gtest.h>

namespace weft::test::io_linux_release {
namespace {

TEST(LinuxRelease, IsThatOfUname) {
  for (const char* line :
       {"Linux node1 5.15.0-105-generic #115-Ubuntu SMP Mon Apr 15 09:52:04 UTC 2024 x86_64",
        "Linux 5.15.0-105-generic x86_64", "Linux 5.15.0-105-generic",
        "Linux version 5.15.0-105-generic (buildd@lcy02) (gcc 11.4.0) #115-Ubuntu SMP",
        " 5.15.0-105-generic "}) {
    EXPECT_EQ(linux_release_of(line), "5.15.0-105-generic") << line;
  }
  for (const char* release : {"4.18.0-553.el8_10.x86_64", "6.1.0+", "6.9.1-arch1-1",
                              "5.10.102.1-microsoft-standard-WSL2", "6.8.0-1021-aws"}) {
    EXPECT_EQ(linux_release_of(release), release);
  }
  EXPECT_EQ(linux_release_of("Linux n 6.6.30 #1 SMP"), "6.6.30");
}

TEST(LinuxRelease, IsNoOtherProgramsVersion) {
  for (const char* line :
       {"", "Linux", "2.20.5+cuda12.4", "2.3.0+cu121", "550.54.15", "5.8-3.0.7.0", "6.6.30",
        "4.4.4.4", "3.0.7.0", "28.39.1002", "5.15.0-105-generic 5.15.0-91-generic",
        "Linux Ubuntu 22.04.4 LTS", "5.15.", "5..0-1", "5.15.0-1:a", "Linux is not 5.15.0-1"}) {
    EXPECT_EQ(linux_release_of(line), "") << line;
  }
}

}  // namespace
}  // namespace weft::test::io_linux_release
