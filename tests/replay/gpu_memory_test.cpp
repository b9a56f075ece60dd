// Memory of a GPU by DMA-BUF, on stand-ins for CUDA's driver and for libibverbs: both are found by
// their names, which these have.
#include "replay/device/gpu_memory.hpp"

#include <bit>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>

#include <gtest/gtest.h>

#include "replay/device/endpoint.hpp"
#include "sim/base/error.hpp"

namespace weft::test::replay_gpu_memory {
namespace {

template <typename Make>
std::string thrown(Make make) {
  try {
    make();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

class GpuMemoryOf : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cuda_ = dlopen(WEFT_FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(cuda_, nullptr) << dlerror();
    ASSERT_NE(dlopen(WEFT_FAKE_VERBS, RTLD_NOW), nullptr) << dlerror();
  }
  static std::size_t allocated() {
    return std::bit_cast<std::size_t (*)()>(dlsym(cuda_, "fake_cuda_allocated"))();
  }
  static inline void* cuda_{nullptr};
};

TEST_F(GpuMemoryOf, IsExportedByWholePages) {
  int file = -1;
  {
    const replay::GpuMemory memory(0, 100'000);
    EXPECT_EQ(memory.bytes(), 131'072u);
    EXPECT_EQ(memory.address() % 65'536, 0u);
    EXPECT_GE(allocated(), memory.bytes());
    file = memory.file();
    EXPECT_NE(fcntl(file, F_GETFD), -1);
  }
  EXPECT_EQ(fcntl(file, F_GETFD), -1);
  EXPECT_EQ(allocated(), 0u);
}

TEST_F(GpuMemoryOf, SaysWhyThereIsNone) {
  EXPECT_EQ(thrown([] { replay::GpuMemory(2, 1); }),
            "--gpu-memory 2: CUDA has 2 GPUs here, from 0 on");
  EXPECT_EQ(thrown([] { replay::GpuMemory(0, std::size_t{1} << 40); }),
            "--gpu-memory 0: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(thrown([] { replay::GpuMemory(1, 1); }),
            "--gpu-memory 1: cuMemGetHandleForAddressRange (DMA-BUF): CUDA_ERROR_NOT_SUPPORTED");
  EXPECT_EQ(allocated(), 0u);  // what was refused is given back
}

TEST_F(GpuMemoryOf, IsWhatAnEndpointsRequestsName) {
  const replay::Endpoint endpoint("fake0", 100'000, 2, 0U);
  const replay::Address address = endpoint.address(1);
  EXPECT_EQ(address.memory % 65'536, 0u);
  EXPECT_EQ(endpoint.segment(4096).addr, address.memory);
  EXPECT_EQ(endpoint.segment(4096).lkey, address.key);
  const replay::Endpoint host("fake0", 100'000, 1);
  EXPECT_NE(host.address(0).memory, address.memory);
  EXPECT_EQ(thrown([] { replay::Endpoint("fake0", 1, 1, 1U); }),
            "--gpu-memory 1: cuMemGetHandleForAddressRange (DMA-BUF): CUDA_ERROR_NOT_SUPPORTED");
}

}  // namespace
}  // namespace weft::test::replay_gpu_memory
