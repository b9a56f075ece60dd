#include "replay/device/gpu_memory.hpp"

#include <dlfcn.h>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "replay/device/symbols.hpp"
#include "sim/base/error.hpp"

namespace weft::replay {

/// What is needed of CUDA's driver; its types as cuda.h has them on 64-bit Linux.
struct CudaDriver {
  int (*init)(unsigned flags);
  int (*device_count)(int* count);
  int (*device)(int* device, int number);
  int (*retain_context)(void** context, int device);
  int (*release_context)(int device);
  int (*set_context)(void* context);
  int (*allocate)(std::uint64_t* address, std::size_t bytes);
  int (*free)(std::uint64_t address);
  int (*handle_of_range)(void* handle, std::uint64_t address, std::size_t bytes, int type,
                         unsigned long long flags);
  int (*error_name)(int error, const char** name);
};

namespace {

constexpr std::size_t kPage = std::size_t{64} * 1024;
constexpr int kDmaBuf = 1;  ///< CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD

CudaDriver loaded() {
  const char* const name = "libcuda.so.1";
  void* const library = dlopen(name, RTLD_NOW);
  if (library == nullptr) {
    throw InputError(fmt::format("--gpu-memory: no CUDA driver here: {}", dlerror()));
  }
  CudaDriver out{};
  const auto find = [&](const char* symbol, auto& function) {
    find_symbol(library, name, symbol, function);
  };
  find("cuInit", out.init);
  find("cuDeviceGetCount", out.device_count);
  find("cuDeviceGet", out.device);
  find("cuDevicePrimaryCtxRetain", out.retain_context);
  find("cuDevicePrimaryCtxRelease_v2", out.release_context);
  find("cuCtxSetCurrent", out.set_context);
  find("cuMemAlloc_v2", out.allocate);
  find("cuMemFree_v2", out.free);
  find("cuMemGetHandleForAddressRange", out.handle_of_range);
  find("cuGetErrorName", out.error_name);
  return out;
}

const CudaDriver& cuda() {
  static const CudaDriver kLoaded = loaded();
  return kLoaded;
}

void check(int error, const char* what, unsigned gpu) {
  if (error == 0) return;
  const char* name = nullptr;
  if (cuda().error_name(error, &name) != 0 || name == nullptr) name = "unknown error";
  throw InputError(fmt::format("--gpu-memory {}: {}: {}", gpu, what, name));
}

constexpr std::uint64_t rounded_up(std::uint64_t n) { return (n + kPage - 1) / kPage * kPage; }

}  // namespace

GpuMemory::GpuMemory(unsigned gpu, std::size_t bytes)
    : driver_{&cuda()}, gpu_{0}, bytes_{rounded_up(bytes)} {
  const CudaDriver& driver = *driver_;
  check(driver.init(0), "cuInit", gpu);
  int count = 0;
  check(driver.device_count(&count), "cuDeviceGetCount", gpu);
  if (gpu >= static_cast<unsigned>(count)) {
    throw InputError(fmt::format("--gpu-memory {}: CUDA has {} GPUs here, from 0 on", gpu, count));
  }
  check(driver.device(&gpu_, static_cast<int>(gpu)), "cuDeviceGet", gpu);
  void* context = nullptr;
  check(driver.retain_context(&context, gpu_), "cuDevicePrimaryCtxRetain", gpu);
  try {
    check(driver.set_context(context), "cuCtxSetCurrent", gpu);
    check(driver.allocate(&allocation_, bytes_ + kPage), "cuMemAlloc", gpu);
    address_ = rounded_up(allocation_);
    check(driver.handle_of_range(&file_, address_, bytes_, kDmaBuf, 0),
          "cuMemGetHandleForAddressRange (DMA-BUF)", gpu);
  } catch (const InputError&) {
    if (allocation_ != 0) driver.free(allocation_);
    driver.release_context(gpu_);
    throw;
  }
}

GpuMemory::~GpuMemory() {
  close(file_);
  driver_->free(allocation_);
  driver_->release_context(gpu_);
}

}  // namespace weft::replay
