#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/input/evidence/product_names.hpp"
#include "sim/input/evidence/readers.hpp"
#include "sim/input/evidence/scan.hpp"
#include "sim/input/xml_text.hpp"

namespace weft {
namespace {

/// "0x233010DE" of nvidia-smi is device 2330 of vendor 10de.
std::string pci_id_of(std::string_view text) {
  Scan scan(text);
  const std::optional<std::uint64_t> number = scan.hex();
  if (!number || *number > 0xffffffffULL) return {};
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  const auto digits = [&](std::uint64_t value) {
    for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[value >> shift & 0xf];
  };
  digits(*number & 0xffff);
  out += ':';
  digits(*number >> 16);
  return out;
}

bool is_ellipsis(std::string_view line) {
  return line.starts_with("..") || line.starts_with("[..") || line.starts_with("\u2026");
}

std::string lanes_of(std::string_view text) {
  const std::optional<std::int64_t> lanes = Scan(text).whole();
  return lanes && *lanes > 0 && *lanes <= 32 ? std::to_string(*lanes) : std::string{};
}

std::string generation_number(std::string_view text) {
  const std::optional<std::int64_t> number = Scan(text).whole();
  return number && *number >= 1 && *number <= 6 ? std::to_string(*number) : std::string{};
}

/// What -q says in text or XML: below which headings, of a GPU.
struct Entry {
  std::string_view heading;  ///< the last two, "Link Width" or "link_widths"
  std::string_view key;
  std::string_view what;
  std::string (*value)(std::string_view);
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> kEntries{
      {"BAR1 Memory Usage", "Total", fact::kBar1, bytes_of},
      {"BAR1 Memory Usage", "Used", fact::kBar1Used, bytes_of},
      {"PCIe Generation", "Max", fact::kGen, generation_number},
      {"PCIe Generation", "Current", fact::kTrainedGen, generation_number},
      {"Link Width", "Max", fact::kWidth, lanes_of},
      {"Link Width", "Current", fact::kTrainedWidth, lanes_of},
      {"bar1_memory_usage", "total", fact::kBar1, bytes_of},
      {"bar1_memory_usage", "used", fact::kBar1Used, bytes_of},
      {"pcie_gen", "max_link_gen", fact::kGen, generation_number},
      {"pcie_gen", "current_link_gen", fact::kTrainedGen, generation_number},
      {"link_widths", "max_link_width", fact::kWidth, lanes_of},
      {"link_widths", "current_link_width", fact::kTrainedWidth, lanes_of},
      {"PCI", "Device Id", fact::kPciId, pci_id_of},
      {"pci", "pci_device_id", fact::kPciId, pci_id_of}};
  return kEntries;
}

void add_entry(const EvidenceSection& section, const EvidenceLine& line, const std::string& gpu,
               std::string_view heading, std::string_view key, std::string_view text,
               Facts& facts) {
  for (const Entry& entry : entries()) {
    if (entry.heading != heading || entry.key != key) continue;
    const std::string value = entry.value(text);
    if (!value.empty()) facts.add(section.fact(line, gpu, entry.what, value));
  }
}

/// A GPU of a list that is complete has the number of its place in it.
struct ListedGpu {
  EvidenceLine line;
  std::string bus_id;
};

void number_gpus(const EvidenceSection& section, const std::vector<ListedGpu>& gpus, Facts& facts) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    facts.add(section.fact(gpus[i].line, "gpu" + std::to_string(i), fact::kBusId, gpus[i].bus_id));
  }
}

}  // namespace

/// "|   0  NVIDIA H100 80GB HBM3   On  |   00000000:19:00.0 Off |  0 |".
void read_nvidia_smi(const EvidenceSection& section, Facts& facts) {
  for (const EvidenceLine& line : section.lines) {
    Scan scan(without_blanks(line.text));
    if (Scan driver(line.text); driver.skip_to("Driver Version: ")) {
      facts.add(section.fact(line, "host", std::string(fact::kVersion) + "NVIDIA driver",
                             std::string(driver.word())));
      continue;
    }
    if (!scan.skip("|")) continue;
    const std::optional<std::int64_t> number = scan.blanks().whole();
    if (!number || *number < 0 || *number > 1023) continue;
    const std::string_view name = without_blanks(scan.until("|"));
    const std::string id = bus_id_of(scan.word());
    if (id.empty()) continue;
    facts.add(section.fact(line, id, fact::kClass, "0302"));
    facts.add(
        section.fact(line, id, fact::kProduct, product_name(name.substr(0, name.find("  ")))));
    facts.add(section.fact(line, "gpu" + std::to_string(*number), fact::kBusId, id));
  }
}

