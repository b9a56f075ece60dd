#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "models/doctor/checks.hpp"
#include "sim/base/error.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostNames = 3;

/// As one in use, and on a card of its own: what is down and is not, or is beside a port that is
/// up, is down by plan.
bool is_like_one_in_use(const Patient& patient, const DeviceSpec& nic) {
  if (!nic.port_of.empty()) return false;
  const auto shares_card = [&](const DeviceSpec* other) { return other->port_of == nic.name; };
  const auto& in_use = patient.nics();
  return std::none_of(in_use.begin(), in_use.end(), shares_card) &&
         std::any_of(in_use.begin(), in_use.end(),
                     [&](const DeviceSpec* other) { return patient.are_one_card(*other, nic); });
}

/// Whether anything says that the GPUs' data should go by it: where it is, NCCL's list of NICs,
/// NCCL_IB_HCA, another host.
bool is_meant_for_gpus(const Patient& patient, const DeviceSpec& nic) {
  return patient.is_beside_gpu(nic) || patient.said(nic, fact::kNetIndex) != nullptr ||
         patient.is_taken_by_hca(nic).value_or(false) || patient.is_up_somewhere(nic);
}

bool is_down(const Patient& patient, const DeviceSpec& nic) {
  const Fact* const state = patient.said(nic, fact::kState);
  return state != nullptr && state->value == "down";
}

/// Whether nothing tells what it is, by which it could be held against others.
bool is_of_unknown_card(const Patient& patient, const DeviceSpec& nic) {
  return nic.part.empty() && patient.said(nic, fact::kPciId) == nullptr;
}

double measured_rate(const DeviceSpec& nic) {
  const ParamValue* const rate = measured(nic, "rate");
  return rate == nullptr ? 0 : rate->number;
}

/// Port 1 of a NIC that is no device of the machine: which of its functions it is, nothing says.
bool is_unplaced(const Patient& patient, const Fact& state) {
  return !holds(state.subject, ":") && patient.device(state.subject) == nullptr;
}

/// What would tell a fact of all NICs: a tool, or where it has spoken of NICs that have no place in
/// the machine, which functions they are.
std::string what_tells(const Patient& patient, std::string_view what, const char* tool) {
  const std::vector<const Fact*> said = patient.view().beginning(what);
  const bool unplaced = std::any_of(said.begin(), said.end(), [&](const Fact* fact) {
    return fact->what == what && is_unplaced(patient, *fact);
  });
  return unplaced ? "ls -l /sys/class/infiniband" : tool;
}

/// Of those the ones that are down, where one of the same product is up.
std::vector<std::string> unplaced_down(const Patient& patient) {
  std::vector<std::string> names;
  const HostView& view = patient.view();
  const std::vector<const Fact*> states = view.beginning(fact::kState);
  const auto has_twin = [&](const std::string& product) {
    return std::any_of(states.begin(), states.end(), [&](const Fact* other) {
      return other->value == "up" && view.value(other->subject, fact::kProduct) == product;
    });
  };
  for (const Fact* state : states) {
    if (state->what != fact::kState || state->value != "down" || !is_unplaced(patient, *state)) {
      continue;
    }
    const std::string product = view.value(state->subject, fact::kProduct);
    if (product.empty() || !has_twin(product)) continue;
    if (view.value(state->subject, fact::kPhysical) == "Disabled") continue;
    names.push_back(state->subject);
  }
  return names;
}

enum class CounterKind { kErrors, kCongestion };

