#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/input/evidence/readers.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

/// What tools say of one port of a NIC. Port 1 is called as the NIC, others "mlx5_0:2".
class PortReader {
 public:
  PortReader(const EvidenceSection& section, Facts& facts) : section_{section}, facts_{facts} {}

  void device(std::string_view name) {
    name_ = name;
    port_ = 1;
  }
  void port(std::string_view number) { port_ = Scan(number).whole().value_or(1); }

  void state(const EvidenceLine& line, std::string_view text) {
    const bool up = holds(text, "ctive") || holds(text, "ACTIVE");
    add(line, fact::kState, up && !holds(text, "nactive") ? "up" : "down");
  }
  void rate(const EvidenceLine& line, const std::string& gigabits) {
    if (!gigabits.empty()) add(line, fact::kRate, gigabits);
  }
  void link_layer(const EvidenceLine& line, std::string_view text) {
    if (text.starts_with("InfiniBand") || text == "IB") {
      add(line, fact::kLinkLayer, "InfiniBand");
    } else if (text.starts_with("Ethernet")) {
      add(line, fact::kLinkLayer, "Ethernet");
    }
  }
  void mtu(const EvidenceLine& line, std::string_view text) {
    const std::optional<std::int64_t> bytes = Scan(text).whole();
    if (bytes && *bytes >= 256 && *bytes <= 4096) add(line, fact::kMtu, std::to_string(*bytes));
  }
  /// Of a netdev that is called by its place. A second port's may be another function's.
  void netdev(const EvidenceLine& line, std::string_view name) {
    const std::string bus_id = bus_id_of_name(name);
    if (port_ == 1 && !bus_id.empty()) function(line, bus_id);
  }
  void function(const EvidenceLine& line, const std::string& bus_id) {
    if (!name_.empty()) facts_.add(section_.fact(line, name_, fact::kBusId, bus_id));
  }
  void function_id(const EvidenceLine& line, std::uint64_t vendor, std::int64_t device) {
    if (name_.empty()) return;
    facts_.add(
        section_.fact(line, name_, fact::kPciId, fmt::format("{:04x}:{:04x}", vendor, device)));
  }
  void add(const EvidenceLine& line, std::string_view what, std::string value) {
    if (name_.empty()) return;
    const std::string subject = port_ == 1 ? name_ : name_ + ":" + std::to_string(port_);
    facts_.add(section_.fact(line, subject, what, std::move(value)));
  }

 private:
  const EvidenceSection& section_;
  Facts& facts_;
  std::string name_;
  std::int64_t port_{1};
};

std::string_view quoted(std::string_view text) {
  Scan scan(text);
  return scan.skip_to("'") ? scan.until("'") : std::string_view{};
}

/// InfiniBand's speeds by lane, Gb/s of data (IBTA vol. 2, table of link speeds); of 8b/10b's the
/// data rate, as ibstat counts.
double lane_rate(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, double>, 8> kSpeeds{{{"SDR", 2.5},
                                                                        {"DDR", 5},
                                                                        {"QDR", 10},
                                                                        {"FDR", 14},
                                                                        {"EDR", 25},
                                                                        {"HDR", 50},
                                                                        {"NDR", 100},
                                                                        {"XDR", 200}}};
  for (const auto& [speed, rate] : kSpeeds) {
    if (holds(name, speed)) return rate;
  }
  return 0;
}

/// The PCI vendor of a verbs device's: the drivers of these vendors give it as it is, Mellanox' its
/// OUI. Others give one, too (0x1175 of Omni-Path), which says no PCI vendor: 0.
std::uint64_t pci_vendor_of(std::uint64_t vendor) {
  constexpr std::uint64_t kMellanoxOui = 0x02c9;
  if (vendor == kMellanoxOui) return 0x15b3;
  // Broadcom, Intel's Ethernet, Amazon, Alibaba, Huawei, Chelsio, Microsoft, VMware, Cisco,
  // Marvell, Mellanox.
  constexpr std::array<std::uint64_t, 11> kGiven{0x14e4, 0x8086, 0x1d0f, 0x1ded, 0x19e5, 0x1425,
                                                 0x1414, 0x15ad, 0x1137, 0x1077, 0x15b3};
  return std::find(kGiven.begin(), kGiven.end(), vendor) == kGiven.end() ? 0 : vendor;
}

}  // namespace

