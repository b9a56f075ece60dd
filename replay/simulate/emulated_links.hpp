#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "models/machine/machine.hpp"
#include "sim/plan/plan.hpp"

namespace weft::replay {

/// Connections over emulated NICs (models/nic/emulated.md) as programs of a plan: what NCCL's
/// plugin does to each message, in the order in which a trace has them. Fluid transport only.
class EmulatedLinks {
 public:
  EmulatedLinks(const Machine& machine, Plan& plan) : machine_{&machine}, plan_{&plan} {}

  struct Message {
    Bytes bytes;
    std::uint64_t posted_ns{0};    ///< recorded: copies out of one GPU are in this order
    std::uint64_t received_ns{0};  ///< likewise of those into one
    bool has_receive{true};        ///< else one is taken to be always at hand
  };
  /// Who posts a send signals `copies` (unless it has no bytes) and `paced`, who posts a receive
  /// `receives`; `sent` and `received` get a token each in the order of the messages.
  struct Link {
    FlagIndex copies{kNoIndex};
    FlagIndex paced{kNoIndex};
    FlagIndex receives{kNoIndex};
    FlagIndex sent{kNoIndex};
    FlagIndex received{kNoIndex};
  };
  /// One direction of `pair`, of which NICs and memories count. Throws InputError: its other end is
  /// a real NIC, or no network joins them.
  Link add(const QueuePair& pair, std::span<const Message> messages);
  /// After all of them: what the copy engines do, and how long a round of a proxy takes.
  void finish();

 private:
  struct Copy {
    WalkIndex walk;
    Bytes bytes;
    FlagIndex asked;
    FlagIndex done;
    LagIndex seen;
  };
  /// By the recorded time of the message.
  using Copies = std::multimap<std::uint64_t, Copy>;

  FlagIndex add_flag();
  LagIndex add_lag(const char* cause, Duration time);
  Program& add_program(Actor::Kind kind, DeviceId device);
  ActorIndex proxy_of(DeviceId nic);
  FlagIndex tested(DeviceId nic, LagIndex work, FlagIndex next);
  void add_copies(DeviceId memory, DeviceId cpu, bool is_out, std::span<const Message> messages,
                  FlagIndex asked, FlagIndex done, LagIndex seen);
  Duration wire_time(const QueuePair& pair) const;

  const Machine* machine_;
  Plan* plan_;
  struct Proxy {
    ActorIndex actor{kNoIndex};
    std::uint32_t ends{0};  ///< of links that it looks at
  };

  std::map<std::pair<DeviceId, std::uint32_t>, Copies> engines_;  ///< by GPU and direction
  std::map<DeviceId, Proxy> proxies_;                             ///< by NIC
};

}  // namespace weft::replay
