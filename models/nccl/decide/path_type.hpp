#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

/// An NCCL release, "2.28.9".
struct NcclVersion {
  int major{2};
  int minor{28};
  int patch{9};
  friend auto operator<=>(const NcclVersion&, const NcclVersion&) = default;
  std::string text() const;
};

/// The releases whose differences are modelled (release.hpp).
inline constexpr NcclVersion kOldestNccl{2, 18, 0};
inline constexpr NcclVersion kNewestNccl{2, 30, 99};

/// What the command line says of them.
inline constexpr const char* kNcclVersionHelp =
    "whose decisions: 2.18 to 2.30, such as 2.27.7; checked against captures of 2.20.5, 2.21.5, "
    "2.23.4, 2.27.7, 2.28.9, 2.29.7 and 2.30.7";

/// Parses "2.28.9" or "2.28". Throws InputError with the known ones outside what is modelled.
NcclVersion parse_nccl_version(const std::string& text);

/// How far apart two devices are, best first, in the order of NCCL 2.28 to 2.30 (graph/topo.h).
enum class NcclPathType : std::uint8_t {
  kLoc,
  kNvl,  ///< NVLink, also through NVSwitch
  kNvb,  ///< NVLink through another GPU
  kC2c,
  kPix,  ///< at most one PCIe bridge
  kPxb,  ///< several PCIe bridges
  kP2c,  ///< GPU to CPU by C2C, then PCIe to the NIC
  kPxn,  ///< GPU to another GPU by NVLink, then PCIe to the NIC
  kPhb,  ///< through a host bridge
  kSys,  ///< through the link between sockets
  kNetwork,
  kDis,  ///< no path
};

/// "PIX".
std::string_view nccl_path_type_name(NcclPathType type);
/// The type of a word ("PXB", up to "SYS"); nullopt if NCCL knows no such word.
std::optional<NcclPathType> nccl_path_type(std::string_view word);

}  // namespace weft
