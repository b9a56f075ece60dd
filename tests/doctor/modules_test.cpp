// What maps GPU memory for NICs: a module, or DMA-BUF by driver and kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/doctor/checked.hpp"

namespace weft::test::doctor_modules {
namespace {

TEST(DoctorModules, AreLoadedOrDmaBufStandsIn) {
  const std::string proprietary = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54  Thu\n";
  const std::string peermem = "nvidia_peermem         16384  0\n";
  const Result result = with_rest("modules", peermem, proprietary);
  EXPECT_SPEAKS(result, "nothing maps GPU memory");
  EXPECT_THAT(result.mended, ::testing::Contains("gpu0.peer_mapping=nvidia-peermem"));
  EXPECT_SPEAKS(
      with_rest("modules", peermem, "[    0.000000] Linux version 5.4.0-42-generic (b@h)\n"),
      "nothing maps GPU memory");
  // A distribution's kernel has newer drivers than its number says.
  EXPECT_EQ(
      with_rest("modules", peermem, "[    0.000000] Linux version 4.18.0-553.el8_10.x86_64 (b@h)\n")
          .verdict,
      Verdict::kUnknown);
  // Open modules, and a kernel that is new enough: DMA-BUF may be used.
  const std::string open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54\n";
  const std::string kernel = "5.15.0-105-generic\n";
  const std::string nccl = "NCCL_DEBUG=INFO";
  const std::string driver = "; cat /proc/driver/nvidia/version";
  const std::string dma_buf_off = "h1:1:1 [0] NCCL INFO NCCL_DMABUF_ENABLE set to 0.\n";
  EXPECT_EQ(with_rest("modules", peermem, open + kernel).verdict, Verdict::kOk);
  for (const auto& [lines, command] : {std::pair{std::string(), nccl + driver + "; uname -r"},
                                       {kernel, nccl + driver},
                                       {open, nccl + "; uname -r"},
                                       {open + kernel + dma_buf_off, nccl},
                                       {open + "4.18.0-553.el8_10.x86_64\n", nccl}}) {
    EXPECT_EQ(with_rest("modules", peermem, lines).verdict, Verdict::kUnknown) << lines;
    EXPECT_EQ(with_rest("modules", peermem, lines).command, command) << lines;
  }
  // What NCCL does counts more.
  const std::string staged =
      "h1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 2[0] [send] via NET/IB/0\n";
  EXPECT_EQ(with_rest("modules", peermem, open + kernel + staged).verdict, Verdict::kUnknown);
  EXPECT_THAT(with_rest("modules", peermem, open + kernel + staged).text,
              ::testing::HasSubstr("NCCL uses no GPUDirect RDMA (rest:"));
  EXPECT_EQ(
      with_rest("modules", peermem, "h1:1:1 [0] NCCL INFO DMA-BUF is available on GPU device 0\n")
          .verdict,
      Verdict::kOk);
}

}  // namespace
}  // namespace weft::test::doctor_modules
