#include "sim/input/evidence/fact.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include "sim/base/lower_case.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

bool is_hex(std::string_view text, std::size_t least, std::size_t most) {
  if (text.size() < least || text.size() > most) return false;
  for (const char c : text) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) return false;
  }
  return true;
}

}  // namespace

void Facts::add(Fact fact) {
  ++times_said_;
  std::vector<std::size_t>& said = index_[{fact.host, fact.subject}][fact.what];
  for (const std::size_t i : said) {
    if (all_[i].value == fact.value) return;
  }
  if (all_.size() == kMostFacts) {
    throw InputError(fact.place, fmt::format("more than {} facts; give less at once", kMostFacts));
  }
  // Each further word on one thing is compared with all before it; a log that goes on and on about
  // one is no evidence of it.
  constexpr std::size_t kMostWords = 256;
  if (said.size() == kMostWords) return;
  said.push_back(all_.size());
  all_.push_back(std::move(fact));
}

void Facts::name_mst_devices() {
  const auto is_mst = [](const Fact& fact) { return fact.subject.starts_with(fact::kMstFolder); };
  if (std::none_of(all_.begin(), all_.end(), is_mst)) return;
  std::map<Key, std::string> names;  // by host and MST device
  for (const Fact& fact : all_) {
    if (fact.what == fact::kMst) names.emplace(Key{fact.host, fact.value}, fact.subject);
  }
  Facts out;
  for (Fact& fact : all_) {
    const auto name = names.find({fact.host, fact.subject});
    if (name != names.end()) fact.subject = name->second;
    out.add(std::move(fact));
  }
  *this = std::move(out);
}

std::vector<const Fact*> Facts::find(const std::string& host, const std::string& subject,
                                     std::string_view what) const {
  std::vector<const Fact*> out;
  const auto of_subject = index_.find({host, subject});
  if (of_subject == index_.end()) return out;
  const auto said = of_subject->second.find(what);
  if (said == of_subject->second.end()) return out;
  for (const std::size_t i : said->second) out.push_back(&all_[i]);
  return out;
}

const Fact* Facts::first(const std::string& host, const std::string& subject,
                         std::string_view what) const {
  const auto of_subject = index_.find({host, subject});
  if (of_subject == index_.end()) return nullptr;
  const auto said = of_subject->second.find(what);
  return said == of_subject->second.end() ? nullptr : &all_[said->second.front()];
}

std::vector<const Fact*> Facts::beginning(const std::string& host, std::string_view what) const {
  std::vector<const Fact*> out;
  for (auto at = index_.lower_bound({host, ""}); at != index_.end() && at->first.first == host;
       ++at) {
    const auto& by_what = at->second;
    for (auto said = by_what.lower_bound(what);
         said != by_what.end() && said->first.starts_with(what); ++said) {
      for (const std::size_t i : said->second) out.push_back(&all_[i]);
    }
  }
  return out;
}

std::vector<std::string> Facts::hosts() const {
  std::set<std::string> out;
  for (const auto& [key, said] : index_) out.insert(key.first);
  return {out.begin(), out.end()};
}

std::string bus_id_of(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos || !is_hex(text.substr(dot + 1), 1, 1)) return {};
  const std::size_t device = text.rfind(':', dot);
  if (device == std::string_view::npos || device == 0) return {};
  const std::size_t bus = text.rfind(':', device - 1);
  std::string_view domain = bus == std::string_view::npos ? "0000" : text.substr(0, bus);
  const std::size_t bus_begins = bus == std::string_view::npos ? 0 : bus + 1;
  if (!is_hex(domain, 1, 8) || !is_hex(text.substr(bus_begins, device - bus_begins), 2, 2) ||
      !is_hex(text.substr(device + 1, dot - device - 1), 2, 2)) {
    return {};
  }
  while (domain.size() > 4 && domain.front() == '0') domain.remove_prefix(1);
  return lower_case(fmt::format("{:0>4}:{}", domain, text.substr(bus_begins)));
}

std::string bus_id_of_name(std::string_view name) {
  Scan scan(name);
  if (!scan.skip("en") && !scan.skip("ib") && !scan.skip("roce") && !scan.skip("rdma")) return {};
  const auto number = [&](std::string_view letter, std::uint64_t most) {
    const bool is_number = scan.skip(letter) && !scan.rest().starts_with('-');
    const std::optional<std::int64_t> out = is_number ? scan.whole() : std::nullopt;
    return out && static_cast<std::uint64_t>(*out) <= most ? out : std::nullopt;
  };
  const bool has_domain = scan.rest().starts_with('P');
  const std::optional<std::int64_t> domain = has_domain ? number("P", 0xffff) : 0;
  const std::optional<std::int64_t> bus = number("p", 0xff);
  const std::optional<std::int64_t> slot = number("s", 0x1f);
  const bool has_function = scan.rest().starts_with('f');
  const std::optional<std::int64_t> function = has_function ? number("f", 7) : 0;
  // Its port, by the driver's name ("np0") or by number ("d1").
  const bool has_port = scan.skip("np") || scan.skip("d");
  if ((has_port && !scan.whole()) || !scan.at_end()) return {};
  if (!domain || !bus || !slot || !function) return {};
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", *domain, *bus, *slot, *function);
}

std::string bus_id_of_number(std::uint64_t number) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", number >> 20, number >> 12 & 0xff,
                     number >> 4 & 0xff, number & 0xf);
}

}  // namespace weft
