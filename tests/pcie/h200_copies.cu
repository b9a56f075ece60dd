// Copies between one GPU and pinned host memory, back to back in one stream a direction, and loads of host memory by
// one GPU thread while copies run. The streams wait at a gate until all copies are queued, so that nothing of the CPU's
// is in the times. Prints what stands in h200-copies-2026-11-21.csv:
//   test,to_host_bytes,from_host_bytes,to_host_us,from_host_us   a copy: microseconds each, the least of 7 runs
//   load,to_host_bytes,from_host_bytes,load_us,0                 a load, while copies of these sizes run (0: none)
// Build and run: nvcc -O2 -std=c++17 h200_copies.cu -o h200_copies -lcuda && ./h200_copies
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <cuda.h>
#include <cuda_runtime.h>

static void check(cudaError_t error) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(1);
  }
}

constexpr std::size_t kBuffer = 64 << 20;
constexpr std::size_t kLoads = 1 << 15;  // one a page

__global__ void chase(const unsigned* next, int loads, unsigned long long* out) {
  unsigned at = 0;
  const long long begin = clock64();
  for (int i = 0; i < loads; ++i) at = ((volatile const unsigned*)next)[at];
  out[1] = clock64() - begin;
  out[0] = at;
}

struct Bench {
  char *to, *from, *gpu_from, *gpu_to;
  cudaStream_t out, in, loads;
  cudaEvent_t out_began, out_ended, in_began, in_ended;
  volatile unsigned* gate;
  unsigned* chain;
  unsigned long long* result;
  unsigned run = 0;
  double clock_khz;

  Bench() {
    check(cudaHostAlloc((void**)&to, kBuffer, 0));
    check(cudaHostAlloc((void**)&from, kBuffer, 0));
    check(cudaMalloc((void**)&gpu_from, kBuffer));
    check(cudaMalloc((void**)&gpu_to, kBuffer));
    std::memset(to, 1, kBuffer);
    std::memset(from, 2, kBuffer);
    for (cudaStream_t* s : {&out, &in, &loads}) check(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    for (cudaEvent_t* e : {&out_began, &out_ended, &in_began, &in_ended}) check(cudaEventCreate(e));
    check(cudaHostAlloc((void**)&gate, 4096, 0));
    *gate = 0;
    check(cudaHostAlloc((void**)&chain, kLoads * 4096, 0));
    for (std::size_t i = 0; i < kLoads; ++i) chain[i * 1024] = (unsigned)((i * 7919 + 1) % kLoads * 1024);
    check(cudaHostAlloc((void**)&result, 64, 0));
    int khz = 0;
    check(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    clock_khz = khz;
  }
  void queue(std::size_t to_host, int outs, std::size_t from_host, int ins) {
    ++run;
    for (cudaStream_t s : {out, in}) cuStreamWaitValue32(s, (CUdeviceptr)gate, run, CU_STREAM_WAIT_VALUE_GEQ);
    check(cudaEventRecord(out_began, out));
    for (int i = 0; i < outs; ++i) check(cudaMemcpyAsync(to, gpu_from, to_host, cudaMemcpyDeviceToHost, out));
    check(cudaEventRecord(out_ended, out));
    check(cudaEventRecord(in_began, in));
    for (int i = 0; i < ins; ++i) check(cudaMemcpyAsync(gpu_to, from, from_host, cudaMemcpyHostToDevice, in));
    check(cudaEventRecord(in_ended, in));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  void copies(const char* test, std::size_t to_host, int outs, std::size_t from_host, int ins) {
    double best_out = 1e30, best_in = 1e30;
    for (int i = 0; i < 7; ++i) {
      queue(to_host, outs, from_host, ins);
      *gate = run;
      check(cudaDeviceSynchronize());
      float ms = 0;
      check(cudaEventElapsedTime(&ms, out_began, out_ended));
      best_out = std::min<double>(best_out, ms);
      check(cudaEventElapsedTime(&ms, in_began, in_ended));
      best_in = std::min<double>(best_in, ms);
    }
    std::printf("%s,%zu,%zu,%.3f,%.3f\n", test, to_host, from_host, outs ? best_out * 1e3 / outs : 0,
                ins ? best_in * 1e3 / ins : 0);
  }
  void load(std::size_t to_host, std::size_t from_host) {
    const double each = std::max(to_host, from_host) / 40e3 + 4;  // microseconds, about
    const int count = to_host + from_host ? std::min(400.0, 10e3 / each) + 2 : 0;
    double sum = 0;
    constexpr int kRuns = 5;
    for (int i = 0; i < kRuns; ++i) {
      const int n = count ? std::max(50.0, count * each * 0.3 / 3) : 2000;
      queue(to_host, to_host ? count : 0, from_host, from_host ? count : 0);
      *gate = run;
      std::this_thread::sleep_for(std::chrono::microseconds((int)(count * each * 0.05)));
      chase<<<1, 1, 0, loads>>>(chain, n, result);
      check(cudaStreamSynchronize(loads));
      if (count && cudaStreamQuery(from_host ? in : out) != cudaErrorNotReady) std::fprintf(stderr, "copies ended early\n");
      check(cudaDeviceSynchronize());
      sum += result[1] / clock_khz * 1e3 / n;
    }
    std::printf("load,%zu,%zu,%.3f,0\n", to_host, from_host, sum / kRuns);
  }
};

int main() {
  Bench b;
  std::printf("test,to_host_bytes,from_host_bytes,to_host_us,from_host_us\n");
  constexpr std::size_t kBig = 16 << 20;
  b.copies("warm", 4096, 200, 4096, 200);
  b.load(0, 0);
  b.load(0, 0);
  b.load(kBig, 0);
  b.load(0, kBig);
  b.load(kBig, kBig);
  for (std::size_t n = 64; n <= (16 << 20); n *= n < 65536 ? 4 : 2) {
    const int k = n < (1 << 20) ? 200 : 40;
    const int big = 2 + (int)(k * (n / 40e3 + 6) / 300);
    b.copies("alone", n, k, 0, 0);
    b.copies("alone", 0, 0, n, k);
    b.copies("both", n, k, n, k);
    if (n < kBig) b.copies("loaded", n, k, kBig, big);
    if (n < kBig) b.copies("loaded", kBig, big, n, k);
  }
}
