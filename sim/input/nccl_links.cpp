#include "sim/input/nccl_links.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/input/nccl_pci.hpp"

namespace weft {
namespace {

constexpr std::int64_t kMostNvlinks = 1024;

/// A GPU by its host and bus id.
using GpuKey = std::pair<std::size_t, std::string>;

/// How many links a GPU lists to each neighbour.
struct Tally {
  std::uint32_t to_switch{0};
  std::uint32_t to_cpu{0};
  std::map<std::pair<LinkKind, std::size_t>, std::uint32_t> to_gpu;
};

class LinkReader {
 public:
  LinkReader(const XmlText& xml, std::span<const GpuElement> gpus) : xml_{xml}, gpus_{gpus} {
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      gpu_by_bus_.emplace(GpuKey{gpus[i].host, bus_digits(gpus[i].bus_id)}, i);
    }
  }

  std::vector<PeerLinkSpec> read() {
    std::map<std::pair<LinkKind, std::pair<std::size_t, std::size_t>>, std::uint32_t> direct;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const Tally tally = read_gpu(gpus_[i]);
      add(LinkKind::kNvlink, gpus_[i], kNcclNvSwitchName, tally.to_switch);
      add(LinkKind::kC2c, gpus_[i], gpus_[i].root_cpu, tally.to_cpu);
      // Both ends list a direct link, as a rule; virtual machines also list a GPU's link to itself.
      for (const auto& [peer, count] : tally.to_gpu) {
        if (peer.second == i) continue;
        std::uint32_t& both = direct[{peer.first, std::minmax({i, peer.second})}];
        both = std::max(both, count);
      }
    }
    for (const auto& [link, count] : direct) {
      add(link.first, gpus_[link.second.first], gpus_[link.second.second].name, count);
    }
    return std::move(links_);
  }

 private:
  void add(LinkKind kind, const GpuElement& gpu, const std::string& to, std::uint32_t count) {
    if (count > 0) links_.push_back({kind, gpu.name, to, count, xml_.place(gpu.gpu)});
  }

  Tally read_gpu(const GpuElement& gpu) const {
    Tally tally;
    for (const pugi::xml_node link : gpu.gpu.children("nvlink")) {
      const std::int64_t target_class = xml_.pci_number(link, "tclass").value_or(0);
      const std::uint32_t links = count(link);
      switch (nvlink_end(target_class)) {
        case NvlinkEnd::kCpu:
          tally.to_cpu += links;
          break;
        case NvlinkEnd::kSwitch:
          tally.to_switch += links;
          break;
        case NvlinkEnd::kGpu:
          add_direct(LinkKind::kNvlink, gpu, link, links, tally);
          break;
      }
    }
    for (const pugi::xml_node link : gpu.gpu.children("xgmi")) {
      add_direct(LinkKind::kXgmi, gpu, link, count(link), tally);
    }
    for (const pugi::xml_node link : gpu.gpu.children("c2c")) tally.to_cpu += count(link);
    return tally;
  }

  void add_direct(LinkKind kind, const GpuElement& gpu, pugi::xml_node link, std::uint32_t links,
                  Tally& tally) const {
    const auto peer = gpu_by_bus_.find({gpu.host, bus_digits(XmlText::text(link, "target"))});
    if (peer != gpu_by_bus_.end()) tally.to_gpu[{kind, peer->second}] += links;
  }

  std::uint32_t count(pugi::xml_node link) const {
    const std::optional<std::int64_t> links = xml_.integer(link, "count");
    if (!links || *links < 0 || *links > kMostNvlinks) {
      xml_.fail(link, std::string("<") + link.name() + "> needs a count from 0 to " +
                          std::to_string(kMostNvlinks));
    }
    return static_cast<std::uint32_t>(*links);
  }

  const XmlText& xml_;
  std::span<const GpuElement> gpus_;
  std::map<GpuKey, std::size_t> gpu_by_bus_;
  std::vector<PeerLinkSpec> links_;
};

}  // namespace

NvlinkEnd nvlink_end(std::int64_t target_class) {
  constexpr std::int64_t kGpuBaseClass = 0x03;   // PCI base class
  constexpr std::int64_t kCpuNvlink = 0x068001;  // NCCL's class for a CPU with NVLink (POWER9)
  if (target_class == kCpuNvlink) return NvlinkEnd::kCpu;
  return target_class >> 16 == kGpuBaseClass ? NvlinkEnd::kGpu : NvlinkEnd::kSwitch;
}

std::vector<PeerLinkSpec> read_gpu_links(const XmlText& xml, std::span<const GpuElement> gpus) {
  return LinkReader(xml, gpus).read();
}

}  // namespace weft
