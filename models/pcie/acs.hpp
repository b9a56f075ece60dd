#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

/// Access Control Services of one downstream or root port: the control register's bits, PCIe Base
/// 6.12 and Linux include/uapi/linux/pci_regs.h.
namespace acs {
inline constexpr std::uint32_t kSourceValidation = 0x01;     ///< drops spoofed requester ids only
inline constexpr std::uint32_t kTranslationBlocking = 0x02;  ///< refuses translated addresses
inline constexpr std::uint32_t kRequestRedirect = 0x04;
inline constexpr std::uint32_t kCompletionRedirect = 0x08;
inline constexpr std::uint32_t kUpstreamForwarding = 0x10;
inline constexpr std::uint32_t kEgressControl = 0x20;
inline constexpr std::uint32_t kDirectTranslated = 0x40;
/// Bits that send peer traffic another way, or stop it. Source validation drops only what is
/// spoofed, translation blocking only what a device translated itself (ATS), upstream forwarding
/// and direct translated say what is allowed.
inline constexpr std::uint32_t kHinderPeers =
    kRequestRedirect | kCompletionRedirect | kEgressControl;
/// No bit of the register: a port's own setting says "as my switch has it".
inline constexpr std::uint32_t kAsSwitch = 0x80;
}  // namespace acs

/// The words of those bits, as lspci abbreviates them; for ParamSpec::choices.
inline constexpr std::string_view kAcsWords = "SV TB RR CR UF EC DT";
inline constexpr std::string_view kPortAcsWords = "SV TB RR CR UF EC DT as-switch";
inline constexpr double kAcsAll = 0x7f;

/// A port's egress control vector: bit n is the n-th port of its switch, from 0.
inline constexpr std::string_view kEgressWords =
    "P0 P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12 P13 P14 P15 P16 P17 P18 P19 P20 P21 P22 P23 P24 P25 "
    "P26 P27 P28 P29 P30 as-switch";
inline constexpr std::uint32_t kEgressPorts = 31;
inline constexpr std::uint32_t kEgressAsSwitch = std::uint32_t{1} << kEgressPorts;
inline constexpr double kEgressAll = 0xffffffff;

/// What a port does with a peer's TLP that could go straight to another port of its switch.
enum class PeerRouting : std::uint8_t { kDirect, kRedirect, kBlock };

/// A peer request that arrives at a port with these ACS bits.
/// @param egress_named  the port's egress control vector names the port it wants to leave by
/// @param translated    its address is translated already (ATS; the TLP's AT field is not 00)
PeerRouting route_peer_request(std::uint32_t bits, bool egress_named, bool translated);

/// A peer completion that arrives at the completer's port. Completions with the relaxed ordering
/// attribute, which they take from their request, are not redirected.
PeerRouting route_peer_completion(std::uint32_t bits, bool relaxed_ordering);

}  // namespace weft
