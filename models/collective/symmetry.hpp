#pragma once

#include <string>
#include <vector>

#include "models/collective/task.hpp"

namespace weft {

/// What breaks the symmetry of a cluster's nodes, so that fewer of them do the same than there are
/// and one cannot stand for as many (fold(), Sample): each a clause, such as "node 5 is not like
/// the others (nic3@5.trained_width)". None: nothing that is known.
std::vector<std::string> what_breaks_symmetry(const Machine& machine, Op op, const Choice& choice);

/// How many times as many ranks a plan has as are simulated of it, about: its nodes where all do
/// the same, times the NICs of each where all of them do (fold()). By the same reasons, but for
/// nodes' places on the network.
double alike(const Machine& machine, const Schedule& schedule, Op op, const Choice& choice);

/// Of a hash that lays connections on equal ways.
inline constexpr const char* kDrawnByHash =
    "a hash lays each connection on one of equal ways (wire.routing=ecmp)";

/// Of some rows that were simulated on all of the cluster's nodes.
struct SimulatedWhole {
  RowTask task;
  double alike;      ///< transfers of all that one simulated stands for, on average
  double transfers;  ///< that were simulated of one launch
};
/// Adds where nodes could not stand for each other as far as there are nodes, why, and how much was
/// alike nevertheless: by memory path and algorithm, of more than two nodes, and of runs that took
/// about a second of one core or more.
void add_symmetry_notes(const Machine& machine, const Schedules& schedules,
                        const std::vector<SimulatedWhole>& rows, std::vector<std::string>& notes);

}  // namespace weft
