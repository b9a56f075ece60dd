#include "sim/run/timeline_recorder.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

namespace weft {
namespace {

std::string_view over(Leg::Medium medium) {
  switch (medium) {
    case Leg::Medium::kLocal:
      return "";
    case Leg::Medium::kPcie:
      return "PCIe ";
    case Leg::Medium::kNvlink:
      return "NVLink ";
    case Leg::Medium::kWire:
      return "";
  }
  return "?";
}

/// "moves: read gpu0@0 -> gpu0@0, NVLink write gpu0@0 -> gpu1@0"
std::string moves(std::span<const Leg> walk, const Fabric& fabric) {
  std::string out = "moves:";
  for (const Leg& leg : walk) {
    out +=
        fmt::format("{} {}{} {} -> {}", &leg == walk.data() ? "" : ",", over(leg.medium),
                    leg_verb(leg.kind), fabric.full_name(leg.source), fabric.full_name(leg.sink));
  }
  return out;
}

}  // namespace

TimelineRecorder::TimelineRecorder(const Plan& plan, const Fabric& fabric, const EventQueue& events,
                                   std::size_t most_slices)
    : plan_{&plan},
      fabric_{&fabric},
      events_{&events},
      most_slices_{most_slices},
      flag_names_(plan.flags.size()),
      walk_names_(plan.walks.size(), Timeline::kNone) {
  for (const NamedFlag& flag : plan.names) flag_names_[flag.flag] = flag.of + ": " + flag.what;
  for (const Actor& actor : plan.actors) {
    actor_tracks_.push_back(new_track(actor_name(actor), device_track(actor.device)));
  }
}

void TimelineRecorder::on_worked(ActorIndex actor, LagIndex lag, Time since) {
  if (!is_kept(since)) return;
  add(actor, name_index(lag == kNoIndex ? "works" : plan_->lags[lag].cause), since);
}

void TimelineRecorder::on_waited(ActorIndex actor, FlagIndex flag, Time since) {
  if (!is_kept(since)) return;
  const bool is_named = flag != kNoIndex && !flag_names_[flag].empty();
  add(actor, name_index(is_named ? "waits for " + flag_names_[flag] : "waits"), since);
}

void TimelineRecorder::on_moved(ActorIndex actor, WalkIndex walk, Bytes bytes, Time since) {
  if (!is_kept(since)) return;
  std::uint32_t& name = walk_names_[walk];
  if (name == Timeline::kNone) name = name_index(moves(plan_->walks[walk], *fabric_));
  add(actor, name, since, bytes);
}

void TimelineRecorder::on_delivered(QueuePairIndex queue_pair, Bytes bytes, Time posted) {
  if (!is_kept(posted)) return;
  messages_.push_back(
      {queue_pair,
       {Timeline::kNone, name_index("message"), posted, events_->now(), bytes.count()}});
}

void TimelineRecorder::add(ActorIndex actor, std::uint32_t name, Time since, Bytes bytes) {
  timeline_.slices.push_back({actor_tracks_[actor], name, since, events_->now(), bytes.count()});
}

bool TimelineRecorder::is_kept(Time since) {
  if (since == events_->now()) return false;
  if (timeline_.slices.size() + messages_.size() < most_slices_) return true;
  ++timeline_.left_out;
  return false;
}

std::uint32_t TimelineRecorder::name_index(const std::string& name) {
  const auto [at, is_new] =
      names_.try_emplace(name, static_cast<std::uint32_t>(timeline_.names.size()));
  if (is_new) timeline_.names.push_back(name);
  return at->second;
}

std::uint32_t TimelineRecorder::device_track(DeviceId device) {
  const auto at = device_tracks_.find(device);
  if (at != device_tracks_.end()) return at->second;
  return device_tracks_[device] = new_track(fabric_->full_name(device), Timeline::kNone);
}

std::uint32_t TimelineRecorder::new_track(std::string name, std::uint32_t parent) {
  timeline_.tracks.push_back({std::move(name), parent});
  return static_cast<std::uint32_t>(timeline_.tracks.size() - 1);
}

/// Each message on the first row of its queue pair that is free.
void TimelineRecorder::place_messages() {
  std::ranges::stable_sort(messages_, {}, [](const Message& m) {
    return std::tuple{m.queue_pair, m.slice.begin, m.slice.end};
  });
  std::vector<std::pair<std::uint32_t, Time>> rows;  // of one queue pair: track, free from when on
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    Message& message = messages_[i];
    if (i == 0 || messages_[i - 1].queue_pair != message.queue_pair) rows.clear();
    auto row = std::ranges::find_if(
        rows, [&message](const auto& r) { return r.second <= message.slice.begin; });
    if (row == rows.end()) {
      const QueuePair& q = plan_->queue_pairs[message.queue_pair];
      const std::uint32_t track =
          new_track(fmt::format("to {}, connection {}, {} -> {}", fabric_->full_name(q.peer_nic),
                                q.connection, fabric_->full_name(q.memory),
                                fabric_->full_name(q.peer_memory)),
                    device_track(q.nic));
      row = rows.insert(rows.end(), {track, Time{}});
    }
    row->second = message.slice.end;
    message.slice.track = row->first;
    timeline_.slices.push_back(message.slice);
  }
  messages_.clear();
}

Timeline TimelineRecorder::timeline() && {
  place_messages();
  std::ranges::stable_sort(timeline_.slices, {}, [](const Timeline::Slice& s) {
    return std::tuple{s.begin, s.track, s.end};
  });
  return std::move(timeline_);
}

}  // namespace weft