void read_ibstat(const EvidenceSection& section, Facts& facts) {
  PortReader reader(section, facts);
  for (const EvidenceLine& line : section.lines) {
    const std::string_view text = without_blanks(line.text);
    if (text.starts_with("CA '")) {
      reader.device(quoted(text));
      continue;
    }
    if (text.starts_with("Port ") && text.ends_with(':')) {
      reader.port(text.substr(5));
      continue;
    }
    const std::optional<KeyAndValue> entry = key_and_value(text);
    if (!entry) continue;
    if (entry->key == "State") reader.state(line, entry->value);
    if (entry->key == "Physical state" && !entry->value.empty()) {
      reader.add(line, fact::kPhysical, one_line(entry->value));
    }
    if (entry->key == "Rate") reader.rate(line, gigabits_of(entry->value));
    if (entry->key == "Link layer") reader.link_layer(line, entry->value);
    if (entry->key == "CA type" && !entry->value.empty()) {
      reader.add(line, fact::kProduct, one_line(entry->value));
    }
  }
}

void read_ibstatus(const EvidenceSection& section, Facts& facts) {
  PortReader reader(section, facts);
  for (const EvidenceLine& line : section.lines) {
    const std::string_view text = without_blanks(line.text);
    if (text.starts_with("Infiniband device '")) {
      reader.device(quoted(text));
      Scan scan(text);
      if (scan.skip_to(" port ")) reader.port(scan.rest());
      continue;
    }
    const std::optional<KeyAndValue> entry = key_and_value(text);
    if (!entry) continue;
    if (entry->key == "state") reader.state(line, entry->value);
    if (entry->key == "rate") reader.rate(line, gigabits_of(entry->value));
    if (entry->key == "link_layer") reader.link_layer(line, entry->value);
  }
}

/// active_width and active_speed are of one lane each: "4X (2)", "100.0 Gbps (128)". The number of
/// the part is that of its PCI function. EFA, whose transport is "unspecified", has called its link
/// layer InfiniBand.
void read_ibv_devinfo(const EvidenceSection& section, Facts& facts) {
  PortReader reader(section, facts);
  std::int64_t lanes = 0;
  std::uint64_t vendor = 0;
  bool has_link_layer = true;
  for (const EvidenceLine& line : section.lines) {
    const std::optional<KeyAndValue> entry = key_and_value(line.text);
    if (!entry) continue;
    if (entry->key == "hca_id") {
      reader.device(entry->value);
      vendor = 0;
      has_link_layer = true;
    }
    if (entry->key == "transport") has_link_layer = !entry->value.starts_with("unspecified");
    if (entry->key == "vendor_id") vendor = pci_vendor_of(Scan(entry->value).hex().value_or(0));
    if (entry->key == "vendor_part_id" && vendor > 0) {
      const std::int64_t part = Scan(entry->value).whole().value_or(0);
      if (part > 0 && part <= 0xffff) reader.function_id(line, vendor, part);
    }
    if (entry->key == "port") {
      reader.port(entry->value);
      lanes = 0;
    }
    if (entry->key == "state") reader.state(line, entry->value);
    if (entry->key == "active_mtu") reader.mtu(line, entry->value);
    if (entry->key == "link_layer" && has_link_layer) reader.link_layer(line, entry->value);
    if (entry->key == "active_width") lanes = Scan(entry->value).whole().value_or(0);
    if (entry->key == "active_speed" && lanes > 0 && lanes <= 12) {
      const std::optional<double> rate = Scan(entry->value).number();
      if (rate && *rate > 0 && *rate <= 1000) {
        reader.rate(line, format_number(*rate * static_cast<double>(lanes)));
      }
    }
  }
}

