#include "sim/result/probes.hpp"

namespace weft {
namespace {

std::int64_t whole(std::uint64_t count) { return static_cast<std::int64_t>(count); }

Json to_json(const PortProbe& port) {
  return Json::object({{"kind", port.kind},
                       {"link", port.link},
                       {"utilisation", port.utilisation},
                       {"wait_us", port.wait.as_us()},
                       {"most_queued_bytes", port.most_queued.count()},
                       {"most_held_bytes", port.most_held.count()},
                       {"pauses", whole(port.pauses)},
                       {"dropped", whole(port.dropped)},
                       {"lost", whole(port.lost)},
                       {"marked", whole(port.marked)}});
}

Json to_json(const NicProbe& nic) {
  return Json::object({{"nic", nic.nic},
                       {"read_tags", whole(nic.tags)},
                       {"most_tags_in_use", whole(nic.most_tags_in_use)},
                       {"tag_wait_us", nic.tag_wait.as_us()},
                       {"packets", whole(nic.packets)},
                       {"repeated", whole(nic.repeated)},
                       {"timeouts", whole(nic.timeouts)},
                       {"timeout_wait_us", nic.timeout_wait.as_us()},
                       {"naks", whole(nic.naks)},
                       {"rnr_naks", whole(nic.rnr_naks)},
                       {"rnr_wait_us", nic.rnr_wait.as_us()},
                       {"cnps", whole(nic.cnps)},
                       {"pacing_wait_us", nic.pacing_wait.as_us()},
                       {"icm_misses", whole(nic.icm_misses)},
                       {"icm_wait_us", nic.icm_wait.as_us()}});
}

}  // namespace

Json to_json(const Probes& probes) {
  Json ports = Json::array();
  for (const PortProbe& port : probes.ports) ports.push(to_json(port));
  Json nics = Json::array();
  for (const NicProbe& nic : probes.nics) nics.push(to_json(nic));
  return Json::object(
      {{"ports", ports}, {"ports_left_out", whole(probes.ports_left_out)}, {"nics", nics}});
}

}  // namespace weft
