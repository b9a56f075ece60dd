#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "models/doctor/checks.hpp"
#include "models/doctor/nccl_warnings.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/input/evidence/kernel.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

const Fact* module_of(const Patient& patient, std::string_view name) {
  return patient.view().first("host", std::string(fact::kModule) + std::string(name));
}

/// NCCL says of a connection, or of a NIC, that GPUDirect RDMA is used; or that it is not, of one
/// between nodes.
const Fact* gdr_seen(const Patient& patient, bool is_used = true) {
  for (const Fact* fact : patient.view().beginning(std::string(fact::kLog) + "via")) {
    const bool has_gdr = holds(fact->value, "GDRDMA");
    if (is_used ? has_gdr : !has_gdr && fact->value.starts_with("NET/")) return fact;
  }
  for (const Fact* fact : patient.view().beginning(fact::kGdr)) {
    if (fact->value == (is_used ? "on" : "off")) return fact;
  }
  return nullptr;
}

/// Why it is not known which modules are loaded.
std::string without_list(const Patient& patient) {
  const Fact* const part = patient.view().first("host", std::string(fact::kLog) + "modules");
  return part == nullptr ? "nothing says which modules are loaded"
                         : part->place.text() +
                               " is part of lsmod's list and has no nvidia_peermem, all of it is "
                               "wanted";
}

/// Why DMA-BUF cannot stand in for a module; nullptr if nothing says so.
const Fact* no_dma_buf(const Patient& patient) {
  const Fact* const modules = patient.view().first("host", fact::kKernelModules);
  if (modules != nullptr && modules->value == "proprietary") return modules;
  const bool old = std::any_of(patient.nics().begin(), patient.nics().end(), [](const auto* nic) {
    return measured(*nic, "dma_buf") != nullptr;  // set only where the kernel is too old
  });
  return old ? patient.view().first("host", std::string(fact::kVersion) + "Linux") : nullptr;
}

/// Without a module, where nothing rules DMA-BUF out: NCCL takes it with open kernel modules where
/// verbs register it (ncclIbDmaBufSupport).
Outcome by_dma_buf(const Patient& patient, const Fact& list) {
  const HostView& view = patient.view();
  const Fact* const modules = view.first("host", fact::kKernelModules);
  const Fact* const kernel = view.first("host", std::string(fact::kVersion) + "Linux");
  const Fact* const unused = gdr_seen(patient, false);
  if (modules != nullptr && kernel != nullptr && unused != nullptr) {
    return not_known("no peer memory module is loaded, and NCCL uses no GPUDirect RDMA (" +
                         unused->place.text() + "): whether DMA-BUF could stand in is not known",
                     "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET");
  }
  const bool is_off = view.value("host", std::string(fact::kEnv) + "NCCL_DMABUF_ENABLE") == "0";
  if (modules != nullptr && kernel != nullptr && !is_off &&
      registers_dma_buf(kernel->value).value_or(false)) {
    return all_well(
        "no peer memory module is loaded: DMA-BUF stands in, by open kernel modules and "
        "Linux " +
            kernel->value,
        {quote_of(list), quote_of(*modules), quote_of(*kernel)});
  }
  std::string commands = "NCCL_DEBUG=INFO";
  if (modules == nullptr) commands += "; cat /proc/driver/nvidia/version";
  if (kernel == nullptr) commands += "; uname -r";
  return not_known("no peer memory module is loaded; whether DMA-BUF is used instead is not known",
                   commands);
}

}  // namespace

