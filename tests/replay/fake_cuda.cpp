// A stand-in for CUDA's driver library with two GPUs whose memory is a file in memory; the second
// exports none.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>

namespace {
constexpr int kNoRoom = 2;
constexpr int kNotSupported = 801;
constexpr std::uint64_t kBegin = 0x7f0000000200;  // as cuMemAlloc aligns at least: 512 B
std::size_t allocated = 0;
int current = 0;
}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDeviceGetCount(int* count) {
  *count = 2;
  return 0;
}
int cuDeviceGet(int* device, int number) {
  *device = number;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  current = device;
  *context = &current;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  if (bytes > (std::size_t{1} << 36)) return kNoRoom;
  allocated += bytes;
  *address = kBegin;
  return 0;
}
int cuMemFree_v2(std::uint64_t address) {
  allocated = 0;
  return address == kBegin ? 0 : 1;
}
int cuMemGetHandleForAddressRange(void* handle, std::uint64_t address, std::size_t bytes, int type,
                                  unsigned long long) {
  const bool is_inside = address >= kBegin && address + bytes <= kBegin + allocated;
  if (type != 1 || address % 65'536 != 0 || bytes % 65'536 != 0 || !is_inside) return 1;
  if (current == 1) return kNotSupported;
  const int file = memfd_create("fake_cuda", 0);
  std::memcpy(handle, &file, sizeof file);
  return 0;
}
int cuGetErrorName(int error, const char** name) {
  *name = error == kNoRoom         ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == kNotSupported ? "CUDA_ERROR_NOT_SUPPORTED"
                                   : "CUDA_ERROR";
  return 0;
}
std::size_t fake_cuda_allocated() { return allocated; }

}  // extern "C"