/// "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1np0".
void read_rdma_link(const EvidenceSection& section, Facts& facts) {
  PortReader reader(section, facts);
  for (const EvidenceLine& line : section.lines) {
    Scan scan(without_blanks(line.text));
    const std::string_view first = scan.word();  // "link", before iproute2 5.1 "1/1:"
    if (first != "link" && !(first.ends_with(':') && holds(first, "/"))) continue;
    reader.device(scan.blanks().until("/"));
    reader.port(scan.word());
    Scan state(scan.rest());
    if (state.skip_to("state ")) reader.state(line, state.word());
    if (Scan netdev(scan.rest()); netdev.skip_to(" netdev ")) {
      reader.link_layer(line, "Ethernet");
      reader.netdev(line, netdev.word());
    } else if (holds(scan.rest(), "subnet_prefix")) {
      reader.link_layer(line, "InfiniBand");
    }
  }
}

/// "mlx5_0 port 1 ==> ens1np0 (Up)", with -v "0000:19:00.0 mlx5_0 (MT4129 - MCX75310AAS) ... fw
/// 28.43.1014 port 1 (ACTIVE) ==> ib0 (Down)". "ib0 (Down)" is IPoIB's: the port below it may be
/// up.
void read_ibdev2netdev(const EvidenceSection& section, Facts& facts) {
  PortReader reader(section, facts);
  for (const EvidenceLine& line : section.lines) {
    Scan scan(without_blanks(line.text));
    std::string_view name = scan.word();
    const std::string bus_id = bus_id_of(name);
    if (!bus_id.empty()) name = scan.word();
    // "(MT4119 - MCX556A) ConnectX-5, dual port QSFP28 fw 16.35.3006 port 2 (ACTIVE) ==> ib1 (Up)"
    const std::string_view before = scan.until("==>");
    const std::size_t at = before.rfind(" port ");
    if (at == std::string_view::npos) continue;
    Scan head(before.substr(0, at));
    Scan of_port(before.substr(at + std::string_view(" port ").size()));
    const std::string_view port = of_port.blanks().word();
    const std::string_view state = without_blanks(of_port.rest());
    const std::string_view netdev = scan.blanks().word();
    if (netdev.empty() || (bus_id.empty() && !head.blanks().at_end())) continue;
    reader.device(name);
    reader.port(port);
    if (!bus_id.empty()) reader.function(line, bus_id);
    reader.netdev(line, netdev);
    if (head.blanks().skip("(MT")) {
      reader.add(line, fact::kProduct, "MT" + one_line(head.until(" ")));
    }
    const bool up = scan.blanks().rest().starts_with("(Up)");
    if (!state.empty()) {
      reader.state(line, state);
    } else if (up || !netdev.starts_with("ib")) {
      reader.add(line, fact::kState, up ? "up" : "down");
    }
  }
}

/// The entries of a line of it: "Speed : IB-EDR"; with --json one or all in quotes, apart at ','
/// and braces.
std::vector<KeyAndValue> mlxlink_entries(std::string_view line) {
  std::vector<KeyAndValue> out;
  line = without_blanks(line);
  const bool is_json = line.starts_with('"') || line.starts_with('{');
  const auto bare = [](std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of('"'), text.size());
    return text.substr(begin, text.find_last_not_of('"') + 1 - begin);
  };
  std::size_t begin = 0;
  bool is_quoted = false;
  for (std::size_t at = 0; at <= line.size(); ++at) {
    if (at < line.size() && line[at] == '"') is_quoted = !is_quoted;
    const bool is_end =
        at == line.size() || (is_json && !is_quoted && holds(",{}", line.substr(at, 1)));
    if (!is_end) continue;
    const auto entry = key_and_value(line.substr(begin, at - begin));
    if (entry) out.push_back({bare(entry->key), bare(entry->value)});
    begin = at + 1;
  }
  return out;
}

