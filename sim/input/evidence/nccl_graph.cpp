#include <optional>
#include <string>
#include <string_view>

#include "sim/base/quantity.hpp"
#include "sim/input/evidence/readers.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

/// "GPU/0-18000", "GPU/18000" (before 2.20): a node of NCCL's graph.
struct NodeId {
  std::string_view kind;
  std::uint64_t number{0};
};

/// NCCL prints the numbers in hexadecimal: the last of one to three, before it the host's.
std::optional<NodeId> node_at(Scan& scan) {
  constexpr std::string_view kKinds[] = {"GPU", "PCI", "NVS", "CPU", "NIC", "NET"};
  for (const std::string_view kind : kKinds) {
    if (!scan.skip(kind)) continue;
    if (!scan.skip("/")) return std::nullopt;
    std::optional<std::uint64_t> number = scan.hex();
    while (number && scan.skip("-")) number = scan.hex();
    if (!number) return std::nullopt;
    return NodeId{kind, *number};
  }
  return std::nullopt;
}

/// As facts call it.
std::string subject_of(const NodeId& node) {
  if (node.kind == "CPU") return "numa" + std::to_string(node.number);
  if (node.kind == "NET") return "net" + std::to_string(node.number);
  if (node.kind == "NVS") return "nvswitch";
  return bus_id_of_number(node.number);
}

bool is_path_type(std::string_view type) {
  for (const std::string_view known :
       {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"}) {
    if (type == known) return true;
  }
  return false;
}

/// "GPU/0-60 :GPU/0-60 (0/5000.0/LOC) GPU/0-70 (2/370.8/NVL) ...". What is cut off at the end is
/// left out.
bool read_paths(const EvidenceSection& section, const EvidenceLine& line, std::string_view message,
                Facts& facts) {
  Scan scan(message);
  const std::optional<NodeId> from = node_at(scan);
  if (!from || !scan.skip(" :")) return false;
  const std::string subject = subject_of(*from);
  const auto add = [&](std::string_view what, std::string value) {
    facts.add(section.fact(line, subject, what, std::move(value)));
  };
  if (from->kind == "GPU") add(fact::kClass, "0302");
  while (!scan.blanks().at_end()) {
    const std::optional<NodeId> to = node_at(scan);
    if (!to || !scan.skip(" (")) break;
    const std::optional<std::int64_t> hops = scan.whole();
    const std::optional<double> rate = scan.skip("/") ? scan.number() : std::nullopt;
    if (!hops || !rate || !scan.skip("/")) break;
    const std::string_view type = scan.until(")");
    if (!is_path_type(type)) break;
    if (from->kind == to->kind && from->number == to->number) continue;
    add(std::string(fact::kNcclPath) + subject_of(*to), std::string(type));
    // What is not across the sockets is near.
    const bool near = type == "PHB" || type == "PXB" || type == "PIX";
    if (to->kind == "CPU" && near) add(fact::kNuma, std::to_string(to->number));
    if (to->kind == "GPU" && type == "NVL" && *hops <= 2) {
      const std::string end = *hops == 2 ? "nvswitch" : subject_of(*to);
      add(std::string(fact::kNcclNvlink) + end, format_number(*rate));
    }
  }
  return true;
}

}  // namespace

bool NcclGraphReader::read(const EvidenceSection& section, const EvidenceLine& line,
                           std::string_view message, Facts& facts) {
  const std::size_t indent = std::min(message.find_first_not_of(' '), message.size());
  const std::string_view text = without_blanks(message);
  if (text.starts_with("=== System :")) {
    cpu_.clear();
    above_.clear();
    return true;
  }
  if (text.starts_with("+ ")) {
    read_child(section, line, indent, text, facts);
    return true;
  }
  if (read_paths(section, line, text, facts)) return true;
  Scan scan(text);
  const std::optional<NodeId> cpu = node_at(scan);
  if (!cpu || cpu->kind != "CPU" || !scan.blanks().skip("(")) return false;
  cpu_ = subject_of(*cpu);
  above_.clear();
  facts.add(section.fact(line, cpu_, fact::kClass, "CPU"));
  return true;
}

/// "+ PCI[48.0] - GPU/0-68000 (8)": a link from what stands above it, by indentation.
void NcclGraphReader::read_child(const EvidenceSection& section, const EvidenceLine& line,
                                 std::size_t indent, std::string_view text, Facts& facts) {
  Scan scan(text);
  scan.skip("+ ");
  const std::string_view link = scan.until("[");
  const std::optional<double> rate = scan.number();
  if (!rate || !scan.skip("] - ") || cpu_.empty()) return;
  const std::optional<NodeId> node = node_at(scan);
  if (!node) return;
  while (!above_.empty() && above_.back().indent >= indent) above_.pop_back();
  const std::string above = above_.empty() ? cpu_ : above_.back().subject;
  const std::string subject = subject_of(*node);
  const auto add = [&](const std::string& whom, std::string_view what, std::string value) {
    facts.add(section.fact(line, whom, what, std::move(value)));
  };
  if (link == "NVL") {
    add(above, std::string(fact::kNcclNvlink) + subject, format_number(*rate));
    return;
  }
  if (link == "NET" && node->kind == "NET") {
    Scan inside(scan.rest());
    inside.skip_to("(");
    const std::string_view list = inside.until(")");
    const std::optional<double> speed = Scan(list.substr(list.rfind('/') + 1)).number();
    add(subject, fact::kBusId, above);
    if (speed && *speed > 0) add(subject, fact::kRate, format_number(*speed * 8));
    return;
  }
  if (link != "PCI" || node->number == 0) return;  // "NIC/0": made up by NCCL, on no bus
  add(subject, fact::kParent, above);
  add(subject, fact::kNcclPcie, format_number(*rate));
  if (node->kind == "PCI") {
    add(subject, fact::kPort, "switch");
    Scan inside(scan.rest());
    inside.skip_to("(");
    const std::string_view id = inside.until(")");
    if (id.size() == 16) {
      add(subject, fact::kPciId, std::string(id.substr(0, 4)) + ":" + std::string(id.substr(4, 4)));
    }
  } else {
    add(subject, fact::kClass, node->kind == "GPU" ? "0302" : "0200");
  }
  above_.push_back({indent, subject});
}

}  // namespace weft
