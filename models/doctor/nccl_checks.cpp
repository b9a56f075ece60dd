#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "models/doctor/checks.hpp"
#include "models/nccl/decide/gdr.hpp"
#include "sim/base/error.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

constexpr const char* kPriceOfCause = "it has no price but its cause's, where a check finds that";

/// What NCCL's log says of how data goes between nodes.
struct GdrSaid {
  const Fact* on{nullptr};
  std::vector<const Fact*> off;
  const Fact* socket{nullptr};
  std::vector<const Fact*> refused;  ///< NICs for which it says that they cannot
};

const Fact* variable(const Patient& patient, std::string_view name) {
  return patient.view().first("host", std::string(fact::kEnv) + std::string(name));
}

GdrSaid gdr_said(const Patient& patient) {
  GdrSaid out;
  for (const Fact* fact : patient.view().beginning(std::string(fact::kLog) + "via")) {
    if (!fact->value.starts_with("NET/")) continue;
    if (fact->value.starts_with("NET/Socket")) {
      out.socket = fact;
    } else if (holds(fact->value, "GDRDMA")) {
      out.on = fact;
    } else {
      out.off.push_back(fact);
    }
  }
  // A node by itself has "Using network Socket" where it has no NIC, and uses none.
  for (const Fact* fact : patient.view().beginning(std::string(fact::kLog) + "network")) {
    if (patient.spec().nodes > 1 && fact->value == "Using network Socket") out.socket = fact;
  }
  for (const Fact* fact : patient.view().beginning(fact::kGdr)) {
    if (fact->value == "off") out.refused.push_back(fact);
  }
  return out;
}

/// "mlx5_0 from gpu0: distance PIX <= PXB", of one pair that NCCL's rings use.
std::string rule_of(const Patient& patient) {
  if (patient.decided() == nullptr) return patient.why_not();
  const CaseMachine& decided = *patient.decided();
  if (decided.pairs().empty()) return "no NIC carries a ring";
  for (const NcclGdr& declined : decided.run().by_rings.declined) {
    return fmt::format("its rule leaves it off for gpu{}: {}", declined.rank, declined.check.why);
  }
  const GdrPair& pair = decided.pairs().front();
  const NcclGdrRule rule(decided.machine().devices(), parse_nccl_env(patient.found().env),
                         patient.context().version);
  return fmt::format("its rule turns it on ({} to {}: {})", decided.fabric().device(pair.gpu).name,
                     decided.fabric().device(pair.nic).name, rule.of(pair.gpu, pair.nic).why);
}

/// What the machine cannot, whatever NCCL decides; "" if nothing is in the way.
std::string obstacle_of(const Patient& patient) {
  return patient.decided() == nullptr ? "" : gdr_obstacle(patient.decided()->pairs());
}

Finding over_sockets(const Patient& patient, const Fact& said) {
  Finding finding;
  finding.what = "NCCL runs over TCP sockets between nodes, not over verbs";
  finding.remedy = "NCCL_DEBUG=INFO says why no NIC was used (NET/IB : No device found)";
  finding.evidence.push_back({said.place.text(), said.value});
  const Fact* const disabled = variable(patient, "NCCL_IB_DISABLE");
  const Fact* const net = variable(patient, "NCCL_NET");
  const Fact* const no_device = patient.view().first("NET/IB", std::string(fact::kLog) + "NICs");
  if (disabled != nullptr && disabled->value == "1") {
    finding.what += ": NCCL_IB_DISABLE=1";
    finding.remedy = "unset NCCL_IB_DISABLE";
    finding.evidence.push_back(quote_of(*disabled));
  } else if (net != nullptr && net->value == "Socket") {
    finding.what += ": NCCL_NET=Socket";
    finding.remedy = "unset NCCL_NET";
    finding.evidence.push_back(quote_of(*net));
  } else if (no_device != nullptr) {
    finding.what += ": it found no NIC";
    finding.remedy =
        "see that ports are Active (ibstat) and that the container has /dev/infiniband and "
        "libibverbs";
    finding.evidence.push_back({no_device->place.text(), no_device->value});
  }
  finding.why_unpriced = "sockets are not modelled";
  finding.is_error = true;
  return finding;
}

