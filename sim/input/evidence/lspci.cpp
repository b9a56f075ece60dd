#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/input/evidence/readers.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

/// What lspci calls a class where it prints no number (the PCI ID Repository's names).
constexpr std::array<std::pair<std::string_view, std::string_view>, 42> kClasses{
    {{"VGA compatible controller", "0300"},
     {"3D controller", "0302"},
     {"Display controller", "0380"},
     {"Processing accelerators", "1200"},
     {"Ethernet controller", "0200"},
     {"Infiniband controller", "0207"},
     {"Fabric controller", "0208"},
     {"Network controller", "0280"},
     {"Non-Volatile memory controller", "0108"},
     {"SATA controller", "0106"},
     {"IDE interface", "0101"},
     {"RAID bus controller", "0104"},
     {"Serial Attached SCSI controller", "0107"},
     {"SCSI storage controller", "0100"},
     {"Mass storage controller", "0180"},
     {"Multimedia audio controller", "0401"},
     {"Audio device", "0403"},
     {"Multimedia controller", "0480"},
     {"RAM memory", "0500"},
     {"FLASH memory", "0501"},
     {"CXL", "0502"},
     {"Memory controller", "0580"},
     {"Host bridge", "0600"},
     {"ISA bridge", "0601"},
     {"PCI bridge", "0604"},
     {"Bridge", "0680"},
     {"Serial controller", "0700"},
     {"Communication controller", "0780"},
     {"PIC", "0800"},
     {"DMA controller", "0801"},
     {"IOMMU", "0806"},
     {"System peripheral", "0880"},
     {"Co-processor", "0b40"},
     {"USB controller", "0c03"},
     {"SMBus", "0c05"},
     {"InfiniBand", "0c06"},
     {"IPMI Interface", "0c07"},
     {"Serial bus controller", "0c80"},
     {"Encryption controller", "1080"},
     {"Performance counters", "1101"},
     {"Signal processing controller", "1180"},
     {"Non-Essential Instrumentation", "1300"}}};

/// Vendors whose devices weft tells apart, as lspci names them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kVendors{
    {{"NVIDIA Corporation", "10de"},
     {"nVidia Corporation", "10de"},
     {"Mellanox Technologies", "15b3"},
     {"Amazon.com, Inc.", "1d0f"},
     {"Intel Corporation", "8086"},
     {"Advanced Micro Devices, Inc. [AMD/ATI]", "1002"},
     {"Broadcom / LSI", "1000"}}};

/// Words of the PCI ID Repository's device names, and a device's number that is called so.
constexpr std::array<std::pair<std::string_view, std::string_view>, 32> kProducts{
    {{"V100-SXM", "1db5"},      {"V100 SXM", "1db5"},     {"A100 SXM", "20b2"},
     {"A100-SXM", "20b2"},      {"A100 PCIe", "20b5"},    {"A100-PCIE", "20f1"},
     {"A30", "20b7"},           {"[A10]", "2236"},        {"A40", "2235"},
     {"T4]", "1eb8"},           {"[L4]", "27b8"},         {"L40S", "26b9"},
     {"H100 SXM", "2330"},      {"H100 PCIe", "2331"},    {"H200 SXM", "2335"},
     {"H200]", "2335"},         {"GH200", "2342"},        {"B200]", "2901"},
     {"GB200]", "2941"},        {"B300", "3182"},         {"GB300", "31c2"},
     {"ConnectX-5 Ex", "1019"}, {"[ConnectX-5]", "1017"}, {"ConnectX-6 Dx", "101d"},
     {"[ConnectX-6]", "101b"},  {"[ConnectX-7]", "1021"}, {"[ConnectX-8]", "1023"},
     {"BlueField-3", "a2dc"},   {"EFA", "efa1"},          {"MT28908", "101b"},
     {"MT2910", "1021"},        {"MT2892", "101d"}}};

/// Whether a text has words in it and not within others: "B200]" is none of "GB200]", "A40" none of
/// "A4000"; "H100 SXM" is one of "H100 SXM5".
bool holds_words(std::string_view text, std::string_view words) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const bool open = is_word(words.front());
  const bool number = std::isdigit(static_cast<unsigned char>(words.back())) != 0;
  for (std::size_t at = text.find(words); at != std::string_view::npos;
       at = text.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    const bool begins = !open || at == 0 || !is_word(text[at - 1]);
    if (begins && !(number && end < text.size() && is_word(text[end]))) return true;
  }
  return false;
}

