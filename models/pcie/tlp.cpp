#include "models/pcie/tlp.hpp"

#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

namespace weft {
namespace {

constexpr Bytes kDataCredit{16};  // PCIe Base 2.6.1: 4 DW

/// The smallest TLP that moves data in bulk: a cache line.
constexpr double kLineBytes = 64.0;

/// Receive buffers of one kind of TLP, `links` times, and the room of pipes that hold `in_pipes`
/// payload bytes.
CreditPool pool(std::uint32_t headers, std::optional<Bytes> data, std::uint32_t links,
                double in_pipes) {
  CreditPool out;
  out.packets = links * headers + static_cast<std::uint32_t>(in_pipes / kLineBytes);
  out.unit = kDataCredit;
  if (data) {
    out.units = links * static_cast<std::uint32_t>(data->count() / kDataCredit.count()) +
                static_cast<std::uint32_t>(in_pipes / kDataCredit.as_double());
  }
  return out;
}

struct Pools {
  Pools(const PcieBuffers& b, std::uint32_t links, double in_pipes)
      : posted{pool(b.posted_headers, b.posted_data, links, in_pipes)},
        nonposted{pool(b.nonposted_headers, std::nullopt, links, in_pipes)},
        completions{pool(b.completion_headers, b.completion_data, links, in_pipes)} {
    for (CreditPool* p : {&posted, &nonposted, &completions}) p->return_delay = b.credit_latency;
  }
  std::vector<VlControl> vls() const {
    return {posted, SharesRoomOf{pcie_vl::kPosted}, nonposted, completions,
            SharesRoomOf{pcie_vl::kCompletion}};
  }
  CreditPool posted;
  CreditPool nonposted;
  CreditPool completions;
};

std::uint32_t count(const Params& params, std::string_view key) {
  return static_cast<std::uint32_t>(std::llround(params.number(key)));
}

}  // namespace

PcieBuffers::PcieBuffers(const Params& params)
    : posted_headers{count(params, "pcie.posted_headers")},
      nonposted_headers{count(params, "pcie.nonposted_headers")},
      completion_headers{count(params, "pcie.completion_headers")},
      posted_data{params.bytes("pcie.posted_data")},
      completion_data{params.bytes("pcie.completion_data")},
      tlps_per_update{count(params, "pcie.tlps_per_update")},
      update_symbols{count(params, "pcie.update_symbols")},
      credit_latency{params.duration("pcie.credit_latency")} {}

LinkSpec pcie_link_spec(const PcieBuffers& buffers, const PcieCosts& costs,
                        const PcieLinkParts& parts) {
  LinkSpec spec;
  spec.rate = pcie_rate(parts.generation, parts.width);
  spec.framing = costs.framing();
  Pools pools(buffers, 1, spec.rate.as_bytes_per_s() * parts.pipes.as_s());
  if (parts.takes_all_completions) {
    pools.completions.packets = pools.completions.units = kUnlimited;
  }
  const Duration symbol = serialization_time(Bytes{1}, pcie_rate(parts.generation, 1));
  for (CreditPool* p : {&pools.posted, &pools.nonposted, &pools.completions}) {
    // Never wait for TLPs that the credits left do not allow.
    p->packets_per_update = std::min(buffers.tlps_per_update, std::max(1U, p->packets / 2));
    p->update_bytes = costs.dllps(p->packets_per_update);
    p->update_timeout = symbol * buffers.update_symbols;
  }
  spec.vls = pools.vls();
  spec.may_pass = pcie_ordering();
  return spec;
}

LinkSpec tlp_carrier_spec(const PcieBuffers& buffers, const CarrierParts& parts) {
  LinkSpec spec;
  spec.rate = parts.rate;
  spec.delay = parts.delay;
  const Duration pipes = parts.delay + parts.pipes;
  spec.vls = Pools(buffers, parts.links, parts.rate.as_bytes_per_s() * pipes.as_s()).vls();
  spec.may_pass = pcie_ordering();
  return spec;
}

}  // namespace weft
