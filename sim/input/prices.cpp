#include "sim/input/prices.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/quantity.hpp"
#include "sim/base/random.hpp"
#include "sim/io/file.hpp"
#include "sim/io/yaml.hpp"
#include "sim/topology/require_gpu.hpp"

namespace weft {
namespace {

constexpr std::array kPurchases{
    std::pair{std::string_view("node"), Purchase::kNode},
    std::pair{std::string_view("nic"), Purchase::kNic},
    std::pair{std::string_view("switch"), Purchase::kSwitch},
    std::pair{std::string_view("nic-cable"), Purchase::kNicCable},
    std::pair{std::string_view("switch-cable"), Purchase::kSwitchCable}};
constexpr std::array kPurchaseWords = words_of(kPurchases);
constexpr std::array<std::string_view, 3> kTierWords{"leaf", "spine", "core"};

constexpr std::array kFileKeys{
    KeySpec{"prices", "text", kRequired, "the list's name: whose prices, of when"},
    KeySpec{"currency", "text", kRequired, "of all costs, such as USD; for people"},
    KeySpec{"parts", "list", kRequired, "what each part costs; the first that fits holds"}};
constexpr std::array kPartKeys{
    KeySpec{"is", "one of", kRequired,
            "a GPU node without its NICs, a NIC, a switch, a cable with what is on its ends: from "
            "a NIC, between switches",
            kPurchaseWords},
    KeySpec{"part", "text", "any", "only of this part; of a node its GPUs'"},
    KeySpec{"ports", "whole number", "any", "only switches of so many ports", {}, 1, 1 << 30},
    KeySpec{"tier", "one of", "any",
            "only cables between switches from this tier upwards, or within it", kTierWords},
    KeySpec{"up_to", "quantity", "any length",
            "only cables no longer than this, above 0, such as 3 m (wire.cable_length, "
            "netswitch.uplink_length, netswitch.local_length)"},
    KeySpec{"cost", "number", kRequired, "of one, from 0 on"},
    KeySpec{"watts", "number", "0", "that one takes"}};

double amount_of(const Yaml& yaml) {
  constexpr double kMost = 1e12;
  const auto number = parse_number(yaml.text());
  if (number && *number >= 0 && *number <= kMost) return *number;
  yaml.fail("'" + yaml.text() + "' is not a number from 0 to 1e12");
}

bool is_cable(Purchase is) { return is == Purchase::kNicCable || is == Purchase::kSwitchCable; }

double metres_of(const Yaml& yaml) {
  try {
    const double metres = parse_quantity(yaml.text(), Unit::kMetres);
    if (metres > 0) return metres;
  } catch (const InputError& e) {
    yaml.fail(e.what());
  }
  yaml.fail("'" + yaml.text() + "' is no length above 0 m");
}

std::string tier_of(const Yaml& yaml) {
  if (std::ranges::find(kTierWords, yaml.text()) != kTierWords.end()) return yaml.text();
  yaml.fail("'" + yaml.text() +
            "' is no tier; known: " + known_names({kTierWords.begin(), kTierWords.end()}));
}

Price read_price(const Yaml& yaml) {
  check_keys(yaml, kPartKeys);
  const Yaml& is = yaml.require("is");
  const auto* const kind = std::find_if(kPurchases.begin(), kPurchases.end(),
                                        [&](const auto& p) { return p.first == is.text(); });
  if (kind == kPurchases.end()) {
    is.fail("'" + is.text() + "' is not bought; known: " +
            known_names({kPurchaseWords.begin(), kPurchaseWords.end()}));
  }
  Price out{.is = kind->second, .part = {}, .ports = {}, .tier = {}, .most_metres = {}};
  if (const Yaml* part = yaml.find("part")) out.part = part->text();
  if (const Yaml* ports = yaml.find("ports")) {
    if (out.is != Purchase::kSwitch) ports->fail("belongs to a switch");
    out.ports = static_cast<std::uint32_t>(read_integer(*ports, key_of(kPartKeys, "ports")));
  }
  if (const Yaml* tier = yaml.find("tier")) {
    if (out.is != Purchase::kSwitchCable) tier->fail("belongs to a switch-cable");
    out.tier = tier_of(*tier);
  }
  if (const Yaml* most = yaml.find("up_to")) {
    if (!is_cable(out.is)) most->fail("belongs to a cable");
    out.most_metres = metres_of(*most);
  }
  out.cost = amount_of(yaml.require("cost"));
  if (const Yaml* watts = yaml.find("watts")) out.watts = amount_of(*watts);
  return out;
}

bool fits(const Price& price, const BillLine& line) {
  return price.is == line.is && price.part.value_or(line.part) == line.part &&
         price.ports.value_or(line.ports) == line.ports &&
         price.tier.value_or(line.tier) == line.tier &&
         line.metres <= price.most_metres.value_or(line.metres);
}

std::string described(const BillLine& line) {
  std::string out(purchase_name(line.is));
  if (line.is == Purchase::kSwitch) out += " of " + std::to_string(line.ports) + " ports";
  if (is_cable(line.is)) out += fmt::format(" of {:g} m", line.metres);
  if (!line.tier.empty()) out += fmt::format(" (tier {})", line.tier);
  return line.part.empty() ? out : out + " (part " + line.part + ")";
}

/// Adds to the line of the same part, or a new one.
void add(std::vector<BillLine>& bill, BillLine line) {
  if (line.count == 0) return;
  for (BillLine& known : bill) {
    if (known.is != line.is || known.part != line.part || known.ports != line.ports ||
        known.tier != line.tier || known.metres != line.metres) {
      continue;
    }
    known.count += line.count;
    return;
  }
  bill.push_back(std::move(line));
}

}  // namespace

std::string_view purchase_name(Purchase purchase) {
  return kPurchaseWords.at(static_cast<std::size_t>(purchase));
}

std::vector<BillLine> bill_of_parts(const Fabric& fabric, const CableLengths& lengths) {
  require_gpu(fabric);
  const std::uint64_t nodes = fabric.nodes();
  std::vector<BillLine> bill;
  add(bill, {Purchase::kNode, fabric.device(fabric.device(0, DeviceKind::kGpu, 0)).part, 0, nodes});
  for (std::size_t i = 0; i < fabric.count(DeviceKind::kNic); ++i) {
    const DeviceId nic = fabric.device(0, DeviceKind::kNic, i);
    if (!fabric.wire_link(nic)) continue;
    const DeviceSpec& device = fabric.device(nic);
    if (device.port_of.empty()) add(bill, {Purchase::kNic, device.part, 0, nodes});
    add(bill, {Purchase::kNicCable, "", 0, nodes, "", lengths.of_nics});
  }
  const std::vector<NetworkTier>& tiers = fabric.network_tiers();
  const bool is_one_leaf = !tiers.empty() && tiers.front().switches() == 1;  // joins all alone
  for (std::size_t t = 0; t < (is_one_leaf ? 1 : tiers.size()); ++t) {
    const std::uint32_t ports = tiers[t].ports == 0 ? tiers[t].down + tiers[t].up : tiers[t].ports;
    const std::string& part = fabric.device(fabric.network_switch(t, 0)).part;
    add(bill, {Purchase::kSwitch, part, ports, tiers[t].switches()});
  }
  if (is_one_leaf) return bill;
  std::map<std::pair<std::size_t, bool>, std::uint64_t> between;  // by tier, and whether beside
  for (std::size_t i = nodes * fabric.links_per_node(); i < fabric.link_count(); ++i) {
    const Link link = fabric.link(LinkId{i});
    ++between[{*fabric.tier_of(link.a), link.local}];
  }
  for (const auto& [of, count] : between) {
    const std::string& tier = tiers[of.first].name;
    add(bill, {Purchase::kSwitchCable, "", 0, count, tier, lengths.of_switches(tier, of.second)});
  }
  return bill;
}

void add_spares(std::vector<BillLine>& bill, std::uint64_t nics, std::uint64_t leaf_cables) {
  const auto more = [&](Purchase is, std::uint64_t count) {
    if (count == 0) return;
    const auto line = std::ranges::find(bill, is, &BillLine::is);
    if (line == bill.end()) {
      throw std::logic_error("spares of what the bill has none of: " +
                             std::string(purchase_name(is)));
    }
    line->count += count;
  };
  const auto parts = std::ranges::count(bill, Purchase::kNic, &BillLine::is);
  if (nics > 0 && parts > 1) {
    throw InputError(fmt::format(
        "spare.nics: a node has NICs of {} parts, and which of them lie ready is not said", parts));
  }
  more(Purchase::kNic, nics);
  more(Purchase::kSwitchCable, leaf_cables);
}

PriceList read_prices(const std::string& file) { return parse_prices(read_text_file(file), file); }

PriceList parse_prices(const std::string& text, const std::string& file) {
  const Yaml yaml = Yaml::parse(text, file);
  check_keys(yaml, kFileKeys);
  PriceList out{
      file, fnv1a(text), yaml.require("prices").text(), yaml.require("currency").text(), {}};
  for (const Yaml& part : yaml.require("parts").items()) out.prices.push_back(read_price(part));
  return out;
}

BillTotal total_of(const std::vector<BillLine>& bill, const PriceList& prices) {
  BillTotal out{0, 0};
  for (const BillLine& line : bill) {
    const auto price = std::find_if(prices.prices.begin(), prices.prices.end(),
                                    [&](const Price& p) { return fits(p, line); });
    if (price == prices.prices.end()) {
      throw InputError(prices.file + ": no price of a " + described(line) +
                       ", of which there are " + std::to_string(line.count));
    }
    out.cost += price->cost * static_cast<double>(line.count);
    out.watts += price->watts * static_cast<double>(line.count);
  }
  return out;
}

std::vector<FormatSection> prices_format() {
  return {{"", "The file.", {kFileKeys.begin(), kFileKeys.end()}},
          {"parts[]", "What a part costs.", {kPartKeys.begin(), kPartKeys.end()}}};
}

}  // namespace weft