/// Waiting for credits (PortXmitWait) and pause frames received in few are how networks work; they
/// are not counted among errors.
CounterKind kind_of(std::string_view name) {
  constexpr std::array<std::string_view, 6> kCongestion{"pause", "ecn",     "cnp",
                                                        "Wait",  "Discard", "discard"};
  const bool congested =
      std::any_of(kCongestion.begin(), kCongestion.end(),
                  [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
  return congested ? CounterKind::kCongestion : CounterKind::kErrors;
}

Outcome check_counters(const Patient& patient, CounterKind kind) {
  std::vector<const Fact*> counters;
  for (const Fact* fact : patient.view().beginning(fact::kCounter)) {
    const std::string_view name = std::string_view(fact->what).substr(fact::kCounter.size());
    if (kind_of(name) == kind && name != "PortXmitWait") counters.push_back(fact);
  }
  if (counters.empty()) {
    const std::vector<const Fact*> read =
        patient.view().beginning(std::string(fact::kLog) + "counters");
    return read.empty()
               ? not_known("no counters were given", "perfquery; ibqueryerrors; ethtool -S NETDEV")
               : all_well("none has counted", {quote_of(*read.front())});
  }
  Finding finding;
  std::set<std::string> ports;
  for (const Fact* fact : counters) {
    ports.insert(fact->subject);
    finding.evidence.push_back(quote_of(*fact));
  }
  finding.what = fmt::format(
      "{} on {}", kind == CounterKind::kErrors ? "errors were counted" : "congestion was counted",
      known_names({ports.begin(), ports.end()}, kMostNames));
  finding.remedy = "clear the counters, run, and see which of them grow";
  finding.why_unpriced = "counters say how often since they were cleared, not how much is lost";
  return found({std::move(finding)});
}

}  // namespace

Outcome check_ports(const Patient& patient) {
  const std::vector<const DeviceSpec*> nics = patient.of(DeviceKind::kNic);
  const bool any_unplaced = !patient.view().beginning(fact::kState).empty();
  if (nics.empty() && !any_unplaced) return without_nics(patient);
  Finding finding;
  std::vector<const DeviceSpec*> down;
  std::vector<const DeviceSpec*> idle;
  std::vector<const DeviceSpec*> unsure;
  bool any = false;
  bool any_linked = false;  // a link that the subnet manager has not made active
  for (const DeviceSpec* nic : nics) {
    const Fact* const state = patient.said(*nic, fact::kState);
    any = any || state != nullptr;
    const Fact* const physical = patient.said(*nic, fact::kPhysical);
    const bool is_off = physical != nullptr && physical->value == "Disabled";  // by somebody
    if (is_off || !is_down(patient, *nic)) continue;
    const bool is_meant = is_meant_for_gpus(patient, *nic);
    if (is_meant && is_of_unknown_card(patient, *nic) && nic->port_of.empty()) {
      unsure.push_back(nic);
    }
    if (!is_like_one_in_use(patient, *nic)) continue;
    if (!is_meant) idle.push_back(nic);
    if (!is_meant) continue;
    down.push_back(nic);
    any_linked = any_linked || (physical != nullptr && physical->value == "LinkUp");
    finding.evidence.push_back(quote_of(*state));
    if (physical != nullptr) finding.evidence.push_back(quote_of(*physical));
    finding.mend.cable.push_back(nic->name);
  }
  const std::vector<std::string> unplaced = unplaced_down(patient);
  if (down.empty() && !unplaced.empty()) {
    return not_known(fmt::format("down and nothing says where in the machine: {}",
                                 known_names(unplaced, kMostNames)),
                     "ls -l /sys/class/infiniband");
  }
  if (down.empty() && !unsure.empty()) {
    return not_known("down and nothing says which card it is: " + names_of(unsure),
                     "ibstat; lspci -nn");
  }
  if (down.empty() && !idle.empty()) {
    return not_known("down and nothing says whether for GPUs: " + names_of(idle),
                     "NCCL_DEBUG=INFO; ibstat of another host");
  }
  if (!any && any_unplaced) {
    return not_known("whose ports those are is not known", "ls -l /sys/class/infiniband");
  }
  if (!any) return not_known("nothing says the state of ports", "ibstat");
  if (down.empty() && patient.nics().empty()) return not_known("no port is up", "ibstat");
  if (down.empty()) {
    std::vector<Quote> up;
    for (const DeviceSpec* nic : patient.nics()) {
      const Fact* const state = patient.said(*nic, fact::kState);
      if (state != nullptr) up.push_back(quote_of(*state));
    }
    return all_well("those in use are up", std::move(up));
  }
  double best = 0;
  for (const DeviceSpec* nic : patient.nics()) {
    if (patient.are_one_card(*nic, *down.front())) best = std::max(best, measured_rate(*nic));
  }
  const ParamSpec& spec = patient.context().catalog.require("nic.rate");
  for (const DeviceSpec* nic : down) {
    if (best > 0) finding.mend.set.push_back({nic->name, "rate", ParamCatalog::format(spec, best)});
  }
  finding.what = fmt::format("the {} of {} {} down", by_count(down.size(), "port", "ports"),
                             names_of(down), by_count(down.size(), "is", "are"));
  finding.remedy = "look at cable, transceiver and switch port (mlxlink -d NIC)";
  if (any_linked) finding.remedy += "; of those that are LinkUp, at the subnet manager";
  finding.is_error = true;
  return found({std::move(finding)});
}

/// Cards of one PCI id are sold for several rates, so none is told from its product: by the others.
Outcome check_rates(const Patient& patient) {
  if (patient.nics().empty()) return without_nics(patient);
  const ParamCatalog& catalog = patient.context().catalog;
  const ParamSpec& spec = catalog.require("nic.rate");
  std::vector<const DeviceSpec*> unknown;
  std::vector<const DeviceSpec*> unsure;
  std::vector<const DeviceSpec*> low;
  const DeviceSpec* below_part = nullptr;
  double most = 0;
  for (const DeviceSpec* nic : patient.nics()) most = std::max(most, measured_rate(*nic));
  Finding finding;
  for (const DeviceSpec* nic : patient.nics()) {
    const double rate = measured_rate(*nic);
    if (rate == 0) unknown.push_back(nic);
    const bool is_unknown = is_of_unknown_card(patient, *nic);
    if (rate > 0 && is_unknown && rate < most) unsure.push_back(nic);
    if (rate == 0 || is_unknown) continue;
    double best = 0;
    for (const DeviceSpec* other : patient.nics()) {
      if (patient.are_alike(*other, *nic)) best = std::max(best, measured_rate(*other));
    }
    if (!nic->part.empty()) {
      const ParamValues* const part = patient.context().parts.values(nic->part, "nic", nic->place);
      const auto usual = part->find("rate");
      if (usual != part->end() && rate < usual->second.number) below_part = nic;
    }
    if (rate >= best) continue;
    low.push_back(nic);
    finding.evidence.push_back(quote_of(*nic, "rate", catalog));
    finding.mend.set.push_back({nic->name, "rate", ParamCatalog::format(spec, best)});
  }
  if (!low.empty()) {
    finding.what =
        fmt::format("the rate of {} is below that of others of the same card", names_of(low));
    finding.remedy = "look at cable, transceiver and the switch port's setting (mlxlink -d NIC)";
    return found({std::move(finding)});
  }
  if (!unsure.empty()) {
    return not_known(fmt::format("{}, others have more, and nothing says which card it is",
                                 quote_of(*unsure.front(), "rate", catalog).text),
                     "ibstat; lspci -nn");
  }
  if (!unknown.empty()) {
    return not_known("nothing says the rate of " + names_of(unknown),
                     what_tells(patient, fact::kRate, "ibstat"));
  }
  if (below_part != nullptr) {
    return not_known(fmt::format("{}: the product comes with up to more, and slower; which card "
                                 "it is, is not known",
                                 quote_of(*below_part, "rate", catalog).text),
                     "mlxlink -d " + below_part->name);
  }
  return all_well("as the cards have", {quote_of(*patient.nics().front(), "rate", catalog)});
}

Outcome check_mtu(const Patient& patient) {
  if (patient.nics().empty()) return without_nics(patient);
  constexpr std::int64_t kMost = 4096;
  Finding finding;
  const Fact* any = nullptr;
  std::vector<const DeviceSpec*> unknown;
  for (const DeviceSpec* nic : patient.nics()) {
    const Fact* const mtu = patient.said(*nic, fact::kMtu);
    if (mtu == nullptr) unknown.push_back(nic);
    if (mtu == nullptr) continue;
    any = mtu;
    if (Scan(mtu->value).whole().value_or(kMost) < kMost) {
      finding.evidence.push_back(quote_of(*mtu));
    }
  }
  if (finding.evidence.empty() && !unknown.empty()) {
    return not_known("nothing says the MTU of " + names_of(unknown),
                     what_tells(patient, fact::kMtu, "ibv_devinfo -v"));
  }
  if (finding.evidence.empty()) return all_well("4096 B", {quote_of(*any)});
  finding.what = fmt::format("the MTU of {} {} is below 4096 B", finding.evidence.size(),
                             by_count(finding.evidence.size(), "port", "ports"));
  finding.remedy =
      "InfiniBand: the subnet's partition; Ethernet: ip link set NETDEV mtu 9000, on "
      "switches too";
  finding.mend.set.push_back({"", "wire.mtu", "4096 B"});
  return found({std::move(finding)});
}

Outcome check_errors(const Patient& patient) {
  return check_counters(patient, CounterKind::kErrors);
}

Outcome check_congestion(const Patient& patient) {
  return check_counters(patient, CounterKind::kCongestion);
}

}  // namespace weft
