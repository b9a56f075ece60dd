#include "sim/result/probes.hpp"

#include "sim/result/fields.hpp"

namespace weft {
namespace {

using Port = JsonField<PortProbe>;
using Nic = JsonField<NicProbe>;

constexpr KeySpec probe_text(std::string_view name, std::string_view meaning) {
  return {name, "text", "", meaning};
}
constexpr KeySpec probe_count(std::string_view name, std::string_view meaning) {
  return {name, "whole number", "", meaning};
}
constexpr KeySpec probe_number(std::string_view name, std::string_view meaning) {
  return {name, "number", "", meaning};
}

constexpr std::array kPortFields{
    Port{probe_text("kind", "the kind of thing, as in limited_by"),
         [](const PortProbe& p) -> Json { return p.kind; }},
    Port{probe_text("link", "the sender and the receiver, with their nodes"),
         [](const PortProbe& p) -> Json { return p.link; }},
    Port{probe_number("utilisation", "share of the time that it was sending"),
         [](const PortProbe& p) -> Json { return p.utilisation; }},
    Port{probe_number("wait_us",
                      "packets had no credit or were paused (InfiniBand: port_xmit_wait)"),
         [](const PortProbe& p) -> Json { return p.wait.as_us(); }},
    Port{probe_count("most_queued_bytes", "of one lane, at the sender"),
         [](const PortProbe& p) -> Json { return p.most_queued.count(); }},
    Port{probe_count("most_held_bytes", "of one lane, in the receive buffer at the other end"),
         [](const PortProbe& p) -> Json { return p.most_held.count(); }},
    Port{probe_count("pauses", "PFC pauses"), [](const PortProbe& p) { return whole(p.pauses); }},
    Port{probe_count("dropped", "packets, for want of room"),
         [](const PortProbe& p) { return whole(p.dropped); }},
    Port{probe_count("lost", "packets, on a cable that loses them or is down"),
         [](const PortProbe& p) { return whole(p.lost); }},
    Port{probe_count("marked", "packets with ECN"),
         [](const PortProbe& p) { return whole(p.marked); }}};

constexpr std::array kNicFields{
    Nic{probe_text("nic", "with its node"), [](const NicProbe& n) -> Json { return n.nic; }},
    Nic{probe_count("read_tags", "reads of host or GPU memory that it may have in flight"),
        [](const NicProbe& n) { return whole(n.tags); }},
    Nic{probe_count("most_tags_in_use", "of these"),
        [](const NicProbe& n) { return whole(n.most_tags_in_use); }},
    Nic{probe_number("tag_wait_us", "a read waited for a tag"),
        [](const NicProbe& n) -> Json { return n.tag_wait.as_us(); }},
    Nic{probe_count("packets", "sent"), [](const NicProbe& n) { return whole(n.packets); }},
    Nic{probe_count("repeated", "sent again"), [](const NicProbe& n) { return whole(n.repeated); }},
    Nic{probe_count("timeouts", "of its queue pairs"),
        [](const NicProbe& n) { return whole(n.timeouts); }},
    Nic{probe_number("timeout_wait_us", "a queue pair that has sent waited for them, on average"),
        [](const NicProbe& n) -> Json { return n.timeout_wait.as_us(); }},
    Nic{probe_count("naks", "that its receivers sent it"),
        [](const NicProbe& n) { return whole(n.naks); }},
    Nic{probe_count("rnr_naks", "the same, for no receive was posted"),
        [](const NicProbe& n) { return whole(n.rnr_naks); }},
    Nic{probe_number("rnr_wait_us", "a queue pair that has sent waited for receives, on average"),
        [](const NicProbe& n) -> Json { return n.rnr_wait.as_us(); }},
    Nic{probe_count("cnps", "congestion notifications that its receivers sent it"),
        [](const NicProbe& n) { return whole(n.cnps); }},
    Nic{probe_number("pacing_wait_us",
                     "a queue pair that has sent waited for DCQCN's rate, on average"),
        [](const NicProbe& n) -> Json { return n.pacing_wait.as_us(); }},
    Nic{probe_count("icm_misses", "contexts and translations that it read from host memory"),
        [](const NicProbe& n) { return whole(n.icm_misses); }},
    Nic{probe_number("icm_wait_us", "something waited for one of them"),
        [](const NicProbe& n) -> Json { return n.icm_wait.as_us(); }}};

constexpr std::array kProbesFields{
    JsonField<Probes>{{"ports", "list", "", "the ports that were used most or waited longest"},
                      [](const Probes& probes) { return objects_of(probes.ports, kPortFields); }},
    JsonField<Probes>{probe_count("ports_left_out", "that are not listed"),
                      [](const Probes& probes) { return whole(probes.ports_left_out); }},
    JsonField<Probes>{probe_count("pauses", "PFC pauses of all ports"),
                      [](const Probes& probes) { return whole(probes.pauses); }},
    JsonField<Probes>{probe_count("dropped", "packets, for want of room, by all ports"),
                      [](const Probes& probes) { return whole(probes.dropped); }},
    JsonField<Probes>{probe_count("lost", "packets, on cables that lose them or are down"),
                      [](const Probes& probes) { return whole(probes.lost); }},
    JsonField<Probes>{probe_count("marked", "packets with ECN, by all ports"),
                      [](const Probes& probes) { return whole(probes.marked); }},
    JsonField<Probes>{{"nics", "list", "", "every NIC"},
                      [](const Probes& probes) { return objects_of(probes.nics, kNicFields); }}};

}  // namespace

Json to_json(const Probes& probes) { return object_of(probes, kProbesFields); }

std::vector<FormatSection> probes_format() {
  return {
      {"results[].probes", "What ports and NICs did.", keys_of(kProbesFields)},
      {"results[].probes.ports[]", "A sender of one direction of a link.", keys_of(kPortFields)},
      {"results[].probes.nics[]", "A NIC.", keys_of(kNicFields)}};
}

}  // namespace weft