Finding refused_by(const Patient& patient, const std::vector<const Fact*>& refused) {
  Finding finding;
  for (const Fact* fact : refused) {
    finding.evidence.push_back(quote_of(*fact));
    if (patient.device(fact->subject) != nullptr) {
      finding.mend.set.push_back({fact->subject, "gdr", "on"});
    } else {
      finding.why_unpriced = "where " + fact->subject + " is in the machine, nothing says";
      finding.is_error = true;
    }
  }
  finding.mend.by_rule = true;
  finding.what = fmt::format("NCCL found no GPUDirect RDMA on {} {}", refused.size(),
                             by_count(refused.size(), "NIC", "NICs"));
  const Fact* const peermem =
      patient.view().first("host", std::string(fact::kModule) + "nvidia_peermem");
  if (peermem != nullptr) {
    finding.evidence.push_back(quote_of(*peermem));
    finding.remedy =
        "nvidia-peermem is loaded: see that it was when NCCL ran, that containers see /sys, and "
        "that it was built for the installed MLNX_OFED; or use DMA-BUF (open kernel modules, Linux "
        "5.12)";
  } else {
    finding.remedy = "load nvidia-peermem, or use DMA-BUF (open kernel modules, Linux 5.12)";
  }
  return finding;
}

std::vector<Quote> quotes(const std::vector<const Fact*>& facts) {
  std::vector<Quote> out;
  for (const Fact* fact : facts) out.push_back(quote_of(*fact));
  return out;
}

/// Where NCCL used it, on all connections or on some.
Outcome where_used(const Patient& patient, const GdrSaid& said) {
  if (said.off.empty()) {
    const std::string rule = patient.nics().empty() ? "" : "; " + rule_of(patient);
    return all_well("NCCL used it" + rule, {quote_of(*said.on)});
  }
  const std::string in_part =
      fmt::format("NCCL used it on some connections and not on {}", said.off.size());
  if (patient.decided() == nullptr) {
    return not_known(in_part + "; " + patient.why_not(), "weft nccl MACHINE");
  }
  if (!patient.decided()->run().by_rings.declined.empty()) {
    return all_well(in_part + "; " + rule_of(patient), {quote_of(*said.off.front())});
  }
  Finding finding;
  finding.what = in_part + ", though " + rule_of(patient);
  finding.remedy = "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET of those ranks says why";
  finding.evidence = quotes(said.off);
  finding.why_unpriced = "which connections these are is not predicted";
  finding.is_error = true;
  return found({std::move(finding)});
}

/// Where NCCL used it nowhere: against its rule, because the machine cannot, by its rule, or weft
/// cannot tell.
Outcome where_unused(const Patient& patient, const GdrSaid& said) {
  Finding finding;
  finding.what = "NCCL did not use GPUDirect RDMA between nodes";
  finding.remedy = "see `modules`; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET says why";
  finding.evidence = quotes(said.off);
  if (patient.decided() == nullptr) {
    const Fact* const level = variable(patient, "NCCL_NET_GDR_LEVEL");
    if (level != nullptr && level->value != "SYS") {
      finding.what += ", with NCCL_NET_GDR_LEVEL=" + level->value;
      finding.evidence.insert(finding.evidence.begin(), quote_of(*level));
    }
    finding.why_unpriced = patient.nics().empty() ? "nothing says where in the machine the NICs are"
                                                  : patient.why_not();
    finding.is_error = true;
    return found({std::move(finding)});
  }
  if (const std::string obstacle = obstacle_of(patient); !obstacle.empty()) {
    finding.what = "GPUDirect RDMA is not possible: " + obstacle;
    finding.remedy = "the check that names this cause says what to do";
    finding.why_unpriced = kPriceOfCause;
    return found({std::move(finding)});
  }
  if (patient.decided()->run().by_rings.path == MemoryPath::kGdr) {
    finding.what = "NCCL did not use GPUDirect RDMA, though " + rule_of(patient);
    finding.mend.by_rule = true;
    return found({std::move(finding)});
  }
  return all_well("NCCL did not use it; " + rule_of(patient), {quote_of(*said.off.front())});
}

