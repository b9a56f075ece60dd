#include "models/perftest/gpu_sender.hpp"

#include <algorithm>

namespace weft {
namespace {

constexpr std::uint64_t kQueuesAt = std::uint64_t{1} << 42;  // in a memory, above all buffers
constexpr std::int64_t kDoorbell = 8;
constexpr std::int64_t kRequest = 64;  // to the proxy: a cache line
constexpr unsigned kThreadShift = 8;

constexpr std::uint64_t pack(std::uint8_t kind, std::uint32_t thread) {
  return std::uint64_t{thread} << kThreadShift | kind;
}
constexpr std::uint32_t thread_of(std::uint64_t what) {
  return static_cast<std::uint32_t>(what >> kThreadShift);
}

}  // namespace

GpuSender::GpuSender(PacketCluster& cluster, const PerftestPlan& plan)
    : cluster_{cluster},
      plan_{plan},
      has_proxy_{plan.post == PerftestPost::kProxy},
      queues_in_gpu_{cluster.machine().model(plan.ends.from).blocks->send_queues_in_gpu},
      stores_{cluster.host_of(plan.ends.from)
                  .add_engine(cluster.host_of(plan.ends.from).sm_engine(plan.ends.from))} {
  const DeviceId gpu = plan.ends.from;
  const DeviceId nic = plan.ends.from_nic;
  const DeviceId cpu = cluster.machine().fabric().root_cpu(gpu);
  const ThreadBlocks& blocks = *cluster.machine().model(gpu).blocks;
  const Adapter& adapter = *cluster.machine().model(nic).adapter;
  element_time_ = blocks.post_time;
  fence_time_ = blocks.fence_time;
  load_time_ = blocks.load_latency;
  target_load_time_ = cluster.machine().model(plan.ends.to).blocks->load_latency;
  post_time_ = adapter.post_time;
  doorbell_time_ = adapter.doorbell_time;
  element_ = adapter.wqe_bytes;
  poll_time_ = adapter.poll_time;
  cqe_time_ = adapter.cqe_time;
  root_time_ = cluster.machine().model(cpu).crossing_time();

  PacketHost& host = cluster.host_of(gpu);
  const auto target = [&](DeviceId from, DeviceId to) {
    return RdmaBuffer{.path = host.path(from, to, false),
                      .address = PacketHost::memory_at(to) + kQueuesAt};
  };
  elements_ = target(gpu, cpu);
  if (has_proxy_) {
    proxy_stores_ =
        &host.add_engine({.name = cluster.machine().fabric().full_name(cpu), .write_payload = 64});
    flags_ = target(cpu, gpu);
  } else {
    doorbells_ = target(gpu, nic);
  }
  const bool is_read = plan.op == RdmaOp::kRead;
  for (std::uint32_t i = 0; i < plan.qps; ++i) {
    const std::uint64_t offset = plan.offset + i * kBufferStride;
    threads_.emplace_back();
    Thread& t = threads_.back();
    t.id = cluster.connect(nic, plan.ends.to_nic, i);
    t.local = cluster.buffer(nic, gpu, !is_read, offset);
    t.remote = cluster.buffer(plan.ends.to_nic, plan.ends.to, is_read, offset);
    if (!has_proxy_) {
      const DeviceId queues = queues_in_gpu_ ? gpu : cpu;
      RdmaBuffer completions = cluster.buffer(nic, gpu, false, kQueuesAt);
      completions.path = host.path(nic, gpu, false, true);
      cluster.nics().place_queues(t.id, cluster.buffer(nic, queues, true, kQueuesAt), completions);
    }
  }
}

void GpuSender::start() {
  for (std::uint32_t i = 0; i < plan_.qps; ++i) next(i);
}

bool GpuSender::has_settled() const {
  return std::all_of(threads_.begin(), threads_.end(), [](const Thread& t) { return t.known > 0; });
}

/// On average over the threads.
Duration GpuSender::posting() const {
  const auto threads = static_cast<std::int64_t>(threads_.size());
  return has_proxy_ ? writing_ : Duration::ps(writing_.count_ps() / threads);
}

Duration GpuSender::waiting() const { return (cluster_.events().now() - Time{}) - posting(); }

Time GpuSender::ended() const {
  return plan_.op == RdmaOp::kRead ? steps().back().at : visible_ + target_load_time_;
}

Bytes GpuSender::delivered() const {
  const DeviceId nic = plan_.op == RdmaOp::kRead ? plan_.ends.from_nic : plan_.ends.to_nic;
  return cluster_.nics().landed(cluster_.nic(nic));
}

void GpuSender::later(Duration delay, Event event, std::uint32_t thread) {
  cluster_.events().schedule_after(delay, Phase::kCompute, *this,
                                   pack(static_cast<std::uint8_t>(event), thread));
}

void GpuSender::store(DmaEngine& engine, const RdmaBuffer& to, std::int64_t bytes, Dma kind,
                      std::uint32_t thread) {
  engine.submit({.path = to.path,
                 .is_read = false,
                 .address = to.address,
                 .bytes = Bytes{bytes},
                 .tag = pack(static_cast<std::uint8_t>(kind), thread),
                 .client = this});
}

/// How many requests the next doorbell of a thread is for.
std::uint32_t GpuSender::room(const Thread& t) const {
  const std::uint64_t list = std::min<std::uint64_t>(plan_.post_list, plan_.iterations - t.posted);
  return plan_.tx_depth - (t.posted - t.known) < list ? 0 : static_cast<std::uint32_t>(list);
}

void GpuSender::next(std::uint32_t index) {
  Thread& t = threads_[index];
  const std::uint32_t requests = room(t);
  if (t.is_busy || requests == 0) return;
  t.is_busy = true;
  t.posted += requests;
  t.on_the_way.push(requests);
  t.writing = requests;
  const Duration work = element_time_ * requests + fence_time_ * (has_proxy_ ? 1 : 2);
  if (!has_proxy_) writing_ += work;
  later(work, Event::kWritten, index);
}

void GpuSender::on_event(std::uint64_t what) {
  const std::uint32_t index = thread_of(what);
  Thread& t = threads_[index];
  switch (static_cast<Event>(what & 0xff)) {
    case Event::kWritten:
      t.is_busy = false;
      if (has_proxy_) {
        store(stores_, elements_, kRequest, Dma::kRequest, index);
      } else if (queues_in_gpu_) {
        store(stores_, doorbells_, kDoorbell, Dma::kDoorbell, index);
      } else {
        t.is_busy = true;  // until they are there
        store(stores_, elements_, element_.count() * t.writing, Dma::kElements, index);
        return;
      }
      next(index);
      return;
    case Event::kRequested:
    case Event::kEnded:
      jobs_.push({index, static_cast<Event>(what & 0xff) == Event::kEnded});
      if (jobs_.size() == 1) work();
      return;
    case Event::kPosted:
      jobs_.pop();
      post(index);
      work();
      return;
    case Event::kTold:
      jobs_.pop();
      store(*proxy_stores_, flags_, kDoorbell, Dma::kTold, index);
      work();
      return;
    case Event::kKnown:
      know(index);
      return;
  }
}

/// The proxy's next job.
void GpuSender::work() {
  if (jobs_.empty()) return;
  const Job job = jobs_.front();
  const Duration takes =
      job.is_completion ? cqe_time_ + root_time_
                        : post_time_ * threads_[job.thread].on_the_way.front() + doorbell_time_;
  writing_ += takes;
  later(takes, job.is_completion ? Event::kTold : Event::kPosted, job.thread);
}

void GpuSender::on_dma_done(std::uint64_t tag) {
  const std::uint32_t index = thread_of(tag);
  switch (static_cast<Dma>(tag & 0xff)) {
    case Dma::kElements:
      threads_[index].is_busy = false;
      store(stores_, doorbells_, kDoorbell, Dma::kDoorbell, index);
      next(index);
      return;
    case Dma::kDoorbell:
      post(index);
      return;
    case Dma::kRequest:
      later(poll_time_, Event::kRequested, index);
      return;
    case Dma::kTold:
      later(load_time_, Event::kKnown, index);
      return;
  }
}

/// A doorbell is at the NIC, or the proxy rings one.
void GpuSender::post(std::uint32_t index) {
  Thread& t = threads_[index];
  const std::uint32_t requests = t.on_the_way.pop();
  requests_.clear();
  for (std::uint32_t i = 0; i < requests; ++i) {
    const std::uint64_t number = ++t.rung;
    requests_.push_back(
        {.op = plan_.op,
         .bytes = plan_.size,
         .local = t.local,
         .remote = t.remote,
         .is_signalled = number == plan_.iterations || number % plan_.cq_moderation == 0,
         .tag = index,
         .client = this});
  }
  posted_ += requests;
  posted(cluster_.events().now(), requests);
  if (has_proxy_) {
    cluster_.nics().post(t.id, requests_);
  } else {
    cluster_.nics().rang(t.id, requests_);
  }
  if (has_posted_all()) changed();
}

void GpuSender::on_completion(std::uint64_t tag) {
  const auto thread = static_cast<std::uint32_t>(tag);
  if (has_proxy_) {
    later(poll_time_, Event::kEnded, thread);
  } else {
    later(load_time_, Event::kKnown, thread);
  }
}

void GpuSender::on_visible(std::uint64_t /*tag*/) { visible_ = cluster_.events().now(); }

void GpuSender::know(std::uint32_t index) {
  Thread& t = threads_[index];
  const std::uint64_t known = std::min(plan_.iterations, t.known + plan_.cq_moderation);
  known_ += known - t.known;
  t.known = known;
  step(cluster_.events().now(), known_);
  next(index);
}

}  // namespace weft
