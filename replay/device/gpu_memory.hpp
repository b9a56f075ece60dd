#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::replay {

struct CudaDriver;  // its functions

/// A buffer in a GPU's memory that other devices reach by DMA-BUF. CUDA's driver library
/// (libcuda.so.1) is loaded when the first one is made: the program starts where there is none.
///
/// The range that DMA-BUF exports begins and ends at multiples of 64 KiB, of which every host's
/// page size is a divisor (CUDA driver API, cuMemGetHandleForAddressRange).
class GpuMemory {
 public:
  /// `gpu`: its number as CUDA counts. Throws InputError: no CUDA driver, no such GPU, no room, or
  /// the GPU, driver or kernel export no memory (DMA-BUF: Turing and later, driver 515 and later,
  /// open kernel modules; NVIDIA, GPUDirect RDMA documentation).
  GpuMemory(unsigned gpu, std::size_t bytes);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  std::uint64_t address() const { return address_; }
  std::size_t bytes() const { return bytes_; }  ///< of the range, at least what was asked for
  int file() const { return file_; }            ///< the DMA-BUF's descriptor

 private:
  const CudaDriver* driver_;  // lives as long as the program
  int gpu_;
  std::uint64_t allocation_{0};
  std::uint64_t address_{0};
  std::size_t bytes_;
  int file_{-1};
};

}  // namespace weft::replay