/// A variable that turns something off.
struct Switch {
  std::string_view name;
  std::string_view value;  ///< that does; "": any
  std::string_view what;
  std::string_view why_unpriced{};  ///< where weft does not model it
};
constexpr std::array<Switch, 22> kSwitches{
    {{"NCCL_P2P_DISABLE", "1", "GPUs exchange data by host memory, NVLink or not"},
     {"NCCL_P2P_LEVEL", "", "peer to peer only up to this distance"},
     {"NCCL_SHM_DISABLE", "1", "no shared memory between the processes of a node"},
     {"NCCL_NET_GDR_LEVEL", "", "GPUDirect RDMA only up to this distance"},
     {"NCCL_NET_GDR_READ", "0", "NICs do not read GPU memory"},
     {"NCCL_NET_GDR_C2C", "0", "no GPUDirect RDMA behind the GPU's own CPU"},
     {"NCCL_PXN_DISABLE", "1", "no sending by the GPU that is next to the NIC"},
     {"NCCL_NVB_DISABLE", "1", "no NVLink by way of another GPU"},
     {"NCCL_NVLS_ENABLE", "0", "NVSwitches do not add up"},
     {"NCCL_PAT_ENABLE", "0", "no PAT"},
     {"NCCL_CROSS_NIC", "0", "rings keep to one rail"},
     {"NCCL_ALGO", "", "not the algorithm that NCCL would choose"},
     {"NCCL_PROTO", "", "not the protocol that NCCL would choose"},
     {"NCCL_MAX_NCHANNELS", "", "fewer channels"},
     {"NCCL_MAX_NRINGS", "", "fewer channels"},
     {"NCCL_MAX_CTAS", "", "fewer thread blocks"},
     {"NCCL_NTHREADS", "", "other thread blocks"},
     {"NCCL_BUFFSIZE", "", "other buffers"},
     {"NCCL_IB_DISABLE", "1", "data goes over TCP sockets", "sockets are not modelled"},
     {"NCCL_NET", "Socket", "data goes over TCP sockets", "sockets are not modelled"},
     {"NCCL_DMABUF_ENABLE", "0", "no DMA-BUF", "which mapping is left is not known"},
     {"NCCL_IB_PCI_RELAXED_ORDERING", "0", "NICs write in strict order",
      "the variable is not modelled; nic.relaxed_ordering is"}}};

Finding of_switch(const Switch& off, const Fact& said) {
  Finding finding;
  finding.what = fmt::format("{}={}: {}", off.name, said.value, off.what);
  finding.remedy = "unset " + std::string(off.name);
  finding.evidence.push_back(quote_of(said));
  finding.why_unpriced = off.why_unpriced;
  finding.is_error = off.why_unpriced == "sockets are not modelled";
  if (off.why_unpriced.empty()) finding.mend.unset.emplace_back(off.name);
  return finding;
}