Outcome check_modules(const Patient& patient) {
  if (patient.nics().empty()) return without_nics(patient);
  for (const char* const name : {"nvidia_peermem", "nv_peer_mem"}) {
    const Fact* const loaded = module_of(patient, name);
    if (loaded != nullptr) return all_well(std::string(name) + " is loaded", {quote_of(*loaded)});
  }
  if (const Fact* const dma_buf = patient.view().first("host", fact::kDmaBuf)) {
    return all_well("NCCL found DMA-BUF", {quote_of(*dma_buf)});
  }
  if (const Fact* const used = gdr_seen(patient)) {
    return all_well("NCCL found GPUDirect RDMA", {quote_of(*used)});
  }
  const Fact* const list = module_of(patient, "list");
  if (list == nullptr) return not_known(without_list(patient), "lsmod");
  const Fact* const why = no_dma_buf(patient);
  if (why == nullptr) return by_dma_buf(patient, *list);
  Finding finding;
  finding.what = "nothing maps GPU memory for NICs: no peer memory module, and no DMA-BUF";
  finding.remedy = "modprobe nvidia-peermem";
  finding.evidence = {{list->place.text(), "neither nvidia_peermem nor nv_peer_mem is listed"},
                      quote_of(*why)};
  for (const DeviceSpec* gpu : patient.of(DeviceKind::kGpu)) {
    finding.mend.set.push_back({gpu->name, "peer_mapping", "nvidia-peermem"});
  }
  for (const DeviceSpec* nic : patient.nics()) {
    if (measured(*nic, "gdr") != nullptr) finding.mend.set.push_back({nic->name, "gdr", "on"});
  }
  finding.mend.by_rule = true;
  return found({std::move(finding)});
}

Outcome check_bar1(const Patient& patient) {
  // Products of one name differ by a factor of two in memory, and so in BAR1.
  constexpr double kLeastShare = 0.25;
  const ParamSpec& spec = patient.context().catalog.require("gpu.bar1_size");
  const DeviceSpec* unjudged = nullptr;
  std::vector<const DeviceSpec*> unknown;
  std::vector<const DeviceSpec*> small;
  Finding finding;
  for (const DeviceSpec* gpu : patient.of(DeviceKind::kGpu)) {
    const ParamValue* const size = measured(*gpu, "bar1_size");
    if (size == nullptr) unknown.push_back(gpu);
    const ParamValues* const part = patient.context().parts.values(gpu->part, "gpu", gpu->place);
    if (size == nullptr) continue;
    const bool is_judged = part != nullptr && part->contains("bar1_size");
    if (!is_judged) unjudged = gpu;
    if (!is_judged) continue;
    const auto usual = part->find("bar1_size");
    if (size->number >= kLeastShare * usual->second.number) continue;
    small.push_back(gpu);
    finding.evidence.push_back(quote_of(*gpu, "bar1_size", patient.context().catalog));
    finding.mend.set.push_back(
        {gpu->name, "bar1_size", ParamCatalog::format(spec, usual->second.number)});
  }
  if (!small.empty()) {
    finding.what = "BAR1 of " + names_of(small) + " is a fraction of what the product has";
    finding.remedy = "turn on Above 4G Decoding and Resizable BAR in the BIOS";
    return found({std::move(finding)});
  }
  if (!unknown.empty()) {
    return not_known("nothing says the BAR1 of " + names_of(unknown), "nvidia-smi -q");
  }
  if (unjudged != nullptr) {
    return not_known(quote_of(*unjudged, "bar1_size", patient.context().catalog).text +
                         ", which may be all that the product has",
                     "nvidia-smi -q");
  }
  const DeviceSpec* const first = patient.of(DeviceKind::kGpu).front();
  return all_well("as the product has", {quote_of(*first, "bar1_size", patient.context().catalog)});
}

