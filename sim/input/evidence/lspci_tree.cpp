#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "sim/input/evidence/readers.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

/// A bus and the bridge it is behind; "" for a root bus.
struct Bus {
  std::uint64_t domain{0};
  std::uint64_t number{0};
  std::string bridge;
  bool is_known{false};
};

/// "  NVIDIA Corporation Device 2b85", of what its list of names lacks; with -nn
/// "Device [10de:2b85]". Of vendors whose GPUs and NICs weft tells by it.
bool is_number_alone(std::string_view product) {
  Scan scan(without_blanks(product));
  return scan.skip("NVIDIA Corporation Device ") || scan.skip("Mellanox Technologies Device ");
}

/// `lspci -tv`: a line's devices hang below the bus that was open where its '+' or '\' stands.
class TreeReader {
 public:
  TreeReader(const EvidenceSection& section, Facts& facts) : section_{section}, facts_{facts} {}

  void read() {
    // A first line "+-[..." may have lost the blank that the others begin with.
    const bool is_first_shifted =
        section_.lines.front().text.starts_with("+-[") &&
        std::none_of(section_.lines.begin() + 1, section_.lines.end(),
                     [](const auto& line) { return line.text.find_first_of("+|\\") == 0; });
    shift_ = is_first_shifted ? 1 : 0;
    for (const EvidenceLine& line : section_.lines) {
      read_line(line);
      shift_ = 0;
    }
  }

 private:
  void read_line(const EvidenceLine& line);
  /// Reads "[0000:00]", "[01]" or "[c9-cc]"; false if it is none of them.
  bool read_bus(std::string_view text, std::size_t& at);
  /// Reads "1f.2", a function on the open bus; false if there is none.
  bool read_function(const EvidenceLine& line, std::size_t& at);

  const EvidenceSection& section_;
  Facts& facts_;
  std::map<std::size_t, Bus> branches_;  // by column
  std::size_t shift_{0};                 // that a line's columns lack
  Bus bus_;
  std::string last_;  // the function read last
};

void TreeReader::read_line(const EvidenceLine& line) {
  const std::string_view text = line.text;
  std::size_t at = text.find_first_not_of(" |");
  if (at == std::string_view::npos || (text[at] != '+' && text[at] != '\\' && text[at] != '-')) {
    return;
  }
  last_.clear();
  bus_ = {};
  if (text[at] != '-') {
    const auto branch = branches_.find(at + shift_);
    // The first root bus may be cut off above: "-+-[0000:e2]-+-...".
    const bool is_root = branches_.empty() && text.substr(at).starts_with("+-[");
    if (branch == branches_.end() && !is_root) return;  // cut off above
    if (!is_root) bus_ = branch->second;
  } else {
    if (!branches_.empty()) {
      throw InputError(section_.place(line),
                       "a second tree begins here; give each host's in a file of its own, as "
                       "HOST=FILE");
    }
  }
  while (at < text.size()) {
    if (text[at] == '+') branches_.insert_or_assign(at + shift_, bus_);
    if (text[at] == '+' || text[at] == '-' || text[at] == '\\') {
      ++at;
    } else if (text[at] == '[') {
      if (!read_bus(text, at)) return;
    } else if (!read_function(line, at)) {
      return;
    }
  }
}

bool TreeReader::read_bus(std::string_view text, std::size_t& at) {
  Scan scan(text.substr(at + 1));
  const std::optional<std::uint64_t> first = scan.hex();
  if (!first) return false;
  if (scan.skip(":")) {
    const std::optional<std::uint64_t> number = scan.hex();
    if (!number) return false;
    bus_ = {*first, *number, "", true};
  } else if (last_.empty()) {
    bus_ = {0, *first, "", true};  // a machine of one domain
  } else {
    bus_ = {bus_.domain, *first, last_, true};
  }
  const std::size_t end = text.find(']', at);
  if (end == std::string_view::npos) return false;
  at = end + 1;
  return true;
}

bool TreeReader::read_function(const EvidenceLine& line, std::size_t& at) {
  const std::string_view text = line.text.substr(at);
  if (!bus_.is_known || text.size() < 4 || text[2] != '.') return false;
  const std::string id = bus_id_of(fmt::format("{:04x}:{:02x}:{}", bus_.domain & 0xffffffff,
                                               bus_.number & 0xff, text.substr(0, 4)));
  if (id.empty()) return false;
  if (bus_.bridge.empty()) {
    facts_.add(section_.fact(line, id, fact::kRootBus,
                             fmt::format("{:04x}:{:02x}", bus_.domain, bus_.number)));
  } else {
    facts_.add(section_.fact(line, id, fact::kParent, bus_.bridge));
  }
  last_ = id;
  at += 4;
  if (line.text.substr(at).starts_with("-[")) return true;
  const std::string_view product = line.text.substr(at);
  add_pci_product(section_, line, id, product, facts_);
  if (is_number_alone(product)) facts_.add(section_.fact(line, id, fact::kNumberAlone, "yes"));
  return false;
}

}  // namespace

void read_lspci_tree(const EvidenceSection& section, Facts& facts) {
  TreeReader(section, facts).read();
}

}  // namespace weft
