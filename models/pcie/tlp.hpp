#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "models/pcie/link.hpp"
#include "sim/base/params.hpp"
#include "sim/packet/parts.hpp"

namespace weft {

/// Transaction layer packets: what a TLP is, how transfers are cut into them, what may pass what.

/// Parameters of the packet transport's PCIe links; the page is models/pcie/README.md.
inline constexpr std::array kPcieFlowControlParams{
    ParamSpec{"pcie.posted_headers", Unit::kCount, 256, 1, 4096, Origin::kAssumed,
              "unpublished; switch and root ports are thought to have 64-256",
              "posted TLPs that a receive buffer takes"},
    ParamSpec{"pcie.nonposted_headers", Unit::kCount, 256, 1, 4096, Origin::kAssumed,
              "unpublished; switch and root ports are thought to have 64-256",
              "read requests that a receive buffer takes"},
    ParamSpec{"pcie.completion_headers", Unit::kCount, 256, 1, 4096, Origin::kAssumed,
              "as for posted TLPs; endpoints take every completion (PCIe Base 2.6.1)",
              "completions that the receive buffer of a switch or root port takes"},
    ParamSpec{"pcie.posted_data", Unit::kBytes, 65536, 128, 1048576, Origin::kAssumed,
              "unpublished; switch ports are thought to have 8-64 KiB",
              "payload of posted TLPs that a receive buffer takes"},
    ParamSpec{"pcie.completion_data", Unit::kBytes, 65536, 128, 1048576, Origin::kAssumed,
              "unpublished; switch ports are thought to have 16-64 KiB",
              "payload of completions that the receive buffer of a switch or root port takes"},
    ParamSpec{"pcie.tlps_per_update", Unit::kCount, 4, 1, 64, Origin::kPublished,
              "UCX src/ucs/sys/topo/base/topo.c: 16 B of DLLPs for every 4 TLPs",
              "TLPs that share an ACK and an UpdateFC"},
    ParamSpec{"pcie.update_symbols", Unit::kCount, 168, 1, 10'000, Origin::kSpecification,
              "PCIe Base 5.0 table 2-47: x16, MPS 256",
              "symbol times (8 bits of a lane) after which an UpdateFC waits for no more TLPs"},
    ParamSpec{"pcie.credit_latency", Unit::kNanoseconds, 100, 0, 10'000, Origin::kAssumed,
              "two PHYs both ways; unpublished",
              "from freed room in a receive buffer to a sender that may use it, beyond the "
              "UpdateFC's own time"},
    ParamSpec{"pcie.completion_timeout", Unit::kNanoseconds, 1e7, 5e4, 6.4e10,
              Origin::kSpecification, "PCIe Base 2.8: 50 us to 50 ms, at least 10 ms recommended",
              "after which a read that nobody completes has failed"},
};
static_assert(every_param_is_sourced(kPcieFlowControlParams));

enum class TlpKind : std::uint8_t { kWrite, kRead, kCompletion };

/// The virtual lanes of every PCIe link: PCIe's three kinds, and those that carry the relaxed
/// ordering attribute apart. They share the credits of their kind.
namespace pcie_vl {
inline constexpr std::uint8_t kPosted = 0;
inline constexpr std::uint8_t kPostedRelaxed = 1;
inline constexpr std::uint8_t kNonPosted = 2;
inline constexpr std::uint8_t kCompletion = 3;
inline constexpr std::uint8_t kCompletionRelaxed = 4;
}  // namespace pcie_vl
inline constexpr std::size_t kPcieVls = 5;

constexpr std::uint8_t vl_of(TlpKind kind, bool relaxed) {
  switch (kind) {
    case TlpKind::kWrite:
      return relaxed ? pcie_vl::kPostedRelaxed : pcie_vl::kPosted;
    case TlpKind::kRead:
      return pcie_vl::kNonPosted;
    case TlpKind::kCompletion:
      return relaxed ? pcie_vl::kCompletionRelaxed : pcie_vl::kCompletion;
  }
  return pcie_vl::kPosted;
}

/// PCIe Base table 2-40, "may the row pass the column": a posted TLP passes reads and, as bridges
/// must let it, completions; a read passes no posted TLP; a completion passes reads, and posted
/// TLPs only with relaxed ordering. A posted TLP passes another only with relaxed ordering. Where
/// the table leaves it open, it may.
constexpr std::array<std::uint8_t, kMaxVls> pcie_ordering() {
  constexpr auto kBit = [](std::uint8_t vl) { return static_cast<std::uint8_t>(1U << vl); };
  constexpr std::uint8_t kPostedVls = kBit(pcie_vl::kPosted) | kBit(pcie_vl::kPostedRelaxed);
  std::array<std::uint8_t, kMaxVls> may_pass{};
  may_pass.fill(0xff);
  may_pass[pcie_vl::kPosted] = static_cast<std::uint8_t>(0xff & ~kPostedVls);
  may_pass[pcie_vl::kNonPosted] = static_cast<std::uint8_t>(0xff & ~kPostedVls);
  may_pass[pcie_vl::kCompletion] = static_cast<std::uint8_t>(0xff & ~kPostedVls);
  return may_pass;
}

/// No request crosses this boundary. PCIe Base 2.2.7.
inline constexpr std::int64_t kPciePage = 4096;

/// Bytes of the next request of a transfer that goes on at `address`, at most `largest` each.
constexpr std::int64_t next_request(std::uint64_t address, std::int64_t left,
                                    std::int64_t largest) {
  const auto in_page = static_cast<std::int64_t>(address % kPciePage);
  return std::min({left, largest, kPciePage - in_page});
}

/// Bytes of the next completion of a read that goes on at `address`: all but the last end on a
/// multiple of the read completion boundary. PCIe Base 2.3.1.1.
constexpr std::int64_t next_completion(std::uint64_t address, std::int64_t left,
                                       std::int64_t largest, std::int64_t boundary) {
  if (left <= largest) return left;
  const auto over = static_cast<std::int64_t>((address + static_cast<std::uint64_t>(largest)) %
                                              static_cast<std::uint64_t>(boundary));
  return over < largest ? largest - over : largest;
}

/// The receive buffers of every PCIe link and how they grant credit, by kPcieFlowControlParams.
struct PcieBuffers {
  explicit PcieBuffers(const Params& params);

