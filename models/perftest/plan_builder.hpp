#pragma once

#include <utility>

#include "models/perftest/sender.hpp"

namespace weft {

/// What builders of perftest's plans share.
class PlanBuilder {
 protected:
  PlanBuilder(const Machine& machine, const PerftestPlan& options)
      : machine_{machine}, options_{options} {
    plan_.op = "perftest";
    plan_.bytes = options.size;
  }

  FlagIndex add_flag(std::uint64_t tokens = 0) {
    plan_.flags.push_back({static_cast<std::uint32_t>(tokens)});
    return static_cast<FlagIndex>(plan_.flags.size() - 1);
  }
  LagIndex add_lag(const char* cause, Duration time) {
    plan_.lags.push_back({cause, time});
    return static_cast<LagIndex>(plan_.lags.size() - 1);
  }
  ActorIndex add_actor(Actor::Kind kind, DeviceId device, std::uint32_t number = 0) {
    plan_.actors.push_back({kind, device, number});
    return static_cast<ActorIndex>(plan_.actors.size() - 1);
  }
  const Adapter& adapter(DeviceId nic) const { return *machine_.model(nic).adapter; }
  /// A CPU thread's work for a doorbell, and for each request that it is for.
  std::pair<LagIndex, LagIndex> add_post(DeviceId nic) {
    const LagIndex request = add_lag("post", adapter(nic).post_time);
    return {add_lag("post", adapter(nic).doorbell_time), request};
  }

  const Machine& machine_;
  const PerftestPlan& options_;
  Plan plan_;
};

}  // namespace weft
