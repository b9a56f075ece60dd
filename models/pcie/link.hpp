#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of every PCIe link; the page is models/pcie/README.md.
inline constexpr std::array kPcieParams{
    ParamSpec{"pcie.framing", Unit::kBytes, 8, 0, 16, Origin::kSpecification,
              "PCIe Base 3.0-5.0 4.2.2 (STP token 4 B) and 3.5.2 (LCRC 4 B)",
              "framing, sequence number and LCRC of one TLP on a non-flit link (Gen1-5)"},
    ParamSpec{"pcie.request_header", Unit::kBytes, 16, 12, 24, Origin::kSpecification,
              "PCIe Base 2.2.1: 4 DW header for 64-bit addresses; GPU BAR1 lies above 4 GiB",
              "header of a memory write or memory read request"},
    ParamSpec{"pcie.completion_header", Unit::kBytes, 12, 12, 24, Origin::kSpecification,
              "PCIe Base 2.2.9: 3 DW header", "header of a completion with data"},
    ParamSpec{"pcie.dllp", Unit::kBytes, 8, 6, 16, Origin::kSpecification,
              "PCIe Base 3.4: 6 B DLLP with CRC, 8 B on the wire with its framing",
              "one ACK or UpdateFC on a non-flit link"},
    ParamSpec{"pcie.dllps_per_tlp", Unit::kCount, 0.5, 0, 4, Origin::kPublished,
              "UCX src/ucs/sys/topo/base/topo.c: 16 B of DLLPs for every 4 TLPs",
              "ACK and UpdateFC DLLPs that a receiver returns per TLP it takes"},
};
static_assert(every_param_is_sourced(kPcieParams));

/// PCIe generations that are known: 1 to 6.
inline constexpr std::size_t kPcieGenerations = 6;

/// Data rate of a link in one direction after encoding: 8b/10b (Gen1-2), 128b/130b (Gen3-5), or the
/// TLP bytes of a 256 B flit (Gen6: 236 of 256). PCIe Base 4.2. Throws InputError for another
/// generation than 1-6 or a width that is not 1, 2, 4, 8, 12, 16 or 32.
Bandwidth pcie_rate(int generation, int width);

/// What payload costs on a link: link bytes per payload byte, headers and DLLPs included.
///
/// Model: a transfer of n bytes in TLPs of p payload bytes occupies its own direction for
/// n (p + framing + header) / p; each of its TLPs makes the receiver return `dllps_per_tlp` DLLPs
/// in the other direction; a read also sends one request TLP per `request_size` in the other
/// direction. Not modelled here: credits and tags (caps of whoever sends), SKP ordered sets (0.3
/// %), replays.
class PcieCosts {
 public:
  /// For links of this generation: flit links (6 and up) have neither framing nor DLLPs of their
  /// own.
  PcieCosts(const Params& params, int generation);

  /// Posted writes of `payload` bytes each: bytes on the link per payload byte.
  double write_weight(double payload) const { return (payload + framing_ + request_) / payload; }
  /// Completions of `payload` bytes each.
  double completion_weight(double payload) const {
    return (payload + framing_ + completion_) / payload;
  }
  /// Read requests, one for every `request_size` bytes of data, against the data's direction.
  double request_weight(double request_size) const { return (framing_ + request_) / request_size; }
  /// DLLPs returned against TLPs of `payload` bytes each.
  double dllp_weight(double payload) const { return dllp_ / payload; }

  /// Of every TLP on the link.
  Bytes framing() const { return Bytes{std::llround(framing_)}; }
  /// What a receiver returns for so many TLPs; none on flit links.
  Bytes dllps(std::uint32_t tlps) const { return Bytes{std::llround(dllp_ * tlps)}; }
  Bytes request_header() const { return Bytes{std::llround(request_)}; }
  Bytes completion_header() const { return Bytes{std::llround(completion_)}; }

 private:
  double framing_;
  double request_;
  double completion_;
  double dllp_;
};

}  // namespace weft
