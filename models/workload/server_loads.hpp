#pragma once

#include <map>
#include <vector>

#include "models/machine/machine.hpp"
#include "models/transport/contraction.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// What a server that serves bytes is given to do.
struct ServerLoad {
  ServerId server;
  double seconds;  ///< at its capacity: no run of the plan is shorter
};

/// The load of each link and memory that plans' moves and messages cross, flags, headers and
/// everything else that they take of it included. What an SM works on and what is in flight is left
/// out.
class ServerLoads {
 public:
  /// The machine must outlive it.
  explicit ServerLoads(const Machine& machine) : machine_{&machine} {}

  /// Throws InputError as contract() does.
  void add(const Plan& plan);
  /// Most loaded first, then by server; those that carry nothing are left out.
  std::vector<ServerLoad> sorted() const;

 private:
  void add(const Contraction& contraction, double bytes);

  const Machine* machine_;
  std::map<ServerId, double> seconds_;
};

}  // namespace weft
