// Which kernel a host runs, and of which kind NVIDIA's modules are.
#include "sim/input/evidence/kernel.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/evidence/evidence_data.hpp"

namespace weft::test::evidence_kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kLinux = std::string(fact::kVersion) + "Linux";
const std::string kDriver = std::string(fact::kVersion) + "NVIDIA driver";

TEST(Kernel, IsReadOfUnameAndTheKernelsLog) {
  const std::string all =
      "Linux node1 5.15.0-105-generic #115-Ubuntu SMP Mon Apr 15 09:52:04 UTC 2024 x86_64 "
      "GNU/Linux\n";
  for (const std::string& text :
       {all, "$ uname -a\n" + all, std::string("5.15.0-105-generic\n"),
        std::string("root@n:~# uname -r\n5.15.0-105-generic\n"),
        std::string("Linux version 5.15.0-105-generic (buildd@lcy02-amd64-007) #115-Ubuntu\n"),
        std::string("[    0.000000] Linux version 5.15.0-105-generic (buildd@lcy02) #115\n")}) {
    EXPECT_EQ(said(evidence_of(text), "host", kLinux), "5.15.0-105-generic") << text;
  }
  const Evidence both = evidence_of(
      "$ uname -r\n5.15.0-105-generic\n$ lsmod\n"
      "Module                  Size  Used by\nnvidia 12177408 90\n");
  EXPECT_THAT(both.sources[0].kinds, ElementsAre(EvidenceKind::kUname, EvidenceKind::kLsmod));
  EXPECT_THAT(refusal_of("$ ls /lib/modules\n5.15.0-105-generic\n5.15.0-91-generic\n"),
              HasSubstr("looks like uname -a, but says nothing"));
}

// `dmesg | grep "Linux version"` has no complaints of any kind.
TEST(Kernel, TheFirstLineOfItsLogAloneComplainsOfNothing) {
  const std::string first = "[    0.000000] Linux version 5.15.0-105-generic (b@h) #115\n";
  const std::string messages = std::string(fact::kLog) + "messages";
  EXPECT_EQ(said(evidence_of(first), "host", messages), "none");
  EXPECT_EQ(said(evidence_of(first + "[    0.500000] x\n"), "host", messages), "read");
}

TEST(Kernel, ModinfoSaysOfWhichKindNvidiasModulesAre) {
  const auto modinfo = [](const std::string& module, const std::string& license) {
    return "filename:       /lib/modules/5.15.0-105-generic/updates/dkms/" + module +
           "\nalias:          char-major-195-*\nversion:        550.54.15\nlicense:        " +
           license + "\nvermagic:       5.15.0-105-generic SMP mod_unload modversions\n";
  };
  const Evidence open = evidence_of(modinfo("nvidia.ko.zst", "Dual MIT/GPL"));
  EXPECT_EQ(said(open, "host", fact::kKernelModules), "open");
  EXPECT_EQ(said(open, "host", kDriver), "550.54.15");
  EXPECT_EQ(said(open, "host", kLinux), "5.15.0-105-generic");
  EXPECT_EQ(said(evidence_of(modinfo("nvidia-current.ko", "NVIDIA")), "host", fact::kKernelModules),
            "proprietary");
  const std::string other = modinfo("nvidia-peermem.ko", "Dual MIT/GPL");
  EXPECT_EQ(said(evidence_of(other), "host", fact::kKernelModules), "none");
  EXPECT_EQ(said(evidence_of(modinfo("nvidia.ko", "NVIDIA") + other), "host", fact::kKernelModules),
            "proprietary");
  std::string parameters;  // no host is called so
  for (int i = 0; i < 40; ++i)
    parameters += "parm:           NVreg_Option" + std::to_string(i) + ":int\n";
  EXPECT_EQ(
      said(evidence_of(modinfo("nvidia.ko", "NVIDIA") + parameters), "host", fact::kKernelModules),
      "proprietary");
  EXPECT_EQ(said(evidence_of("$ modinfo nvidia | grep license\nlicense:        Dual MIT/GPL\n"),
                 "host", fact::kKernelModules),
            "open");
}

TEST(Kernel, DmaBufIsRegisteredSince512) {
  for (const char* able : {"5.12.0-1", "5.15.0-105-generic", "6.1.0", "5.14.0-427.el9.x86_64"}) {
    EXPECT_EQ(registers_dma_buf(able), true) << able;
  }
  EXPECT_EQ(registers_dma_buf("5.4.0-42-generic"), false);
  for (const char* unknown :
       {"4.18.0-553.el8_10.x86_64", "5.10.2-1.amzn2.x86_64", "5.3.18-150300-default", "", "next"}) {
    EXPECT_EQ(registers_dma_buf(unknown), std::nullopt) << unknown;
  }
}

}  // namespace
}  // namespace weft::test::evidence_kernel
