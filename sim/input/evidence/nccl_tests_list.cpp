#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/input/evidence/product_names.hpp"
#include "sim/input/evidence/readers.hpp"
#include "sim/input/evidence/scan.hpp"
#include "sim/io/evidence_kind.hpp"
#include "sim/io/tool_text.hpp"

namespace weft {
namespace {

constexpr std::string_view kDevice = ":00.0";  // of a bus alone

/// "0000:11:00" with the function, "0x86" with device and function; "" of bus 0, on which virtual
/// machines have all of theirs, and of what is none.
std::string listed_bus_id(std::string_view text) {
  if (!text.starts_with("0x")) return bus_id_of(fmt::format("{}.0", text));
  const std::optional<std::uint64_t> bus = Scan(text).hex();
  return bus && *bus > 0 && *bus <= 0xff ? fmt::format("0000:{:02x}{}", *bus, kDevice) : "";
}

}  // namespace

bool NcclTestsList::read(const EvidenceSection& section, const EvidenceLine& line) {
  if (!holds(line.text, "Rank ")) return false;
  const EvidenceKindText* const kind = evidence_begun_by(without_blanks(line.text));
  if (kind == nullptr || kind->kind != EvidenceKind::kNcclTestsList) return false;
  Scan scan(line.text);
  scan.skip_to("Rank ");
  const std::int64_t rank = scan.blanks().whole().value_or(0);
  if (rank >= 0 && rank < kMostToolRanks) last_rank_ = std::max(last_rank_, rank);
  scan.skip_to(" on ");
  std::string host(scan.blanks().word());
  if (!scan.skip_to(" device ") || !scan.skip_to("[")) return true;
  const std::string_view bus = scan.until("]");
  const std::string bus_id = listed_bus_id(bus);
  const std::string product = product_name(scan.rest().substr(0, 160));
  if (bus_id.empty() || is_of_other_maker(product)) return true;  // rccl-tests lists AMD's
  Fact fact = section.fact(line, bus_id, fact::kClass, "0302");
  fact.host = std::move(host);
  if (bus.starts_with("0x")) ranks_[{fact.host, bus_id}].insert(rank);
  devices_.push_back({std::move(fact), product});
  return true;
}

void NcclTestsList::add_to(Facts& facts) const {
  for (const auto& [device, product] : devices_) {
    const auto ranks = ranks_.find({device.host, device.subject});
    if (ranks != ranks_.end() && ranks->second.size() > 1) continue;
    const auto add = [&, of = &device](std::string_view what, std::string value) {
      Fact fact = *of;
      fact.what = what;
      fact.value = std::move(value);
      facts.add(std::move(fact));
    };
    add(fact::kClass, device.value);
    add(fact::kProduct, product);
    if (ranks != ranks_.end()) add(fact::kBusAlone, "nccl-tests");
    Fact all = device;
    all.subject = "host";
    all.what = fact::kRanks;
    all.value = std::to_string(last_rank_ + 1);
    facts.add(std::move(all));
  }
}

void read_nccl_tests_list(const EvidenceSection& section, Facts& facts) {
  NcclTestsList list;
  for (const EvidenceLine& line : section.lines) list.read(section, line);
  list.add_to(facts);
}

}  // namespace weft
