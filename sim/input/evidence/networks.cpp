#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/input/evidence/readers.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

std::string_view in_quotes(Scan& scan) {
  return scan.skip_to("\"") ? scan.until("\"") : std::string_view{};
}

/// GUIDs as ibnetdiscover writes them in names: "S-0002c9..." and "0x0002c9..." are one.
std::string guid_of(std::string_view id) {
  Scan scan(id);
  if (scan.skip("S-") || scan.skip("H-") || scan.skip("R-") || scan.skip("0x")) {
    return std::string(scan.rest());
  }
  return std::string(id);
}

void add_cable(const EvidenceSection& section, const EvidenceLine& line, const std::string& node,
               std::int64_t port, const std::string& peer, std::int64_t peer_port, Facts& facts) {
  facts.add(section.fact(line, node, std::string(fact::kCable) + std::to_string(port),
                         peer + " " + std::to_string(peer_port)));
}

/// Counters that say something of health or congestion, where they are not 0.
bool is_worth_keeping(std::string_view counter) {
  constexpr std::array<std::string_view, 19> kWords{
      "Error",    "Discard", "Wait",  "Downed",  "Dropped",  "pause",   "discard",
      "ecn",      "cnp",     "_err_", "error",   "drop",     "retrans", "timeout",
      "overflow", "out_of",  "nak",   "stalled", "link_down"};
  for (const std::string_view word : kWords) {
    if (holds(counter, word)) return true;
  }
  return false;
}

void add_counter(const EvidenceSection& section, const EvidenceLine& line,
                 const std::string& subject, std::string_view name, std::string_view value,
                 Facts& facts) {
  const std::optional<std::int64_t> count = Scan(value).whole();
  if (!count || *count <= 0 || !is_worth_keeping(name) || name.size() > 64) return;
  facts.add(section.fact(line, subject, std::string(fact::kCounter) + std::string(name),
                         std::to_string(*count)));
}

}  // namespace

/// `Switch 65 "S-fc6a1c0300fd4cc0"  # "leaf1" ...`, then a line a port:
/// `[1]  "H-0000000000100004"[1](100005)  # "h2" lid 2 4xEDR`. ibsim's nets are written so too.
void read_ibnetdiscover(const EvidenceSection& section, Facts& facts) {
  std::string node;
  for (const EvidenceLine& line : section.lines) {
    const std::string_view text = without_blanks(line.text);
    Scan scan(text);
    if (scan.skip("[")) {
      const std::optional<std::int64_t> port = scan.whole();
      if (!port || node.empty()) continue;
      const std::string peer = guid_of(in_quotes(scan));
      if (!scan.skip("[")) continue;
      const std::optional<std::int64_t> peer_port = scan.whole();
      if (peer.empty() || !peer_port) continue;
      add_cable(section, line, node, *port, peer, *peer_port, facts);
      if (Scan comment(scan.rest()); comment.skip_to("#")) {
        const std::string_view said = comment.rest();
        const std::string_view rate = said.substr(said.rfind(' ') + 1);
        if (holds(rate, "x")) {
          facts.add(section.fact(line, node,
                                 std::string(fact::kRate) + " of port " + std::to_string(*port),
                                 one_line(rate)));
        }
      }
      continue;
    }
    const std::string_view kind = scan.word();
    const bool is_switch = kind == "Switch";
    if (!is_switch && kind != "Ca" && kind != "Hca" && kind != "Rt") continue;
    const std::optional<std::int64_t> ports = scan.blanks().whole();
    node = guid_of(in_quotes(scan));
    if (!ports || node.empty()) {
      throw InputError(section.place(line), "write a node as: Switch 40 \"S-...\"");
    }
    facts.add(section.fact(line, node, fact::kNode,
                           (is_switch ? "switch " : "adapter ") + std::to_string(*ports)));
    if (const std::string_view name = in_quotes(scan); !name.empty()) {
      facts.add(section.fact(line, node, fact::kName, one_line(name)));
    }
  }
}

/// "CA  2  1 0x0000000000100007 4x EDR - SW  0  2 0x0000000000200001 ( 'h3' - 'leaf1' )".
void read_ibnetdiscover_ports(const EvidenceSection& section, Facts& facts) {
  for (const EvidenceLine& line : section.lines) {
    Scan scan(line.text);
    const std::string_view kind = scan.word();
    if (kind != "CA" && kind != "SW" && kind != "RT") continue;
    scan.word();
    const std::optional<std::int64_t> port = Scan(scan.word()).whole();
    const std::string node = guid_of(scan.word());
    if (!port || node.empty()) continue;
    facts.add(section.fact(line, node, fact::kNode, kind == "SW" ? "switch" : "adapter"));
    if (!scan.skip_to(" - ")) continue;
    scan.word();
    scan.word();
    const std::optional<std::int64_t> peer_port = Scan(scan.word()).whole();
    const std::string peer = guid_of(scan.word());
    if (peer_port && !peer.empty()) {
      add_cable(section, line, node, *port, peer, *peer_port, facts);
    }
    Scan names(scan.rest());
    if (names.skip_to("'")) {
      facts.add(section.fact(line, node, fact::kName, one_line(names.until("'"))));
    }
  }
}

