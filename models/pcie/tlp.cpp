#include "models/pcie/tlp.hpp"

#include <cmath>

#include "models/pcie/link.hpp"

namespace weft {
namespace {

constexpr Bytes kDataCredit{16};  // PCIe Base 2.6.1: 4 DW

std::uint32_t count(Params& params, std::string_view key) {
  return static_cast<std::uint32_t>(std::llround(params.number(key)));
}

/// The smallest TLP that moves data in bulk: a cache line.
constexpr double kLineBytes = 64.0;

/// Receive buffers of one kind of TLP, `links` times, and the room of pipes that hold `in_pipes`
/// payload bytes.
CreditPool pool(Params& params, std::string_view headers, std::string_view data,
                std::uint32_t links, double in_pipes) {
  CreditPool out;
  out.packets = links * count(params, headers) + static_cast<std::uint32_t>(in_pipes / kLineBytes);
  out.unit = kDataCredit;
  if (!data.empty()) {
    out.units =
        links * static_cast<std::uint32_t>(params.bytes(data).count() / kDataCredit.count()) +
        static_cast<std::uint32_t>(in_pipes / kDataCredit.as_double());
  }
  out.return_delay = params.duration("pcie.credit_latency");
  return out;
}

struct Pools {
  Pools(Params& params, std::uint32_t links, double in_pipes)
      : posted{pool(params, "pcie.posted_headers", "pcie.posted_data", links, in_pipes)},
        nonposted{pool(params, "pcie.nonposted_headers", {}, links, in_pipes)},
        completions{
            pool(params, "pcie.completion_headers", "pcie.completion_data", links, in_pipes)} {}
  std::vector<LaneControl> lanes() const {
    return {posted, SharesRoomOf{pcie_lane::kPosted}, nonposted, completions,
            SharesRoomOf{pcie_lane::kCompletion}};
  }
  CreditPool posted;
  CreditPool nonposted;
  CreditPool completions;
};

}  // namespace

LinkSpec pcie_link_spec(Params& params, const PcieLinkParts& parts) {
  const PcieCosts costs(params, parts.generation);
  LinkSpec spec;
  spec.rate = pcie_rate(parts.generation, parts.width);
  spec.framing = costs.framing();
  Pools pools(params, 1, spec.rate.as_bytes_per_s() * parts.pipes.as_s());
  if (parts.takes_all_completions) {
    pools.completions.packets = pools.completions.units = kUnlimited;
  }
  const std::uint32_t shared = count(params, "pcie.tlps_per_update");
  const Duration symbol = serialization_time(Bytes{1}, pcie_rate(parts.generation, 1));
  for (CreditPool* p : {&pools.posted, &pools.nonposted, &pools.completions}) {
    // Never wait for TLPs that the credits left do not allow.
    p->packets_per_update = std::min(shared, std::max(1U, p->packets / 2));
    p->update_bytes = costs.dllps(p->packets_per_update);
    p->update_timeout = symbol * count(params, "pcie.update_symbols");
  }
  spec.lanes = pools.lanes();
  spec.may_pass = pcie_ordering();
  return spec;
}

LinkSpec tlp_carrier_spec(Params& params, const CarrierParts& parts) {
  LinkSpec spec;
  spec.rate = parts.rate;
  spec.delay = parts.delay;
  const Duration pipes = parts.delay + parts.pipes;
  spec.lanes = Pools(params, parts.links, parts.rate.as_bytes_per_s() * pipes.as_s()).lanes();
  spec.may_pass = pcie_ordering();
  return spec;
}

}  // namespace weft
