#include "models/nccl/decide/bar1.hpp"

#include <fmt/format.h>

namespace weft {
namespace {

/// NCCL src/include/device.h: elements of 8 B a thread x most threads x steps.
constexpr Bytes kLl128Fifo{120LL * 640 * 8 * 8};
/// Lines of 16 B a thread x most threads x steps.
constexpr Bytes kLlFifo{8LL * 512 * 16 * 8};

Bytes whole_pages(Bytes n) {
  return Bytes{(n.count() + kBar1Page.count() - 1) / kBar1Page.count() * kBar1Page.count()};
}

double mib(Bytes n) { return n.as_double() / (1024.0 * 1024.0); }

}  // namespace

std::vector<PinnedMemory> nccl_pinned(const DeviceParams& devices, const Schedule& schedule) {
  const Fabric& fabric = devices.fabric();
  const std::size_t gpus = fabric.count(DeviceKind::kGpu);
  std::vector<PinnedMemory> out(gpus);
  if (fabric.nodes() < 2 || fabric.count(DeviceKind::kNic) == 0) return out;
  const Bytes fifo = whole_pages(devices.params().bytes("nccl.buffer_size"));
  const Bytes ll128 = whole_pages(kLl128Fifo);
  const Bytes ll = whole_pages(kLlFifo);
  for (std::size_t node = 0; node < 2; ++node) {
    std::vector<std::int64_t> in(gpus);
    std::vector<std::int64_t> leaving(gpus);
    for (const RingGdr& end : ring_gdr(schedule, node, gpus)) {
      ++(end.sends ? leaving : in)[end.gpu];
    }
    for (std::size_t g = 0; g < gpus; ++g) {
      const Bytes bytes = (fifo + ll128 + ll) * in[g] + (fifo + ll128) * leaving[g];
      if (bytes <= out[g].bytes) continue;
      out[g] = {bytes,
                fmt::format("{} channels in x ({:.1f} MiB Simple + {:.1f} LL128 + {:.1f} LL) "
                            "+ {} channels out x ({:.1f} + {:.1f}) = {:.1f} MiB",
                            in[g], mib(fifo), mib(ll128), mib(ll), leaving[g], mib(fifo),
                            mib(ll128), mib(bytes))};
    }
  }
  return out;
}

}  // namespace weft
