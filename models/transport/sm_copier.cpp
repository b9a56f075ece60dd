#include "models/transport/sm_copier.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "models/gpu/sm_copy.hpp"
#include "models/transport/contraction.hpp"
#include "sim/base/error.hpp"

namespace weft {
namespace {

// Tags: pass, warp, and whether it is a store.
constexpr unsigned kWarpShift = 1;
constexpr unsigned kPassShift = 32;

// Events of a warp.
constexpr std::uint64_t kLoaded = 0;
constexpr std::uint64_t kWorked = 1;
// Of none: the pass has begun, and a warp is free.
constexpr std::uint64_t kBegun = ~std::uint64_t{0};

// A step without data is its flag alone.
constexpr std::int64_t kFlagBytes = 8;

DeviceId initiator(const Walk& legs) { return legs.front().initiator; }

/// A load of the GPU's own memory, a trip of many.
bool is_trip_of_many(const Leg& leg) {
  return leg.medium == Leg::Medium::kLocal && leg.kind == Leg::Kind::kRead &&
         leg.trip == Leg::Trip::kSteady;
}

/// A packet has one target: none is copied or added up on its way.
void refuse_switched(const Fabric& fabric, const Leg& leg) {
  for (const DeviceId end : {leg.source, leg.sink}) {
    if (fabric.device(end).kind != DeviceKind::kNvSwitch) continue;
    throw InputError("the packet transport has no multicast and no reduction in " +
                     fabric.full_name(end) +
                     " (NVLS, NVLSTree): take --fidelity fluid or --env NCCL_NVLS_ENABLE=0");
  }
}

}  // namespace

SmCopier::SmCopier(PacketHost& host, const Walk& legs, std::uint32_t number, std::uint64_t address,
                   Client& client)
    : events_{host.network().events()},
      own_memory_{host.gpu_memory(initiator(legs))},
      sm_{host.sm(initiator(legs), number)},
      work_{sm_ns_per_byte(host.machine(), legs)},
      client_{client} {
  const DeviceId gpu = initiator(legs);
  const ThreadBlocks& blocks = *host.machine().model(gpu).blocks;
  const auto far = std::find_if(legs.begin(), legs.end(), is_far_load);
  const Leg& leading = far != legs.end() ? *far : legs.front();
  const std::uint32_t threads = threads_of(blocks, leading);
  const std::int64_t in_flight =
      (far != legs.end() ? sm_in_flight(blocks, leading) : blocks.in_flight(threads)).count();
  warps_.resize(std::max(1U, threads / kWarp));
  piece_ = std::max<std::int64_t>(1, in_flight / static_cast<std::int64_t>(warps_.size()));
  const auto trip = std::find_if(legs.begin(), legs.end(), is_trip_of_many);
  if (trip != legs.end() && far == legs.end()) {
    const bool by_word = trip->flags == Leg::Flags::kEachWord;
    ends_ = by_word ? Ends::kWhenAWarpIsFree : Ends::kWhenStored;
    if (by_word) {
      piece_ = pieces(trip_of(blocks, *trip), Bytes{static_cast<std::int64_t>(warps_.size())});
    }
  }
  DmaClient& itself = *this;
  for (const Leg& leg : legs) {
    refuse_switched(host.machine().fabric(), leg);
    if (leg.initiator != gpu) throw std::logic_error("SmCopier: legs of several initiators");
    const auto remote = [&](DeviceId memory, PcieRoutesId routes) {
      DmaEngine::Settings settings = host.sm_engine(gpu, leg.medium == Leg::Medium::kNvlink);
      if (is_far_load(leg) && leg.flags == Leg::Flags::kNone) {
        settings.shared_tags = &host.sm_loads(gpu, number);
      } else if (is_far_load(leg)) {
        settings.tags = static_cast<std::uint32_t>(pieces(Bytes{in_flight}, blocks.line));
      }
      return Remote{&host.add_engine(settings), routes, PacketHost::memory_at(memory) + address};
    };
    if (leg.medium == Leg::Medium::kLocal) {
      if (ends_ != Ends::kWhenStored) {  // else in what its SM works for a piece (sm_ns_per_byte)
        own_latency_ = std::max(own_latency_, sm_load_latency(blocks, leg));
      }
      (leg.kind == Leg::Kind::kRead ? own_reads_ : own_writes_) += data_share(leg);
    } else if (leg.kind == Leg::Kind::kRead && leg.medium == Leg::Medium::kPcie) {
      sources_.push_back(remote(leg.source, host.routes(gpu, leg.source, true)));
    } else if (leg.kind == Leg::Kind::kWrite && leg.medium == Leg::Medium::kPcie) {
      sinks_.push_back(remote(leg.sink, host.routes(gpu, leg.sink, false)));
    } else if (leg.kind == Leg::Kind::kWrite && leg.medium == Leg::Medium::kNvlink) {
      sinks_.push_back(remote(leg.sink, host.nvlink_routes(gpu, leg.sink)));
    } else {
      peers_.push_back(std::make_unique<NvlinkLoads>(host, gpu, leg.source, warps_.size(), itself));
    }
  }
}

void SmCopier::begin(Bytes bytes) {
  if (is_running_) throw std::logic_error("SmCopier: a pass before the last one was sent");
  is_running_ = true;
  left_ = std::max(bytes.count(), kFlagBytes);
  passes_.push({});
  for (std::uint32_t w = 0; w < warps_.size() && left_ > 0; ++w) {
    if (!warps_[w].has_piece) next_piece(w);
  }
  if (ends_ == Ends::kWhenAWarpIsFree && with_piece_ < warps_.size()) {
    events_.schedule_at(events_.now(), Phase::kDeliver, *this, kBegun);
  }
}

Time SmCopier::use_own(double share, std::int64_t bytes) {
  return own_memory_.use(Bytes{std::llround(share * static_cast<double>(bytes))});
}

void SmCopier::next_piece(std::uint32_t index) {
  Warp& warp = warps_[index];
  warp.bytes = std::min(left_, piece_);
  warp.offset = offset_;
  left_ -= warp.bytes;
  offset_ += static_cast<std::uint64_t>(warp.bytes);
  warp.is_loaded = false;
  warp.has_piece = true;
  ++with_piece_;
  warp.pass = first_pass_ + static_cast<std::uint32_t>(passes_.size()) - 1;
  ++passes_.at(warp.pass - first_pass_).pieces;
  warp.loads =
      static_cast<std::uint32_t>(sources_.size() + peers_.size()) + (own_reads_ > 0 ? 1 : 0);
  ++busy_warps_;
  const std::uint64_t tag = std::uint64_t{index} << kWarpShift;
  if (warp.loads == 1 && own_reads_ > 0) load_own(index);
  for (const auto& peer : peers_) peer->load(index, Bytes{warp.bytes}, tag);
  for (const Remote& source : sources_) {
    source.engine->submit({.routes = source.routes,
                           .is_read = true,
                           .address = source.address + warp.offset,
                           .bytes = Bytes{warp.bytes},
                           .tag = tag,
                           .client = this});
  }
  if (warp.loads == 0) have_piece(index);
}

void SmCopier::on_event(std::uint64_t what) {
  if (what == kBegun) return check_sent();
  const auto index = static_cast<std::uint32_t>(what >> kWarpShift);
  if ((what & 1) == kLoaded) {
    loaded(index);
  } else {
    store(index);
  }
}

/// What comes from beyond the GPU is waited for before its own memory is asked.
void SmCopier::loaded(std::uint32_t index) {
  const std::uint32_t left = --warps_[index].loads;
  if (left == 0) return have_piece(index);
  if (left == 1 && own_reads_ > 0) load_own(index);
}

void SmCopier::load_own(std::uint32_t index) {
  const Time served = use_own(own_reads_, warps_[index].bytes);
  events_.schedule_at(std::max(served, events_.now() + own_latency_), Phase::kDeliver, *this,
                      std::uint64_t{index} << kWarpShift | kLoaded);
}

void SmCopier::have_piece(std::uint32_t index) {
  warps_[index].is_loaded = true;
  if (warps_[index].stores == 0) work(index);
}

/// Its piece is here and the one before has left.
void SmCopier::work(std::uint32_t index) {
  warps_[index].is_loaded = false;
  const Duration takes = Duration::from_ns(work_ * static_cast<double>(warps_[index].bytes));
  if (takes == Duration{}) return store(index);
  events_.schedule_at(sm_.pass(events_.now(), takes), Phase::kDeliver, *this,
                      std::uint64_t{index} << kWarpShift | kWorked);
}

void SmCopier::store(std::uint32_t index) {
  Warp& warp = warps_[index];
  --busy_warps_;
  warp.has_piece = false;
  --with_piece_;
  Pass& pass = passes_.at(warp.pass - first_pass_);
  --pass.pieces;
  pass.invisible += sinks_.size();
  warp.stores = static_cast<std::uint32_t>(sinks_.size());
  if (warp.stores > 0) ++busy_warps_;
  const std::uint64_t tag =
      std::uint64_t{warp.pass} << kPassShift | std::uint64_t{index} << kWarpShift | 1;
  const std::uint64_t offset = warp.offset;
  const Bytes bytes{warp.bytes};
  if (own_writes_ > 0) use_own(own_writes_, warp.bytes);
  if (left_ > 0) next_piece(index);
  for (const Remote& sink : sinks_) {
    sink.engine->submit({.routes = sink.routes,
                         .is_read = false,
                         .address = sink.address + offset,
                         .bytes = bytes,
                         .tag = tag,
                         .client = this});
  }
  check_sent();
  if (ends_ != Ends::kWhenSent) tell_visible();
}

void SmCopier::on_dma_sent(std::uint64_t tag) {
  const auto index = static_cast<std::uint32_t>(tag >> kWarpShift) & 0x7fffffffU;
  Warp& warp = warps_[index];
  if (--warp.stores > 0) return;
  --busy_warps_;
  if (warp.is_loaded) {
    work(index);
  } else {
    check_sent();
  }
}

void SmCopier::on_dma_done(std::uint64_t tag) {
  if ((tag & 1) == 0) {
    loaded(static_cast<std::uint32_t>(tag >> kWarpShift) & 0x7fffffffU);
    return;
  }
  --passes_.at((tag >> kPassShift) - first_pass_).invisible;
  tell_visible();
}

void SmCopier::on_dma_timeout(std::uint64_t /*tag*/) {
  throw InputError("a GPU's load was never completed: a root complex dropped it");
}

void SmCopier::check_sent() {
  if (!is_running_ || left_ > 0) return;
  switch (ends_) {
    case Ends::kWhenAWarpIsFree:
      if (with_piece_ == warps_.size()) return;
      break;
    case Ends::kWhenStored:
      if (with_piece_ > 0) return;
      break;
    case Ends::kWhenSent:
      if (busy_warps_ > 0) return;
      break;
  }
  is_running_ = false;
  passes_.at(passes_.size() - 1).is_sent = true;
  const bool is_loaded = own_reads_ > 0 || !sources_.empty() || !peers_.empty();
  offset_ = is_loaded ? next_buffer(offset_, kSmBuffer) : 0;
  client_.on_pass_sent();
  tell_visible();
}

void SmCopier::tell_visible() {
  while (!passes_.empty() && passes_.front().is_sent && passes_.front().pieces == 0 &&
         passes_.front().invisible == 0) {
    passes_.pop();
    ++first_pass_;
    client_.on_pass_visible();
  }
}

}  // namespace weft