template <class Table>
std::string_view look_up(const Table& table, std::string_view text, bool anywhere) {
  for (const auto& [name, number] : table) {
    if (anywhere ? holds_words(text, name) : text.starts_with(name)) return number;
  }
  return {};
}

/// The last "[abcd:ef01]" of a line, that lspci -nn puts there.
std::string_view numeric_id(std::string_view line) {
  for (std::size_t at = line.rfind('['); at != std::string_view::npos && at > 0;
       at = line.rfind('[', at - 1)) {
    const std::string_view id = line.substr(at + 1, 9);
    if (id.size() == 9 && id[4] == ':' && line.substr(at).size() > 10 && line[at + 10] == ']' &&
        id.find_first_not_of("0123456789abcdef:") == std::string_view::npos) {
      return id;
    }
  }
  return {};
}

class LspciReader {
 public:
  LspciReader(const EvidenceSection& section, Facts& facts) : section_{section}, facts_{facts} {}

  void read() {
    for (const EvidenceLine& line : section_.lines) {
      const EvidenceKindText* const begun = evidence_begun_by(without_blanks(line.text));
      if (begun != nullptr && begun->kind == EvidenceKind::kLspci) {
        begin_function(line);
      } else if (!id_.empty()) {
        read_detail(line);
      }
    }
    end_function();
    join();
  }

 private:
  struct Bridge {
    std::string id;
    std::uint64_t domain;
    std::uint64_t secondary;
    EvidenceLine line;
  };

  void begin_function(const EvidenceLine& line);
  void end_function();
  void read_detail(const EvidenceLine& line);
  void add_silence(const EvidenceLine& line, std::string_view words);
  void read_bus(const EvidenceLine& line, Scan scan);
  void read_express(const EvidenceLine& line, std::string_view text);
  void read_link(const EvidenceLine& line, Scan scan, std::string_view gen, std::string_view width);
  void read_control(const EvidenceLine& line, std::string_view text);
  void read_able(const EvidenceLine& line, Scan scan);
  void read_acs(const EvidenceLine& line, std::string_view text);
  void read_region(const EvidenceLine& line, Scan scan);
  void join();
  void add(const EvidenceLine& line, std::string_view what, std::string value) {
    facts_.add(section_.fact(line, id_, what, std::move(value)));
  }

  const EvidenceSection& section_;
  Facts& facts_;
  std::string id_;
  bool is_gpu_{false};
  bool is_silent_{false};
  bool in_control_{false};    // lines that go on with DevCtl
  std::uint64_t largest_{0};  // of its regions; 0 if none can be BAR1
  EvidenceLine largest_line_;
  std::map<std::string, EvidenceLine> functions_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Bridge> by_secondary_;
};

/// Of a GPU's regions the largest is BAR1.
void LspciReader::end_function() {
  if (largest_ > 0) add(largest_line_, fact::kBar1, std::to_string(largest_));
  largest_ = 0;
}

void LspciReader::begin_function(const EvidenceLine& line) {
  end_function();
  Scan scan(without_blanks(line.text));  // a page's block of code may be indented
  id_ = bus_id_of(scan.word());
  in_control_ = false;
  is_gpu_ = false;
  is_silent_ = false;
  if (id_.empty()) return;
  functions_.emplace(id_, line);
  scan.blanks();
  const std::string_view kind = scan.until(": ");
  const std::size_t bracket = kind.rfind('[');
  std::string number(look_up(kClasses, kind, false));
  if (bracket != std::string_view::npos && kind.size() >= bracket + 6) {
    number = kind.substr(bracket + 1, 4);
  }
  if (kind.size() == 4 && kind.find_first_not_of("0123456789abcdef") == std::string_view::npos) {
    number = kind;  // lspci -n
  }
  is_gpu_ = number.starts_with("03") || number.starts_with("12");
  if (!number.empty()) add(line, fact::kClass, number);
  add_pci_product(section_, line, id_, scan.rest(), facts_);
  if (holds(scan.rest(), "(rev ff)")) add_silence(line, "rev ff");
}

/// Reads of a function that is gone give all ones (PCI Express Base, 2.3.2): revision ff, and
/// header type 7f without the bit for several functions.
void LspciReader::add_silence(const EvidenceLine& line, std::string_view words) {
  if (is_silent_) return;
  is_silent_ = true;
  add(line, fact::kAlert,
      "does not answer on PCIe (" + std::string(words) +
          "): it fell off the bus, or is powered down");
}

