#include "replay/record/memory.hpp"

#include <bit>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/vfs.h>
#include <unistd.h>

#include "replay/record/true_symbols.hpp"

namespace weft::record {
namespace {

// CUDA's driver interface, as far as it is needed (cuda.h): CU_POINTER_ATTRIBUTE_MEMORY_TYPE and
// its answer CU_MEMORYTYPE_DEVICE; memory that CUDA does not know is CUDA_ERROR_INVALID_VALUE, and
// a program that has not begun to use CUDA gets CUDA_ERROR_NOT_INITIALIZED.
constexpr int kMemoryType = 2;
constexpr unsigned kTypeHost = 1;
constexpr unsigned kTypeDevice = 2;
constexpr int kInvalidValue = 1;
constexpr int kNotInitialized = 3;
using PointerAttribute = int(void*, int, std::uint64_t);

constexpr long kHugetlbfsMagic = 0x958458f6;  // linux/magic.h

std::uint32_t default_huge_page() {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    unsigned kib = 0;
    if (std::sscanf(line.c_str(), "Hugepagesize: %u kB", &kib) == 1) return kib * 1024;
  }
  return 0;
}

std::uint32_t page_bytes_of_file(const std::string& path) {
  // Anonymous huge pages are files of the kernel's own mount, which has no path.
  if (path.find("/anon_hugepage") == 0) return default_huge_page();
  struct statfs status {};
  if (!path.empty() && path[0] == '/' && statfs(path.c_str(), &status) == 0 &&
      status.f_type == kHugetlbfsMagic) {
    return static_cast<std::uint32_t>(status.f_bsize);
  }
  return static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

trace::MemoryKind kind_of_memory(const void* address) {
  auto* const attribute = true_function<PointerAttribute>("libcuda.so.1", "cuPointerGetAttribute");
  if (attribute == nullptr) return trace::MemoryKind::kHost;
  unsigned type = 0;
  const int result = attribute(&type, kMemoryType, std::bit_cast<std::uint64_t>(address));
  if (result == kInvalidValue || result == kNotInitialized) return trace::MemoryKind::kHost;
  if (result != 0) return trace::MemoryKind::kUnknown;
  if (type == kTypeDevice) return trace::MemoryKind::kGpuPeer;
  return type == kTypeHost ? trace::MemoryKind::kHost : trace::MemoryKind::kUnknown;
}

std::uint32_t page_bytes_of(const void* address) {
  const auto at = std::bit_cast<std::uint64_t>(address);
  std::ifstream in("/proc/self/maps");
  for (std::string line; std::getline(in, line);) {
    unsigned long long begin = 0;
    unsigned long long end = 0;
    int path = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %*s %*s %*s %*s %n", &begin, &end, &path) < 2) break;
    if (at < begin || at >= end) continue;
    return page_bytes_of_file(path > 0 ? line.substr(static_cast<std::size_t>(path)) : "");
  }
  return 0;
}

}  // namespace weft::record
