#include "models/transport/gpu_doorbells.hpp"

#include <utility>

namespace weft {
namespace {

constexpr Bytes kDoorbell{8};

}  // namespace

GpuDoorbells::GpuDoorbells(PacketCluster& cluster, DeviceId gpu, DeviceId nic)
    : nics_{cluster.nics()},
      stores_{cluster.host_of(gpu).add_engine(cluster.host_of(gpu).sm_engine(gpu, 1))},
      routes_{cluster.host_of(gpu).routes(gpu, nic, false)},
      address_{PacketHost::memory_at(nic) + kQueuesAt} {
  const Machine& machine = cluster.machine();
  const bool in_gpu = machine.model(gpu).blocks->send_queues_in_gpu;
  elements_ = cluster.buffer(nic, in_gpu ? gpu : machine.fabric().root_cpu(gpu), true, kQueuesAt);
  completions_ = cluster.buffer(nic, gpu, false, kQueuesAt);
  completions_.routes = cluster.host_of(gpu).routes(nic, gpu, false, true);
}

void GpuDoorbells::place(RdmaQpId qp) { nics_.place_queues(qp, elements_, completions_); }

void GpuDoorbells::ring(RdmaQpId qp, std::vector<RdmaRequest> requests) {
  on_the_way_.push({qp, std::move(requests)});
  stores_.submit({.routes = routes_,
                  .is_read = false,
                  .address = address_,
                  .bytes = kDoorbell,
                  .tag = 0,
                  .client = this});
}

void GpuDoorbells::on_dma_done(std::uint64_t /*tag*/) {
  const Doorbell rung = on_the_way_.pop();
  nics_.rang(rung.qp, rung.requests);
}

}  // namespace weft