void LspciReader::read_detail(const EvidenceLine& line) {
  const std::string_view text = without_blanks(line.text);
  Scan scan(text);
  if (scan.skip("NUMA node: ")) {
    if (const auto node = scan.whole()) add(line, fact::kNuma, std::to_string(*node));
  } else if (scan.skip("Bus: primary=")) {
    read_bus(line, scan);
  } else if (text.starts_with("!!! Unknown header type 7f")) {
    add_silence(line, "header type 7f");
  } else if (text.starts_with("Capabilities: <access denied>")) {
    facts_.add(section_.fact(line, "host", fact::kDenied, "yes"));
  } else if (text.starts_with("Capabilities: ")) {
    in_control_ = false;
    if (holds(text, "] Express ")) read_express(line, text);
  } else if (scan.skip("DevCap:")) {
    read_able(line, scan);
  } else if (scan.skip("DevCtl:")) {
    in_control_ = true;
    read_control(line, scan.rest());
  } else if (text.starts_with("DevSta:")) {
    in_control_ = false;
  } else if (in_control_) {
    read_control(line, text);
  } else if (scan.skip("LnkCap:")) {
    read_link(line, scan, fact::kGen, fact::kWidth);
  } else if (scan.skip("LnkSta:")) {
    read_link(line, scan, fact::kTrainedGen, fact::kTrainedWidth);
  } else if (scan.skip("ACSCtl:")) {
    read_acs(line, scan.rest());
  } else if (scan.skip("Region ")) {
    read_region(line, scan);
  } else if (scan.skip("Kernel driver in use: ")) {
    add(line, fact::kDriver, one_line(scan.rest().substr(0, 64)));
  }
}

void LspciReader::read_bus(const EvidenceLine& line, Scan scan) {
  scan.until("secondary=");
  const std::optional<std::uint64_t> secondary = scan.hex();
  const std::optional<std::uint64_t> domain = Scan(id_).hex();
  if (!secondary || !domain) return;
  by_secondary_.insert_or_assign({*domain, *secondary}, Bridge{id_, *domain, *secondary, line});
}

/// "Capabilities: [68] Express (v2) Downstream Port (Slot+), MSI 00".
void LspciReader::read_express(const EvidenceLine& line, std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kPorts{
      {{"Root Port", "root"},
       {"Upstream Port", "upstream"},
       {"Downstream Port", "downstream"},
       {"to PCI", "bridge"}}};
  for (const auto& [words, port] : kPorts) {
    if (holds(text, words)) {
      add(line, fact::kPort, std::string(port));
      return;
    }
  }
}

/// "Port #0, Speed 32GT/s, Width x16, ASPM ..."; "Speed 16GT/s (downgraded), Width x8 (ok)".
/// "unknown" and width x0 are of links without anything below.
void LspciReader::read_link(const EvidenceLine& line, Scan scan, std::string_view gen,
                            std::string_view width) {
  if (!scan.skip_to("Speed ")) return;
  const std::string generation = generation_of(scan.until(","));
  if (!generation.empty()) add(line, gen, generation);
  if (!scan.skip_to("Width x")) return;
  const std::optional<std::int64_t> lanes = scan.whole();
  if (lanes && *lanes > 0 && *lanes <= 32) add(line, width, std::to_string(*lanes));
}

void LspciReader::read_control(const EvidenceLine& line, std::string_view text) {
  const auto flag = [&](std::string_view name, std::string_view what) {
    Scan scan(text);
    if (!scan.skip_to(name)) return;
    if (scan.skip("+")) add(line, what, "on");
    if (scan.skip("-")) add(line, what, "off");
  };
  flag("RlxdOrd", fact::kRelaxedOrdering);
  flag("ExtTag", fact::kExtendedTags);
  const auto size = [&](std::string_view name, std::string_view what) {
    Scan scan(text);
    if (!scan.skip_to(name)) return;
    const std::optional<std::int64_t> bytes = scan.whole();
    if (bytes && *bytes >= 128 && *bytes <= 4096) add(line, what, std::to_string(*bytes));
  };
  size("MaxPayload ", fact::kMps);
  size("MaxReadReq ", fact::kMrrs);
}

/// "MaxPayload 512 bytes, PhantFunc 0".
void LspciReader::read_able(const EvidenceLine& line, Scan scan) {
  if (!scan.skip_to("MaxPayload ")) return;
  const std::optional<std::int64_t> bytes = scan.whole();
  if (bytes && *bytes >= 128 && *bytes <= 4096) add(line, fact::kMpsAble, std::to_string(*bytes));
}

