#include "models/doctor/p2p.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "models/doctor/checks.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

const DeviceSpec* device_of(const TopologySpec& spec, std::string_view name) {
  for (const DeviceSpec& device : spec.node.devices) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

/// The GPU of "3[1]": by its number (NVML's), before NCCL 2.19 by its bus id, "3[8b000]".
const DeviceSpec* gpu_of(const TopologySpec& spec, std::string_view end) {
  Scan scan(end);
  if (!scan.skip_to("[")) return nullptr;
  const std::string_view text = scan.until("]");
  const std::optional<std::uint64_t> number = Scan(text).hex();
  if (!number) return nullptr;
  if (const DeviceSpec* const by_number = device_of(spec, "gpu" + std::string(text))) {
    return by_number;
  }
  const std::string id = bus_id_of_number(*number);
  for (const DeviceSpec& device : spec.node.devices) {
    if (device.kind == DeviceKind::kGpu && device.bus_id == id) return &device;
  }
  return nullptr;
}

/// "SHM/direct/direct", before NCCL 2.12 "direct shared memory".
bool is_by_host_memory(std::string_view via) {
  return via.starts_with("SHM") || via.starts_with("direct shared memory");
}

/// The variable that says so: no peer to peer at all.
const Fact* turned_off_by(const HostView& view) {
  const auto variable = [&](std::string_view name) {
    return view.first("host", std::string(fact::kEnv) + std::string(name));
  };
  const Fact* const disabled = variable("NCCL_P2P_DISABLE");
  if (disabled != nullptr && disabled->value == "1") return disabled;
  const Fact* const level = variable("NCCL_P2P_LEVEL");
  return level != nullptr && (level->value == "LOC" || level->value == "0") ? level : nullptr;
}

Finding over_host_memory(const P2pSaid& said) {
  Finding finding;
  finding.what =
      fmt::format("NVLink isn't used: {} {} between GPUs that it joins {} by host memory (SHM)",
                  said.staged.size(), by_count(said.staged.size(), "connection", "connections"),
                  by_count(said.staged.size(), "goes", "go"));
  finding.remedy =
      "see that each process sees all GPUs of the node (container, CUDA_VISIBLE_DEVICES) and "
      "shares /dev/shm with the others (--ipc=host), that nothing sets NCCL_P2P_DISABLE or "
      "NCCL_P2P_LEVEL (nccl.conf), that the Fabric Manager runs, and what nvidia-smi topo -p2p n "
      "says; ACS or an IOMMU make drivers refuse it, too";
  for (const P2pSaid::Staged& each : said.staged) {
    finding.evidence.push_back({each.via->place.text(), each.via->subject + " " + each.via->value});
  }
  const PeerLinkSpec& link = *said.staged.front().link;
  finding.evidence.insert(
      finding.evidence.begin() + 1,
      {link.place.text(), fmt::format("{} to {}: {} NVLinks", link.a, link.b, link.count)});
  if (const Fact* const off = said.off_by) {
    const std::string name = off->what.substr(fact::kEnv.size());
    finding.what += ": " + name + "=" + off->value;
    finding.remedy = "unset " + name;
    finding.evidence.insert(finding.evidence.begin() + 1, quote_of(*off));
    finding.why_unpriced = "its price is that of the variable";
  } else {
    if (said.direct != nullptr) finding.what += ", others peer to peer";
    finding.why_unpriced = "what NCCL decides where something stops peer to peer is not predicted";
    finding.is_error = true;
  }
  return finding;
}

}  // namespace

const PeerLinkSpec* nvlink_between(const TopologySpec& spec, const DeviceSpec& a,
                                   const DeviceSpec& b) {
  const PeerLinkSpec* of_a = nullptr;
  const PeerLinkSpec* of_b = nullptr;
  for (const PeerLinkSpec& link : spec.node.links) {
    if (link.kind != LinkKind::kNvlink) continue;
    if ((link.a == a.name && link.b == b.name) || (link.a == b.name && link.b == a.name)) {
      return &link;
    }
    const DeviceSpec* const to = device_of(spec, link.b);
    if (to == nullptr || to->kind != DeviceKind::kNvSwitch) continue;
    if (link.a == a.name) of_a = &link;
    if (link.a == b.name) of_b = &link;
  }
  return of_b == nullptr ? nullptr : of_a;
}

P2pSaid p2p_said(const HostView& view, const TopologySpec& spec) {
  P2pSaid out;
  out.off_by = turned_off_by(view);
  for (const Fact* via : view.beginning(std::string(fact::kLog) + "via")) {
    if (via->value.starts_with("P2P") && out.direct == nullptr) out.direct = via;
    if (!is_by_host_memory(via->value)) continue;
    if (out.shm == nullptr) out.shm = via;
    Scan ends(via->subject);
    const DeviceSpec* const from = gpu_of(spec, ends.until(" -> "));
    const DeviceSpec* const to = gpu_of(spec, ends.rest());
    if ((from == nullptr || to == nullptr) && out.untold == nullptr) out.untold = via;
    if (from == nullptr || to == nullptr || from == to) continue;
    const PeerLinkSpec* const link = nvlink_between(spec, *from, *to);
    // One direction has a line for each communicator, too.
    const bool is_again =
        std::any_of(out.staged.begin(), out.staged.end(),
                    [&](const P2pSaid::Staged& each) { return each.via->subject == via->subject; });
    if (link != nullptr && !is_again) out.staged.push_back({via, link});
  }
  return out;
}

/// Each connection by itself: NCCL takes host memory where no NVLink joins two GPUs and it allows
/// no peer to peer over PCIe.
Outcome check_p2p(const Patient& patient) {
  if (patient.of(DeviceKind::kGpu).size() < 2) return not_here("one GPU");
  const P2pSaid said = p2p_said(patient.view(), patient.spec());
  if (said.shm == nullptr && said.direct == nullptr) {
    return not_known("no log says how GPUs exchange data", "NCCL_DEBUG=INFO");
  }
  if (said.shm == nullptr) return all_well("NCCL used it", {quote_of(*said.direct)});
  if (!patient.knows_nvlinks()) {
    return not_known("GPUs exchange data by host memory, and nothing says their NVLinks",
                     "nvidia-smi topo -m");
  }
  if (said.staged.empty() && said.untold != nullptr) {
    return not_known(fmt::format("which GPUs exchange data by host memory ({}) is not known",
                                 said.untold->place.text()),
                     "sudo lspci -vvv");
  }
  if (said.staged.empty()) {
    return not_here("no NVLink joins GPUs that exchange data by host memory");
  }
  return found({over_host_memory(said)});
}

}  // namespace weft