void read_nvidia_smi_query(const EvidenceSection& section, Facts& facts) {
  std::vector<ListedGpu> gpus;
  std::optional<std::int64_t> attached;
  struct Heading {
    std::size_t indent;
    std::string_view text;
  };
  std::vector<Heading> headings;
  const std::size_t margin =
      section.lines.front().text.find_first_not_of(' ');  // of a page's block
  for (const EvidenceLine& line : section.lines) {
    const std::size_t indent = line.text.find_first_not_of(' ');
    if (indent == std::string_view::npos) continue;
    const std::string_view text = without_blanks(line.text);
    Scan scan(text);
    if (indent <= margin && scan.skip("GPU ")) {
      const std::string id = bus_id_of(scan.word());
      if (id.empty()) continue;
      gpus.push_back({line, id});
      headings.clear();
      facts.add(section.fact(line, id, fact::kClass, "0302"));
      continue;
    }
    const std::size_t colon = text.find(" : ");
    while (!headings.empty() && headings.back().indent >= indent) headings.pop_back();
    if (colon == std::string_view::npos) {
      headings.push_back({indent, text});
      continue;
    }
    const std::string_view key = without_blanks(text.substr(0, colon));
    const std::string_view value = without_blanks(text.substr(colon + 3));
    if (key == "Attached GPUs") attached = Scan(value).whole();
    if (key == "Driver Version") {
      facts.add(section.fact(line, "host", std::string(fact::kVersion) + "NVIDIA driver",
                             std::string(value)));
    }
    if (gpus.empty()) continue;
    const bool is_of_instance =
        std::any_of(headings.begin(), headings.end(), [](const Heading& of) {
          return of.text.starts_with("MIG Device");  // has a BAR1 of its own
        });
    if (is_of_instance) continue;
    if (key == "Product Name") {
      facts.add(section.fact(line, gpus.back().bus_id, fact::kProduct, product_name(value)));
    }
    add_entry(section, line, gpus.back().bus_id, headings.empty() ? "" : headings.back().text, key,
              value, facts);
  }
  if (attached && *attached == static_cast<std::int64_t>(gpus.size())) {
    number_gpus(section, gpus, facts);
  }
}

void read_nvidia_smi_xml(const std::string& text, const EvidenceSection& section, Facts& facts) {
  constexpr std::int64_t kMostBytes = 16LL << 20;
  const XmlText xml(text, section.file, kMostBytes);
  const pugi::xml_node log = xml.document().child("nvidia_smi_log");
  std::vector<ListedGpu> gpus;
  const auto line_of = [&](pugi::xml_node node) { return EvidenceLine{{}, xml.place(node).line}; };
  for (const pugi::xml_node gpu : log.children("gpu")) {
    const std::string id = bus_id_of(XmlText::text(gpu, "id"));
    if (id.empty()) xml.fail(gpu, "<gpu> without an id such as 00000000:18:00.0");
    gpus.push_back({line_of(gpu), id});
    facts.add(section.fact(line_of(gpu), id, fact::kClass, "0302"));
    facts.add(section.fact(line_of(gpu), id, fact::kProduct,
                           product_name(gpu.child("product_name").text().get())));
    const pugi::xml_node pci = gpu.child("pci");
    const pugi::xml_node link = pci.child("pci_gpu_link_info");
    for (const pugi::xml_node part :
         {gpu.child("bar1_memory_usage"), pci, link.child("pcie_gen"), link.child("link_widths")}) {
      for (const pugi::xml_node entry : part.children()) {
        add_entry(section, line_of(entry), id, part.name(), entry.name(), entry.text().get(),
                  facts);
      }
    }
  }
  const std::optional<std::int64_t> attached =
      Scan(log.child("attached_gpus").text().get()).whole();
  if (attached && *attached == static_cast<std::int64_t>(gpus.size())) {
    number_gpus(section, gpus, facts);
  }
}

/// "GPU 0: NVIDIA A100-SXM4-80GB (UUID: ...)", then "Link 0: 25 GB/s" or "Link 0: <inactive>"; of
/// nvlink -R "Link 0: Remote Device 00000000:06:00.0: Link 57", of -p "Link 0: 00000000:06:00.0". A
/// list that is cut says nothing of how many there are: one with an ellipsis, and the last one if
/// it has fewer links than one of its kind before it. Nor do other lists by link: errors (-e),
/// capabilities (-c), traffic (-gt).
void read_nvlink(const EvidenceSection& section, Facts& facts) {
  struct Listed {
    EvidenceLine head{};
    std::string gpu{};  ///< "" of no number
    std::string product{};
    std::size_t links{0};
    std::size_t up{0};
    bool says_count{false};
    bool is_cut{false};
  };
  Listed now;
  std::map<std::string, std::size_t> most;  // links of those before it, by product
  const auto close = [&] {
    if (!now.gpu.empty() && now.says_count && !now.is_cut) {
      facts.add(section.fact(now.head, now.gpu, fact::kNvlinks, std::to_string(now.up)));
    }
    most[now.product] = std::max(most[now.product], now.links);
  };
  for (const EvidenceLine& line : section.lines) {
    Scan scan(without_blanks(line.text));
    if (scan.skip("GPU ")) {
      close();
      now = {.head = line};
      const std::optional<std::int64_t> number = scan.whole();
      if (number && *number >= 0) now.gpu = "gpu" + std::to_string(*number);
      scan.skip(": ");
      now.product = product_name(scan.until("(UUID"));
      if (!now.gpu.empty()) facts.add(section.fact(line, now.gpu, fact::kProduct, now.product));
    } else if (holds(line.text, "all links are inActive")) {  // of NVML, in place of the links
      now.says_count = true;
    } else if (scan.skip("Link ") && scan.whole() && scan.skip(": ")) {
      const bool is_down = scan.rest().starts_with("<inactive>");
      const bool is_up = scan.rest().starts_with("Remote Device ") ||
                         !bus_id_of(without_blanks(scan.rest())).empty() ||
                         (scan.number() && scan.blanks().rest().starts_with("GB/s"));
      if (!is_up && !is_down) continue;
      now.says_count = true;
      ++now.links;
      now.up += is_up ? 1 : 0;
    } else if (is_ellipsis(without_blanks(line.text))) {
      now.is_cut = true;
    }
  }
  now.is_cut = now.is_cut || (now.links > 0 && now.links < most[now.product]);
  close();
}

}  // namespace weft