/// The output names no device: a banner or the command above it does, by its verbs name; the
/// command also by its bus id or, as "/dev/mst/mt4129_pciconf3", by a name that `mst status -v`
/// tells.
void read_mlxlink(const EvidenceSection& section, Facts& facts) {
  constexpr std::array<std::string_view, 4> kCounters{"Symbol Errors", "Effective Physical Errors",
                                                      "Link Down Counter",
                                                      "Link Error Recovery Counter"};
  PortReader reader(section, facts);
  const std::string bus_id = bus_id_of(section.argument);
  reader.device(bus_id.empty() ? section.argument : bus_id);
  double lane = 0;
  const auto read = [&](const EvidenceLine& line, const KeyAndValue& entry) {
    if (entry.key == "State") reader.state(line, entry.value);
    if (entry.key == "Physical state" && entry.value == "Disabled") {
      reader.add(line, fact::kPhysical, "Disabled");
    }
    if (entry.key.starts_with("Time Since Last Clear")) {
      reader.add(line, std::string(fact::kLog) + "counters", "read");
    }
    if (std::find(kCounters.begin(), kCounters.end(), entry.key) != kCounters.end() &&
        Scan(entry.value).whole().value_or(0) > 0) {
      reader.add(line, std::string(fact::kCounter) + std::string(entry.key),
                 std::to_string(*Scan(entry.value).whole()));
    }
    if (entry.key == "Speed") {
      lane = lane_rate(entry.value);
      // Ethernet: "400G_4X", "100GbE"; the whole port's. A port that is down has "N/A".
      const std::string whole = lane == 0 ? gigabits_of(entry.value) : "";
      if (!whole.empty()) reader.rate(line, whole);
      if (lane > 0 || !whole.empty()) {
        reader.link_layer(line, lane > 0 ? "InfiniBand" : "Ethernet");
      }
    }
    if (entry.key == "Width" && lane > 0) {
      const std::optional<std::int64_t> lanes = Scan(entry.value).whole();
      if (lanes && *lanes > 0 && *lanes <= 12) {
        reader.rate(line, format_number(lane * static_cast<double>(*lanes)));
      }
    }
  };
  for (const EvidenceLine& line : section.lines) {
    for (const KeyAndValue& entry : mlxlink_entries(line.text)) read(line, entry);
  }
}

/// "ConnectX7(rev:0)  /dev/mst/mt4129_pciconf7  d9:00.0  mlx5_7  net-ibp217s0  1" of -v; without it
/// "/dev/mst/mt4129_pciconf0 - PCI configuration cycles access." and below it
/// "domain:bus:dev.fn=0000:19:00.0".
void read_mst(const EvidenceSection& section, Facts& facts) {
  constexpr std::string_view kFunction = "domain:bus:dev.fn=";
  std::string device;
  for (const EvidenceLine& line : section.lines) {
    Scan scan(line.text);
    while (!scan.blanks().at_end()) {
      std::string_view word = scan.word();
      if (word.starts_with(fact::kMstFolder)) device = one_line(word);
      const bool is_alone = word.starts_with(kFunction);
      if (is_alone) word.remove_prefix(kFunction.size());
      const std::string bus_id = bus_id_of(word);
      if (bus_id.empty()) continue;
      const std::string name = is_alone ? "" : one_line(scan.blanks().word());
      const bool has_name = !name.empty() && name != "NA";
      if (has_name) facts.add(section.fact(line, name, fact::kBusId, bus_id));
      if (!device.empty()) {
        facts.add(section.fact(line, has_name ? name : bus_id, fact::kMst, std::move(device)));
      }
      device.clear();
      break;
    }
  }
}

std::string gigabits_of(std::string_view text) {
  const std::optional<double> rate = Scan(without_blanks(text)).number();
  return rate && *rate > 0 && *rate <= 10'000 ? format_number(*rate) : std::string{};
}

}  // namespace weft
