#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/event_queue.hpp"
#include "sim/plan/plan.hpp"
#include "sim/result/timeline.hpp"
#include "sim/run/runner.hpp"

namespace weft {

/// Keeps a timeline of a plan that runs.
///
/// Under each device stand its actors, a row each, with what they work on, wait for and move; under
/// each NIC its queue pairs, with each message from when it was posted to when its data are in
/// memory. Messages of one queue pair that overlap take rows of their own. What takes no time is
/// left out, and so is what a plan's transfers do after their actor has turned to the next one.
class TimelineRecorder final : public RunObserver {
 public:
  /// Keeps at most so many slices, those that end first. The references must outlive it.
  TimelineRecorder(const Plan& plan, const Fabric& fabric, const EventQueue& events,
                   std::size_t most_slices);

  void on_worked(ActorIndex actor, LagIndex lag, Time since) override;
  void on_waited(ActorIndex actor, FlagIndex flag, Time since) override;
  void on_moved(ActorIndex actor, WalkIndex walk, Bytes bytes, Time since) override;
  void on_delivered(QueuePairIndex queue_pair, Bytes bytes, Time posted) override;

  /// What was kept, slices in the order of their begins. Once.
  Timeline timeline() &&;

 private:
  /// A message, whose row is found when all are known.
  struct Message {
    QueuePairIndex queue_pair;
    Timeline::Slice slice;
  };

  /// Whether what began then and ends now is a slice, for which there is room.
  bool is_kept(Time since);
  void add(ActorIndex actor, std::uint32_t name, Time since, Bytes bytes = {});
  std::uint32_t name_index(const std::string& name);
  std::uint32_t device_track(DeviceId device);
  std::uint32_t new_track(std::string name, std::uint32_t parent);
  void place_messages();

  const Plan* plan_;
  const Fabric* fabric_;
  const EventQueue* events_;
  std::size_t most_slices_;
  Timeline timeline_;
  std::vector<Message> messages_;
  std::map<std::string, std::uint32_t> names_;
  std::map<DeviceId, std::uint32_t> device_tracks_;
  std::vector<std::uint32_t> actor_tracks_;  // by actor
  std::vector<std::string> flag_names_;      // by flag; "" of most
  std::vector<std::uint32_t> walk_names_;    // by walk; kNone: not yet
};

}  // namespace weft