Outcome check_iommu(const Patient& patient) {
  const ParamCatalog& catalog = patient.context().catalog;
  const ParamSpec& spec = catalog.require("cpu.iommu");
  Finding finding;
  for (const DeviceSpec* cpu : patient.of(DeviceKind::kCpu)) {
    const ParamValue* const mode = measured(*cpu, "iommu");
    if (mode == nullptr) {
      return patient.has_read(EvidenceKind::kCommandLine)
                 ? not_known("the kernel's command line does not say the IOMMU's mode",
                             "sudo dmesg")
                 : not_known("nothing says the IOMMU's mode", "cat /proc/cmdline; dmesg");
    }
    if (ParamCatalog::format(spec, mode->number) != "translate") {
      return all_well(ParamCatalog::format(spec, mode->number), {quote_of(*cpu, "iommu", catalog)});
    }
    if (finding.evidence.empty()) finding.evidence.push_back(quote_of(*cpu, "iommu", catalog));
    finding.mend.set.push_back({cpu->name, "iommu", "passthrough"});
  }
  if (finding.mend.empty()) return not_here("no CPU is known");
  finding.what = "the IOMMU translates what devices read and write";
  finding.remedy = "boot with iommu=pt";
  // What contiguity and drivers leave is seen nowhere: see models/host/README.md.
  Change small;
  add_iommu_pages("4 KiB", patient.of(DeviceKind::kCpu), patient.of(DeviceKind::kGpu), small);
  finding.at_worst = {"where its pages are of 4 KiB, which nothing says", std::move(small)};
  if (crosses_unknown_root(patient)) leave_unpriced_by_root(finding);
  return found({std::move(finding)});
}

/// Hypervisors pass devices through without the switches above them. NCCL has these from a file
/// that the cloud gives, or takes devices that share one for far apart.
Outcome check_guest(const Patient& patient) {
  const Fact* const guest = patient.view().first("host", fact::kHypervisor);
  if (guest == nullptr) {
    return patient.has_read(EvidenceKind::kLscpu)
               ? not_here("no hypervisor")
               : not_known("nothing says whether this is a virtual machine", "lscpu");
  }
  const Fact* const file = patient.view().first("host", std::string(fact::kEnv) + "NCCL_TOPO_FILE");
  if (file != nullptr) return all_well("one with a topology file", {quote_of(*file)});
  if (!patient.of(DeviceKind::kSwitch).empty()) {
    return all_well("one that shows PCIe switches", {quote_of(*guest)});
  }
  if (patient.nics().empty()) return without_nics(patient);
  const auto& links = patient.spec().node.links;
  if (std::ranges::any_of(links, [](const auto& link) { return link.kind == LinkKind::kC2c; })) {
    return all_well("one of a CPU that its GPUs are joined to by C2C, as NICs are by PCIe",
                    {quote_of(*guest)});
  }
  if (const Fact* const used = gdr_seen(patient); used != nullptr) {
    return all_well("one that shows no PCIe switches: NCCL used GPUDirect RDMA", {quote_of(*used)});
  }
  if (patient.decided() == nullptr) return not_known(patient.why_not(), "weft nccl MACHINE");
  std::vector<NcclGdr> declined = patient.decided()->run().by_rings.declined;
  std::erase_if(declined, [](const NcclGdr& each) {
    return !each.check.measured || each.check.needed > NcclPathType::kSys;
  });
  if (declined.empty()) {
    return not_known(
        "it shows no PCIe switches, and what the host's IOMMU translates no guest shows",
        "on the host: sudo lspci -vvv (ATSCtl); cat /proc/cmdline");
  }
  const auto farthest =
      std::ranges::max_element(declined, {}, [](const NcclGdr& each) { return each.check.needed; });
  const Fact* const unused = gdr_seen(patient, false);
  const std::string off = fmt::format("NCCL leaves GPUDirect RDMA off (gpu{}: {})", farthest->rank,
                                      farthest->check.why);
  if (unused == nullptr) {
    return not_known(
        "a virtual machine that shows no PCIe switches: without a topology file " + off,
        "NCCL_DEBUG=INFO; cat /var/run/nvidia-topologyd/virtualTopology.xml");
  }
  Finding finding;
  finding.what = "a virtual machine that shows no PCIe switches: " + off;
  finding.remedy = fmt::format(
      "give NCCL the host's tree (NCCL_TOPO_FILE, of the cloud's image) and devices ATS; "
      "NCCL_NET_GDR_LEVEL={} alone turns it on, too",
      nccl_path_type_name(farthest->check.needed));
  finding.evidence.push_back(quote_of(*guest));
  finding.evidence.push_back(quote_of(*unused));
  finding.mend.env["NCCL_NET_GDR_LEVEL"] = nccl_path_type_name(farthest->check.needed);
  finding.mend.by_rule = true;
  return found({std::move(finding)});
}

