#include "models/transport/link_times.hpp"

#include <algorithm>
#include <map>

#include "models/machine/machine.hpp"
#include "models/transport/fluid_transport.hpp"

namespace weft {

LinkTimes link_times(const Machine& machine, const FluidTransport& transport) {
  const Fabric& fabric = machine.fabric();
  const std::vector<double> all = transport.busy_s();
  const std::size_t in_nodes = fabric.links_per_node() * fabric.nodes();
  // By the first that has the name: a node's link stands for those of all nodes.
  std::map<std::string, std::size_t> places;
  LinkTimes out;
  const auto add = [&](std::size_t link, bool forward, double busy_s) {
    if (busy_s <= 0) return;
    const std::string name = fabric.direction_name({LinkId{link}, forward});
    const auto [place, is_new] = places.emplace(name, out.size());
    if (is_new) out.emplace_back(name, 0);
    double& most = out[place->second].second;
    most = std::max(most, busy_s);
  };
  const auto busy_s = [&](std::size_t link, bool forward) {
    return transport.busy_s_of(machine.server_of(Hop{LinkId{link}, forward}), all);
  };
  for (std::size_t of_node = 0; of_node < fabric.links_per_node(); ++of_node) {
    for (const bool forward : {true, false}) {
      double most = 0;
      for (std::size_t link = of_node; link < in_nodes; link += fabric.links_per_node()) {
        most = std::max(most, busy_s(link, forward));
      }
      add(of_node, forward, most);
    }
  }
  for (std::size_t link = in_nodes; link < fabric.link_count(); ++link) {
    for (const bool forward : {true, false}) add(link, forward, busy_s(link, forward));
  }
  return out;
}

}  // namespace weft
