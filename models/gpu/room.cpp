#include "models/gpu/room.hpp"

#include <cmath>

#include "models/gpu/bar1.hpp"
#include "models/gpu/copy_engine.hpp"
#include "models/gpu/memory.hpp"
#include "models/gpu/nvlink.hpp"
#include "models/gpu/sm_copy.hpp"
#include "models/gpu/sm_post.hpp"
#include "models/pcie/port.hpp"

namespace weft {
namespace {

TargetMemory memory_of(const DeviceParams& d, DeviceId gpu, DeviceModel& m) {
  TargetMemory memory{.server = m.add_server({"GPU memory", ServerUnit::kBytesPerSecond,
                                              d.bandwidth("gpu.hbm_rate", gpu).as_bytes_per_s()}),
                      .read_latency = d.duration("gpu.bar1_read_latency", gpu),
                      .write_latency = d.duration("gpu.bar1_write_latency", gpu),
                      .completion_payload = d.number("gpu.completion_payload", gpu),
                      .page = d.bytes("gpu.dma_page", gpu)};
  if (const double reads = d.number("gpu.bar1_reads", gpu); reads > 0) {
    memory.answers = m.add_server(
        {"reads that it answers at a time", ServerUnit::kRequestsInFlight, std::round(reads)});
  }
  return memory;
}

ThreadBlocks blocks_of(const DeviceParams& d, DeviceId gpu, DeviceModel& m) {
  const auto sms = static_cast<std::uint32_t>(std::llround(d.number("gpu.sms", gpu)));
  const auto first = static_cast<ServerNumber>(m.servers.size());
  for (std::uint32_t i = 0; i < sms; ++i) {
    m.add_server({"SM of a thread block", ServerUnit::kWork, 1e9});
  }
  for (std::uint32_t i = 0; i < sms; ++i) {
    m.add_server({"an SM's loads beyond the GPU", ServerUnit::kWork, 1e9});
  }
  return {.first_sm = first,
          .sms = sms,
          .sm_load = d.bandwidth("gpu.sm_load_rate", gpu),
          .sm_store = d.bandwidth("gpu.sm_store_rate", gpu),
          .sm_peer_store = d.bandwidth("gpu.sm_peer_store_rate", gpu),
          .sm_poll = d.bandwidth("gpu.sm_poll_rate", gpu),
          .sm_word_load = d.bandwidth("gpu.sm_word_load_rate", gpu),
          .sm_word_store = d.bandwidth("gpu.sm_word_store_rate", gpu),
          .sm_byte_store = d.bandwidth("gpu.sm_byte_store_rate", gpu),
          .sm_line_share = d.number("gpu.sm_line_share", gpu),
          .sm_load_latency = d.duration("gpu.sm_load_latency", gpu),
          .sm_miss_time = d.duration("gpu.sm_miss_time", gpu),
          .line = d.bytes("gpu.sm_line", gpu),
          .bytes_per_thread = d.bytes("gpu.bytes_per_thread", gpu),
          .far_bytes_per_thread = d.bytes("gpu.far_bytes_per_thread", gpu),
          .far_loads = d.bytes("gpu.sm_far_loads", gpu),
          .threads = static_cast<std::uint32_t>(std::llround(d.number("gpu.block_threads", gpu))),
          .load_latency = d.duration("gpu.hbm_latency", gpu),
          .post_time = d.duration("gpu.post_time", gpu),
          .fence_time = d.duration("gpu.fence_time", gpu),
          .send_queues_in_gpu = d.choice("gpu.send_queues", gpu) == "gpu"};
}

CopyEngine copies_of(const DeviceParams& d, DeviceId gpu) {
  CopyEngine out{.request = std::llround(d.number("gpu.copy_request", gpu)),
                 .tags = static_cast<std::uint32_t>(std::llround(d.number("gpu.copy_tags", gpu))),
                 .c2c_requests = static_cast<std::uint32_t>(
                     std::llround(d.number("gpu.c2c_copy_requests", gpu))),
                 .start = d.duration("gpu.copy_start", gpu),
                 .read_extra = d.duration("gpu.host_load_extra", gpu)};
  if (d.number("gpu.copy_rate", gpu) > 0) out.rate = d.bandwidth("gpu.copy_rate", gpu);
  return out;
}

DeviceModel resolve_gpu(const DeviceParams& d, DeviceId gpu) {
  DeviceModel m;
  m.word = "GPU";
  m.mps = d.number("gpu.mps", gpu);
  m.port = resolve_port(d, gpu);
  m.memory = memory_of(d, gpu, m);
  m.blocks = blocks_of(d, gpu, m);
  m.requester =
      Requester{.read_request = m.blocks->line.as_double(),
                .write_payload = m.blocks->line.as_double(),
                .read_extra = d.duration("gpu.host_load_extra", gpu),
                .write_extra = Duration::from_ns(d.number("gpu.host_load_extra", gpu) / 2),
                .read_cause = "SM load of host memory"};
  m.copies = copies_of(d, gpu);
  m.nvlink = NvlinkPort{.nvlink_rate = d.bandwidth("gpu.nvlink_rate", gpu),
                        .c2c_rate = d.bandwidth("gpu.c2c_rate", gpu),
                        .xgmi_rate = d.bandwidth("gpu.xgmi_rate", gpu),
                        .overhead = d.bytes("gpu.nvlink_overhead", gpu),
                        .latency = d.duration("gpu.nvlink_latency", gpu),
                        .buffer = d.bytes("gpu.nvlink_buffer", gpu)};
  m.bar1 = Bar1{.size = d.bytes("gpu.bar1_size", gpu),
                .used = d.bytes("gpu.bar1_used", gpu),
                .mapping = static_cast<PeerMapping>(d.number("gpu.peer_mapping", gpu)),
                .mapping_word = d.choice("gpu.peer_mapping", gpu),
                .open_modules = d.choice("gpu.kernel_modules", gpu) == "open",
                .pin_time = d.duration("gpu.pin_time", gpu)};
  return m;
}

DeviceModel resolve_nvswitch(const DeviceParams& /*params*/, DeviceId /*device*/) {
  DeviceModel m;
  m.word = "NVSwitch";
  m.crossing = Crossing{.cut_through = false};
  return m;
}

}  // namespace

DeviceRoom gpu_room() {
  return {"gpu",
          DeviceKind::kGpu,
          {kGpuMemoryParams, kBar1Params, kCopyEngineParams, kNvlinkParams, kSmCopyParams,
           kSmPostParams},
          resolve_gpu};
}

DeviceRoom nvswitch_room() { return {"nvswitch", DeviceKind::kNvSwitch, {}, resolve_nvswitch}; }

}  // namespace weft
