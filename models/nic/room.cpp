#include "models/nic/room.hpp"

#include <cmath>

#include "models/nic/dma.hpp"
#include "models/nic/emulated.hpp"
#include "models/nic/icm.hpp"
#include "models/nic/rdma_params.hpp"
#include "models/nic/registration.hpp"
#include "models/pcie/port.hpp"

namespace weft {
namespace {

/// Reads typed values of one NIC.
struct Reader {
  const DeviceParams& d;
  DeviceId nic;

  Duration time(const char* key) const { return d.duration(key, nic); }
  Bytes bytes(const char* key) const { return d.bytes(key, nic); }
  bool on(const char* key) const { return d.choice(key, nic) == "on"; }
  std::uint32_t count(const char* key) const {
    return static_cast<std::uint32_t>(std::llround(d.number(key, nic)));
  }
};

Adapter adapter_of(const Reader& r) {
  return {.rate = r.d.bandwidth("nic.rate", r.nic),
          .latency = r.time("nic.latency"),
          .doorbell_latency = r.time("nic.doorbell_latency"),
          .completion_latency = r.time("nic.completion_latency"),
          .qp_wqe_time = r.time("nic.qp_wqe_time"),
          .wqe_bytes = r.bytes("nic.wqe_bytes"),
          .cqe_bytes = r.bytes("nic.cqe_bytes"),
          .blueflame = r.on("nic.blueflame"),
          .inline_max = r.bytes("nic.inline_max"),
          .send_buffer = r.bytes("nic.send_buffer"),
          .max_reads = r.count("nic.max_rd_atomic"),
          .icm_cache = r.bytes("nic.icm_cache"),
          .qp_context = r.bytes("nic.qp_context"),
          .icm_fetches = r.count("nic.icm_fetches"),
          .post_time = r.time("nic.post_time"),
          .doorbell_time = r.time("nic.doorbell_time"),
          .cqe_time = r.time("nic.cqe_time"),
          .receive_time = r.time("nic.receive_time"),
          .poll_time = r.time("nic.poll_time"),
          .is_emulated = r.d.choice("nic.emulation", r.nic) == "copies",
          .cable_loss = r.d.number("nic.cable_loss", r.nic),
          .flap_at = r.time("nic.flap_at"),
          .flap_time = r.time("nic.flap_time"),
          .gdr = r.on("nic.gdr"),
          .peer_memory_api = r.on("nic.peer_memory_api"),
          .dma_buf = r.on("nic.dma_buf"),
          .host_page = r.bytes("nic.host_page"),
          .dma_buf_page = r.bytes("nic.dma_buf_page"),
          .register_time = r.time("nic.register_time"),
          .register_page_time = r.time("nic.register_page_time")};
}

DeviceModel resolve_nic(const DeviceParams& d, DeviceId nic) {
  const Reader r{d, nic};
  DeviceModel m;
  m.word = "NIC";
  m.mps = d.number("nic.mps", nic);
  m.port = resolve_port(d, nic);
  m.memory = TargetMemory{};  // its doorbells
  const std::uint32_t tags = r.count("nic.read_tags");
  const double request = d.number("nic.mrrs", nic);
  m.requester =
      Requester{.read_request = request,
                .tags = m.add_server({"NIC read tags in flight", ServerUnit::kRequestsInFlight,
                                      static_cast<double>(tags)}),
                .tag_count = tags,
                .read_cause = "NIC read round trip",
                .relaxed_ordering = r.on("nic.relaxed_ordering"),
                .may_be_strict = true,
                .ats = r.on("nic.ats")};
  // What is asked for also has its place in the send buffer, until it leaves, `nic.latency` after
  // it came. Of twice as many places as tags none is waited for: a round trip takes longer than
  // that.
  const double places = r.bytes("nic.send_buffer").as_double() / request;
  if (places < 2.0 * tags) {
    m.requester->places = m.add_server({"NIC send buffer", ServerUnit::kRequestsInFlight, places});
    m.requester->keeps_place = r.time("nic.latency");
  }
  m.adapter = adapter_of(r);
  m.adapter->elements = m.add_server(
      {"work queue elements of a NIC", ServerUnit::kPerSecond, 1 / r.time("nic.wqe_time").as_s()});
  return m;
}

}  // namespace

DeviceRoom nic_room() {
  return {"nic",
          DeviceKind::kNic,
          {kNicParams, kNicPacketParams, kIcmParams, kRegistrationParams, kEmulatedNicParams},
          resolve_nic};
}

}  // namespace weft