/// "SrcValid+ TransBlk- ReqRedir+ ..." as the PCI Express specification's letters.
void LspciReader::read_acs(const EvidenceLine& line, std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kBits{
      {{"SrcValid+", "SV"},
       {"TransBlk+", "TB"},
       {"ReqRedir+", "RR"},
       {"CmpltRedir+", "CR"},
       {"UpstreamFwd+", "UF"},
       {"EgressCtrl+", "EC"},
       {"DirectTrans+", "DT"}}};
  std::string set;
  for (const auto& [words, bit] : kBits) {
    if (holds(text, words)) set += (set.empty() ? "" : "+") + std::string(bit);
  }
  add(line, fact::kAcs, set.empty() ? "none" : set);
}

/// "0: Memory at ... (64-bit, prefetchable) [size=128G]": of a GPU the largest is what is called
/// BAR1; its first 16 or 32 MiB are registers.
void LspciReader::read_region(const EvidenceLine& line, Scan scan) {
  if (!is_gpu_ || !holds(scan.rest(), ", prefetchable)") || !scan.skip_to("[size=")) return;
  const std::string bytes = bytes_of(scan.until("]"));
  const std::uint64_t size = bytes.empty() ? 0 : std::stoull(bytes);
  constexpr std::uint64_t kLeast = 128ULL << 20;
  if (size <= largest_ || size < kLeast) return;
  largest_ = size;
  largest_line_ = line;
}

/// Who is below whom: a function on a bridge's secondary bus is below that bridge, any other on a
/// root bus.
void LspciReader::join() {
  for (const auto& [id, line] : functions_) {
    id_ = id;
    Scan scan(id);
    const std::uint64_t domain = scan.hex().value_or(0);
    scan.skip(":");
    const std::uint64_t bus = scan.hex().value_or(0);
    const auto bridge = by_secondary_.find({domain, bus});
    if (bridge != by_secondary_.end() && bridge->second.id != id) {
      facts_.add(section_.fact(bridge->second.line, id, fact::kParent, bridge->second.id));
    } else if (!by_secondary_.empty()) {
      add(line, fact::kRootBus, fmt::format("{:04x}:{:02x}", domain, bus));
    }
  }
}

}  // namespace

std::string generation_of(std::string_view speed) {
  constexpr std::array<double, 6> kRates{2.5, 5, 8, 16, 32, 64};
  const std::optional<double> rate = Scan(without_blanks(speed)).number();
  if (!rate || !holds(speed, "GT/s")) return {};
  const auto* const found = std::find(kRates.begin(), kRates.end(), *rate);
  return found == kRates.end() ? std::string{} : std::to_string(found - kRates.begin() + 1);
}

std::string bytes_of(std::string_view text) {
  constexpr std::string_view kUnits = "KMGTP";
  Scan scan(without_blanks(text));
  const std::optional<std::int64_t> number = scan.whole();
  if (!number || *number < 0 || *number > 1'000'000'000) return {};
  scan.blanks();
  std::uint64_t factor = 1;
  if (!scan.at_end()) {
    const std::size_t unit = kUnits.find(scan.rest().front());
    if (unit != std::string_view::npos) factor = 1ULL << (10 * (unit + 1));
    if (unit == std::string_view::npos && scan.rest().front() != 'B') return {};
  }
  const std::uint64_t count = static_cast<std::uint64_t>(*number);
  constexpr std::uint64_t kMost = 1'000'000'000'000'000;
  return factor != 0 && count > kMost / factor ? std::string{} : std::to_string(count * factor);
}

void add_pci_product(const EvidenceSection& section, const EvidenceLine& line,
                     const std::string& bus_id, std::string_view text, Facts& facts) {
  const std::string_view name = without_blanks(text.substr(0, text.find(" (rev")));
  if (name.empty()) return;
  facts.add(section.fact(line, bus_id, fact::kProduct, one_line(name.substr(0, 160))));
  std::string id(numeric_id(text));
  if (id.empty()) {
    const std::string_view vendor = look_up(kVendors, name, false);
    if (vendor.empty()) return;
    Scan scan(name);
    std::string device(look_up(kProducts, name, true));
    if (scan.skip_to(" Device ") && scan.rest().size() >= 4) device = scan.rest().substr(0, 4);
    id = std::string(vendor) + ":" + device;
  }
  facts.add(section.fact(line, bus_id, fact::kPciId, id));
}

void read_lspci(const EvidenceSection& section, Facts& facts) {
  LspciReader(section, facts).read();
}

}  // namespace weft