/// Whether evidence that shows a GPU's NVLinks has this one: a row of topo -m, nvlink -s.
bool shows_links_of(const Patient& patient, const DeviceSpec& gpu) {
  if (patient.said(gpu, fact::kNvlinks) != nullptr) return true;
  const std::vector<const Fact*> cells = patient.view().beginning(fact::kPath);
  return std::any_of(cells.begin(), cells.end(),
                     [&](const Fact* cell) { return cell->subject == gpu.name; });
}

/// Of GPUs at NVSwitches, as many as their product has and the others; what bridges or meshes have
/// is the builder's choice.
Outcome check_nvlinks(const Patient& patient) {
  std::map<std::string, const PeerLinkSpec*> links;
  std::uint32_t most = 0;
  for (const PeerLinkSpec& link : patient.spec().node.links) {
    const DeviceSpec* const to = patient.device(link.b);
    if (link.kind != LinkKind::kNvlink) continue;
    if (to == nullptr || to->kind != DeviceKind::kNvSwitch) continue;
    links.emplace(link.a, &link);
    most = std::max(most, link.count);
  }
  if (!patient.knows_nvlinks()) {
    return not_known("nothing says the GPUs' NVLinks", "nvidia-smi topo -m; nvidia-smi nvlink -s");
  }
  const std::vector<const DeviceSpec*> gpus = patient.of(DeviceKind::kGpu);
  const bool any_said = std::any_of(gpus.begin(), gpus.end(), [&](const DeviceSpec* gpu) {
    return patient.said(*gpu, fact::kNvlinks) != nullptr;
  });
  const auto& all = patient.spec().node.links;
  const bool any_linked = std::any_of(all.begin(), all.end(), [](const PeerLinkSpec& link) {
    return link.kind == LinkKind::kNvlink;
  });
  // A GPU alone, in a virtual machine perhaps, has nobody to be linked to.
  if (links.empty() && (any_linked || !any_said || gpus.size() < 2)) {
    return not_here("no GPU is known to be at an NVSwitch");
  }
  Finding finding;
  std::vector<const DeviceSpec*> low;
  for (const DeviceSpec* gpu : gpus) {
    const auto at = links.find(gpu->name);
    const ParamValues* const part = patient.context().parts.values(gpu->part, "gpu", gpu->place);
    std::uint32_t usual = most;
    if (part != nullptr && part->contains("nvlinks")) {
      usual = std::max(usual, static_cast<std::uint32_t>(part->find("nvlinks")->second.number));
    }
    const std::uint32_t count = at == links.end() ? 0 : at->second->count;
    if (count >= usual || (count == 0 && !shows_links_of(patient, *gpu))) continue;
    low.push_back(gpu);
    finding.evidence.push_back({at == links.end() ? "" : at->second->place.text(),
                                fmt::format("{}: {} NVLinks of {}", gpu->name, count, usual)});
    if (count == 0) finding.why_unpriced = gpu->name + " has no NVLink at all";
    finding.mend.nvlinks.push_back({gpu->name, usual});
  }
  if (low.empty() && most == 0) return not_here("no GPU is known to be at an NVSwitch");
  if (low.empty()) {
    std::vector<Quote> quotes;
    for (const auto& [gpu, link] : links) {
      quotes.push_back({link->place.text(), fmt::format("{}: {} NVLinks", gpu, link->count)});
    }
    return all_well(fmt::format("{} of each GPU", most), std::move(quotes));
  }
  finding.what =
      names_of(low) + " " + std::string(by_count(low.size(), "lacks", "lack")) + " NVLinks";
  finding.remedy = "nvidia-smi nvlink -e; dmesg for Xid 74; reset the GPU, then its board";
  finding.is_error = !finding.why_unpriced.empty();
  return found({std::move(finding)});
}