/// Below "CA: h3 mlx5_0:" or "Switch: 0x... leaf1:", a line a port; with --line the node stands in
/// it. The rate is a lane's: `==( 4X  25.78125 Gbps Active/ LinkUp)==>`.
void read_iblinkinfo(const EvidenceSection& section, Facts& facts) {
  std::string node;
  for (const EvidenceLine& line : section.lines) {
    const std::string_view text = without_blanks(line.text);
    Scan scan(text);
    if (scan.skip("CA: ") || scan.skip("Switch: ") || scan.skip("Switch ") ||
        scan.skip("Router: ")) {
      std::string_view name = scan.rest();
      if (name.ends_with(':')) name.remove_suffix(1);
      node = one_line(name);
      continue;
    }
    Scan link(text);
    const std::string_view left = link.until("==(");
    if (link.at_end()) continue;
    std::string of = node;
    if (Scan quotes(left); quotes.skip_to("\"")) of = one_line(without_blanks(quotes.until("\"")));
    const std::size_t bracket = left.rfind('[');
    if (bracket == std::string_view::npos || of.empty()) continue;
    const std::string_view before = without_blanks(left.substr(0, bracket));
    const std::string port(before.substr(before.find_last_of(" \t") + 1));
    const std::optional<std::int64_t> lanes = link.blanks().whole();
    const bool x = link.skip("X");
    const std::optional<double> rate = link.blanks().number();
    if (lanes && x && rate && *lanes > 0 && *lanes <= 12 && *rate > 0 && *rate <= 1000) {
      facts.add(section.fact(line, of, std::string(fact::kRate) + " of port " + port,
                             format_number(*rate * static_cast<double>(*lanes))));
    } else if (holds(text, "Down/")) {
      facts.add(section.fact(line, of, std::string(fact::kState) + " of port " + port, "down"));
    }
    if (Scan could(text); could.skip_to("( Could be") || could.skip_to("(Could be")) {
      facts.add(section.fact(line, of, fact::kAlert,
                             "port " + port + " could be" + one_line(could.until(")"))));
    }
  }
}

/// `Errors for 0x... "leaf1"`, then `GUID 0x... port 1: [PortXmitWait == 100] [...]`.
/// A network without any has the summary alone.
void read_ibqueryerrors(const EvidenceSection& section, Facts& facts) {
  facts.add(
      section.fact(section.lines.front(), "network", std::string(fact::kLog) + "counters", "read"));
  for (const EvidenceLine& line : section.lines) {
    Scan scan(without_blanks(line.text));
    if (!scan.skip("GUID ")) continue;
    const std::string node = guid_of(scan.word());
    if (!scan.blanks().skip("port ")) continue;
    const std::string subject = node + " port " + std::string(scan.until(":"));
    while (scan.skip_to("[")) {
      const std::string_view name = without_blanks(scan.until("=="));
      add_counter(section, line, subject, name, without_blanks(scan.until("]")), facts);
    }
  }
}

/// "# Port counters: Lid 2 port 1 (CapMask: 0x5A00)", then "PortXmitWait:....................0".
void read_perfquery(const EvidenceSection& section, Facts& facts) {
  std::string subject = "port";
  for (const EvidenceLine& line : section.lines) {
    const std::string_view text = without_blanks(line.text);
    Scan scan(text);
    if (scan.skip("# Port") && scan.skip_to(": ")) {
      subject = one_line(without_blanks(scan.until("(")));
      facts.add(section.fact(line, subject, std::string(fact::kLog) + "counters", "read"));
      continue;
    }
    const std::size_t dots = text.find(":.");
    if (dots == std::string_view::npos) continue;
    const std::size_t value = text.find_first_not_of('.', dots + 1);
    if (value == std::string_view::npos) continue;
    add_counter(section, line, subject, text.substr(0, dots), text.substr(value), facts);
  }
}

/// Where nothing says of which interface it is, its place tells it from others: "netdev at f:12".
void read_ethtool(const EvidenceSection& section, Facts& facts) {
  const std::string subject = section.argument.empty()
                                  ? "netdev at " + section.place(section.lines.front()).text()
                                  : one_line(section.argument);
  facts.add(
      section.fact(section.lines.front(), subject, std::string(fact::kLog) + "counters", "read"));
  for (const EvidenceLine& line : section.lines) {
    const std::optional<KeyAndValue> entry = key_and_value(line.text);
    if (entry) add_counter(section, line, subject, entry->key, entry->value, facts);
  }
}

}  // namespace weft