  std::uint32_t posted_headers;
  std::uint32_t nonposted_headers;
  std::uint32_t completion_headers;
  Bytes posted_data;
  Bytes completion_data;
  std::uint32_t tlps_per_update;
  std::uint32_t update_symbols;
  Duration credit_latency;
};

/// One direction of a PCIe link with its receiver's buffers: virtual lanes, credits, DLLPs,
/// ordering. The caller adds the ends.
struct PcieLinkParts {
  int generation{5};
  int width{16};
  bool takes_all_completions{false};  ///< the receiver is an endpoint
  /// Time that TLPs spend inside the sender after they left its buffer and inside the receiver
  /// before they reach the next link or memory. What is in these pipes fills no advertised buffer,
  /// but the network counts it as there: they come on top.
  Duration pipes{};
};
/// `costs`: of the same generation.
LinkSpec pcie_link_spec(const PcieBuffers& buffers, const PcieCosts& costs,
                        const PcieLinkParts& parts);

/// A link that is no PCIe link but carries TLPs (between sockets, C2C): `links` times the buffers
/// of a PCIe link, nothing returned on the wire.
struct CarrierParts {
  Bandwidth rate{Bandwidth::gigabytes_per_s(1)};
  Duration delay{};
  std::uint32_t links{1};
  Duration pipes{};  ///< as above
};
LinkSpec tlp_carrier_spec(const PcieBuffers& buffers, const CarrierParts& parts);

}  // namespace weft