/// NICs that are up and as those that NCCL_IB_HCA takes, but not taken; others may be for storage.
std::optional<Finding> left_out(const Patient& patient) {
  const Fact* const said = patient.view().first("host", std::string(fact::kEnv) + "NCCL_IB_HCA");
  if (said == nullptr) return std::nullopt;
  Finding finding;
  std::vector<const DeviceSpec*> out;
  const auto takes = [&](const DeviceSpec& nic) {
    return patient.is_taken_by_hca(nic).value_or(true);
  };
  for (const DeviceSpec* nic : patient.of(DeviceKind::kNic)) {
    const Fact* const state = patient.said(*nic, fact::kState);
    if (takes(*nic) || (state != nullptr && state->value == "down")) continue;
    const bool is_like_a_taken_one = std::any_of(
        patient.nics().begin(), patient.nics().end(),
        [&](const DeviceSpec* other) { return patient.are_alike(*other, *nic) && takes(*other); });
    if (!is_like_a_taken_one) continue;
    out.push_back(nic);
    if (nic->network == "none") finding.mend.cable.push_back(nic->name);
  }
  if (out.empty()) return std::nullopt;
  finding.what = "NCCL_IB_HCA leaves out " + names_of(out) + ", of the same card as those it takes";
  finding.remedy = "name all of them in NCCL_IB_HCA, or unset it";
  for (const Fact* each : patient.view().find("host", said->what)) {
    finding.evidence.push_back(quote_of(*each));
  }
  finding.mend.unset.emplace_back("NCCL_IB_HCA");
  return finding;
}

/// NICs that NCCL could use and its list is without: not down, of the card of one in the list.
/// NCCL_IB_HCA's are left_out()'s.
std::vector<const DeviceSpec*> unlisted(const Patient& patient) {
  const auto is_listed = [&](const DeviceSpec& nic) {
    return patient.said(nic, fact::kNetIndex) != nullptr;
  };
  std::vector<const DeviceSpec*> out;
  const std::vector<const DeviceSpec*> nics = patient.of(DeviceKind::kNic);
  for (const DeviceSpec* nic : nics) {
    const Fact* const state = patient.said(*nic, fact::kState);
    if (is_listed(*nic) || (state != nullptr && state->value == "down")) continue;
    if (!patient.is_taken_by_hca(*nic).value_or(true)) continue;
    const bool is_like_a_listed_one =
        std::any_of(nics.begin(), nics.end(), [&](const DeviceSpec* other) {
          return is_listed(*other) && patient.are_alike(*other, *nic);
        });
    if (is_like_a_listed_one) out.push_back(nic);
  }
  return out;
}

/// NICs of one card beside GPUs, of the card that has most of them.
std::size_t nics_beside_gpus(const Patient& patient) {
  std::size_t most = 0;
  const std::vector<const DeviceSpec*> nics = patient.of(DeviceKind::kNic);
  for (const DeviceSpec* nic : nics) {
    if (!patient.is_beside_gpu(*nic)) continue;
    const auto alike = std::count_if(nics.begin(), nics.end(), [&](const DeviceSpec* other) {
      return patient.are_alike(*nic, *other);
    });
    most = std::max(most, static_cast<std::size_t>(alike));
  }
  return most;
}

/// Ports by name that are up and of the product of one that NCCL lists, which lists them not; of
/// NICs that have no place in the machine.
std::vector<std::string> unlisted_ports(const Patient& patient) {
  const HostView& view = patient.view();
  std::set<std::string> products;
  for (const Fact* listed : view.beginning(fact::kNetIndex)) {
    products.insert(view.value(listed->subject, fact::kProduct));
  }
  std::vector<std::string> out;
  for (const Fact* state : view.beginning(fact::kState)) {
    const std::string product = view.value(state->subject, fact::kProduct);
    if (state->what != fact::kState || state->value != "up" || product.empty()) continue;
    if (!products.contains(product) || patient.device(state->subject) != nullptr) continue;
    if (view.first(state->subject, fact::kNetIndex) == nullptr) out.push_back(state->subject);
  }
  return out;
}

}  // namespace