/// Of a GPU, its memory or its links; the others are mostly the program's own (NVIDIA, "Xid
/// Errors": 13, 31, 43, 45). From 144 on NVLink's, of which those are faults that say "Fatal"; 154
/// says what the GPU needs now.
bool is_of_machine(std::string_view alert) {
  constexpr std::array<std::int64_t, 12> kXids{48, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120, 140};
  constexpr std::int64_t kFirstNvlink = 144;
  constexpr std::int64_t kLastNvlink = 150;
  constexpr std::int64_t kRecovery = 154;
  Scan scan(alert);
  if (!scan.skip_to("NVRM: Xid") || !scan.skip_to("): ")) return false;
  const std::optional<std::int64_t> xid = scan.whole();
  if (!xid) return false;
  if (*xid >= kFirstNvlink && *xid <= kLastNvlink) {
    return holds(alert, "Fatal") && !holds(alert, "Nonfatal") && !holds(alert, "Non-fatal");
  }
  if (*xid == kRecovery) {  // "changed from 0x0 (None) to 0x1 (GPU Reset Required)"
    const std::size_t now = alert.rfind(" to ");
    return now != std::string_view::npos && !holds(alert.substr(now), "None");
  }
  return std::find(kXids.begin(), kXids.end(), *xid) != kXids.end();
}

constexpr const char* kNoPrice = "what it does to bandwidth is not known";

bool is_error(std::string_view alert) {
  constexpr std::array<std::string_view, 9> kWords{
      "does not answer on PCIe", "Fatal error detected", "Uncorrect",          "can't assign",
      "failed to assign",        "no space for",         "health compromised", "BAR1 is 0M",
      "RmInitAdapter failed"};
  const bool is_fatal_of_switch = holds(alert, "SXid") && holds(alert, "Fatal, ");
  return is_of_machine(alert) || is_fatal_of_switch ||
         std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return holds(alert, word); });
}

/// NCCL's warnings that weft knows, one finding a kind; takes them out of `alerts`.
std::vector<Finding> of_nccl(std::vector<const Fact*>& alerts) {
  std::vector<Finding> out;
  std::erase_if(alerts, [&](const Fact* alert) {
    const NcclWarning* const known =
        alert->value.starts_with(fact::kOfNccl) ? nccl_warning(alert->value) : nullptr;
    if (known == nullptr) return false;
    const std::string what = std::string(fact::kOfNccl) + std::string(known->what);
    auto at = std::find_if(out.begin(), out.end(),
                           [&](const Finding& kind) { return kind.what == what; });
    if (at == out.end()) {
      at = out.emplace(out.end());
      at->what = what;
      at->remedy = known->remedy;
      at->why_unpriced = known->is_error ? "it ends runs or stops them" : kNoPrice;
      at->is_error = known->is_error;
    }
    at->evidence.push_back({alert->place.text(), alert->value});
    return true;
  });
  return out;
}

