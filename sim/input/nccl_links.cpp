#include "sim/input/nccl_links.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

namespace weft {
namespace {

constexpr std::int64_t kGpuBaseClass = 0x03;   // PCI base class
constexpr std::int64_t kCpuNvlink = 0x068001;  // NCCL's class for a CPU with NVLink (POWER9)
constexpr std::int64_t kMostNvlinks = 1024;

/// How many links a GPU lists to each neighbour.
struct Tally {
  std::uint32_t to_switch{0};
  std::uint32_t to_cpu{0};
  std::map<std::size_t, std::uint32_t> to_gpu;
};

/// NCCL compares bus ids by their hexadecimal digits only.
std::string bus_key(const std::string& bus_id) {
  std::string digits;
  for (const char c : bus_id) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isxdigit(byte) != 0) digits += static_cast<char>(std::tolower(byte));
  }
  return digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
}

std::uint32_t link_count(const XmlText& xml, pugi::xml_node link) {
  const std::optional<std::int64_t> count = xml.integer(link, "count");
  if (!count || *count < 0 || *count > kMostNvlinks) {
    xml.fail(link, std::string("<") + link.name() + "> needs a count from 0 to " +
                       std::to_string(kMostNvlinks));
  }
  return static_cast<std::uint32_t>(*count);
}

Tally tally_links(const XmlText& xml, const GpuElement& gpu,
                  const std::map<std::string, std::size_t>& gpu_by_bus) {
  Tally tally;
  for (const pugi::xml_node link : gpu.gpu.children("nvlink")) {
    const std::int64_t target_class = xml.integer(link, "tclass").value_or(0);
    const std::uint32_t count = link_count(xml, link);
    if (target_class == kCpuNvlink) {
      tally.to_cpu += count;
    } else if (target_class >> 16 != kGpuBaseClass) {
      tally.to_switch += count;
    } else if (const auto peer = gpu_by_bus.find(bus_key(XmlText::text(link, "target")));
               peer != gpu_by_bus.end()) {
      tally.to_gpu[peer->second] += count;
    }
  }
  for (const pugi::xml_node link : gpu.gpu.children("c2c")) tally.to_cpu += link_count(xml, link);
  return tally;
}

}  // namespace

std::vector<PeerLinkSpec> read_gpu_links(const XmlText& xml, std::span<const GpuElement> gpus) {
  std::map<std::string, std::size_t> gpu_by_bus;
  for (std::size_t i = 0; i < gpus.size(); ++i) gpu_by_bus.emplace(bus_key(gpus[i].bus_id), i);
  std::vector<Tally> tallies;
  for (const GpuElement& gpu : gpus) tallies.push_back(tally_links(xml, gpu, gpu_by_bus));

  std::vector<PeerLinkSpec> links;
  const auto add = [&](LinkKind kind, const GpuElement& gpu, const std::string& to,
                       std::uint32_t count) {
    if (count > 0) links.push_back({kind, gpu.name, to, count, xml.place(gpu.gpu)});
  };
  // Both ends list a direct link, as a rule; virtual machines also list a GPU's link to itself.
  std::map<std::pair<std::size_t, std::size_t>, std::uint32_t> direct;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    add(LinkKind::kNvlink, gpus[i], kNcclNvSwitchName, tallies[i].to_switch);
    add(LinkKind::kC2c, gpus[i], gpus[i].root_cpu, tallies[i].to_cpu);
    for (const auto& [j, count] : tallies[i].to_gpu) {
      std::uint32_t& both = direct[std::minmax({i, j})];
      if (i != j) both = std::max(both, count);
    }
  }
  for (const auto& [ends, count] : direct) {
    add(LinkKind::kNvlink, gpus[ends.first], gpus[ends.second].name, count);
  }
  return links;
}

}  // namespace weft