/// Those that NCCL lists, against those of the machine that are like them.
Outcome check_nics(const Patient& patient) {
  const Fact* const list = patient.view().first("NET/IB", std::string(fact::kLog) + "list");
  if (list == nullptr) return not_known("no log has NCCL's list of NICs", "NCCL_DEBUG=INFO");
  const Quote quote{list->place.text(), list->value};
  std::set<std::string> names;
  bool any_placed = false;
  for (const Fact* fact : patient.view().beginning(fact::kNetIndex)) {
    names.insert(fact->subject);
    any_placed = any_placed || patient.device(fact->subject) != nullptr;
  }
  const std::string listed = known_names({names.begin(), names.end()});
  Finding finding;
  finding.remedy =
      "see that their ports are Active (ibstat), that the container has their devices, and what "
      "NCCL_IB_HCA says";
  finding.evidence.push_back(quote);
  if (const std::vector<const DeviceSpec*> out = unlisted(patient); !out.empty()) {
    finding.what = "NCCL's list of NICs is without " + names_of(out) + ", of the same card";
    for (const DeviceSpec* nic : out) finding.mend.cable.push_back(nic->name);
    return found({std::move(finding)});
  }
  const std::vector<std::string> ports = unlisted_ports(patient);
  const std::size_t beside = any_placed ? 0 : nics_beside_gpus(patient);
  if (!ports.empty() || beside > names.size()) {
    finding.what = fmt::format("NCCL uses {} {} ({}), ", names.size(),
                               by_count(names.size(), "NIC", "NICs"), listed);
    finding.what += ports.empty() ? fmt::format("though {} of one card are beside GPUs", beside)
                                  : "though others of the product are up: " + known_names(ports);
    finding.why_unpriced = "which of the machine's NICs those are, nothing says";
    finding.is_error = true;
    return found({std::move(finding)});
  }
  if (!patient.lists_nics()) {
    return not_known("NCCL uses " + listed + "; nothing says which NICs there are",
                     "sudo lspci -vvv; ibstat");
  }
  return all_well("NCCL uses " + listed, {quote});
}

Outcome check_gdr(const Patient& patient) {
  const GdrSaid said = gdr_said(patient);
  if (said.socket != nullptr) return found({over_sockets(patient, *said.socket)});
  if (!said.refused.empty()) return found({refused_by(patient, said.refused)});
  if (said.on != nullptr) return where_used(patient, said);
  if (!said.off.empty()) return where_unused(patient, said);
  if (patient.nics().empty()) return without_nics(patient);
  if (const std::string obstacle = obstacle_of(patient); !obstacle.empty()) {
    Finding finding;
    finding.what = "GPUDirect RDMA is not possible: " + obstacle;
    finding.remedy = "the check that names this cause says what to do";
    finding.why_unpriced = kPriceOfCause;
    return found({std::move(finding)});
  }
  return not_known("no log says whether NCCL used it; " + rule_of(patient), "NCCL_DEBUG=INFO");
}

Outcome check_environment(const Patient& patient) {
  std::vector<Finding> out;
  for (const Switch& off : kSwitches) {
    const Fact* const said =
        patient.view().first("host", std::string(fact::kEnv) + std::string(off.name));
    if (said == nullptr || (!off.value.empty() && said->value != off.value)) continue;
    if (off.name.ends_with("_LEVEL") && said->value == "SYS") continue;  // at any distance
    out.push_back(of_switch(off, *said));
  }
  if (std::optional<Finding> nics = left_out(patient)) out.push_back(std::move(*nics));
  if (!out.empty()) return found(std::move(out));
  // NCCL names its version and its variables as it begins; an excerpt from further on has neither.
  const HostView& view = patient.view();
  const Fact* begin = view.first("host", std::string(fact::kVersion) + "NCCL");
  const std::vector<const Fact*> variables = view.beginning(fact::kEnv);
  if (begin == nullptr && !variables.empty()) begin = variables.front();
  return begin != nullptr
             ? all_well("no variable turns anything off", {quote_of(*begin)})
             : not_known("no beginning of NCCL's log says its variables", "NCCL_DEBUG=INFO");
}

}  // namespace weft