Outcome check_alerts(const Patient& patient) {
  constexpr std::size_t kMost = 20;
  std::vector<const Fact*> alerts = patient.view().beginning(fact::kAlert);
  std::vector<Finding> out = of_nccl(alerts);
  const std::size_t known = out.size();
  std::stable_partition(alerts.begin(), alerts.end(),
                        [](const Fact* alert) { return is_error(alert->value); });
  for (const Fact* alert : alerts) {
    if (out.size() == known + kMost) break;
    Finding finding;
    finding.what = alert->subject + ": " + alert->value;
    finding.evidence.push_back({alert->place.text(), alert->value});
    finding.why_unpriced = kNoPrice;
    finding.is_error = is_error(alert->value);
    out.push_back(std::move(finding));
  }
  if (alerts.size() > kMost) {
    out.back().what += fmt::format(" (and {} more)", alerts.size() - kMost);
  }
  if (!out.empty()) return found(std::move(out));
  const Fact* const read = patient.view().first("host", std::string(fact::kLog) + "messages");
  return read != nullptr ? all_well("the kernel complains of nothing", {quote_of(*read)})
                         : not_known("no kernel messages were given", "sudo dmesg");
}

/// GPUs that lspci has and nvidia-smi has not: their driver lost them, or a container hides them.
Outcome check_gpus(const Patient& patient) {
  std::map<std::string, const Fact*> rows;
  for (const Fact* cell : patient.view().beginning(fact::kPath)) {
    if (cell->subject.starts_with("gpu")) rows.emplace(cell->subject, cell);
  }
  std::vector<const DeviceSpec*> on_bus;
  std::vector<const DeviceSpec*> missing;
  for (const DeviceSpec* gpu : patient.of(DeviceKind::kGpu)) {
    if (gpu->bus_id.empty()) continue;
    on_bus.push_back(gpu);
    if (!rows.contains(gpu->name)) missing.push_back(gpu);
  }
  if (rows.empty() || on_bus.empty()) {
    return not_known("no two tools list the GPUs", "sudo lspci -vvv; nvidia-smi topo -m");
  }
  const std::string counts =
      fmt::format("topo -m has {} of {} GPUs on the bus", rows.size(), on_bus.size());
  if (rows.size() > on_bus.size()) return not_known(counts, "sudo lspci -vvv");
  if (rows.size() == on_bus.size()) return all_well(fmt::format("{}", on_bus.size()));
  Finding finding;
  const Fact* const row = rows.begin()->second;
  finding.evidence.push_back({row->place.text(), fmt::format("{} GPUs in topo -m", rows.size())});
  // Where the others are numbered anew, the last number is not the one that is missing.
  const bool has_gap = rows.contains(on_bus.back()->name);
  for (const DeviceSpec* gpu : has_gap ? missing : on_bus) {
    finding.evidence.push_back({gpu->place.text(), gpu->name + " at " + gpu->bus_id});
  }
  finding.what = counts + (has_gap ? ", it is without " + names_of(missing) : "");
  finding.remedy = "look for Xid 79 (dmesg) and at nvidia-smi; in a container at what it shows";
  finding.why_unpriced = "fewer GPUs are another machine";
  finding.is_error = true;
  return found({std::move(finding)});
}

Outcome check_hosts(const Patient& patient) {
  const ComparedHosts& hosts = patient.imported().hosts;
  if (hosts.names.size() < 2) return not_here("evidence of one host");
  if (hosts.odd.empty()) return all_well(fmt::format("{} hosts are alike", hosts.names.size()));
  std::map<std::string, Finding> by_host;
  for (const HostDifference& odd : hosts.odd) {
    Finding& finding = by_host[odd.host];
    finding.host = odd.host;
    finding.evidence.push_back({odd.place.file.empty() ? odd.usual_place.text() : odd.place.text(),
                                fmt::format("{} {} is {}, elsewhere {} ({})", odd.subject, odd.what,
                                            odd.value, odd.usual, odd.usual_place.text())});
  }
  std::vector<Finding> out;
  for (auto& [host, finding] : by_host) {
    finding.what =
        fmt::format("{} differs from the other hosts in {} {}", host, finding.evidence.size(),
                    by_count(finding.evidence.size(), "fact", "facts"));
    finding.why_unpriced = "what of it has a price is a finding of its own";
    out.push_back(std::move(finding));
  }
  return found(std::move(out));
}

}  // namespace weft
