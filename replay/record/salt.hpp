#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft::record {

/// SipHash-2-4 of `bytes` (Aumasson and Bernstein, INDOCRYPT 2012).
std::uint64_t siphash(const std::array<std::uint64_t, 2>& key, std::span<const std::byte> bytes);

/// Hides what a trace says of a site: a keyed hash of addresses, keys, guids and names. Two
/// recordings with one salt hide the same thing alike, so that the hosts of one job match.
class Salt {
 public:
  /// `text` = "": a random one. With `keep_names` everything passes as it is.
  Salt(std::string_view text, bool keep_names);

  /// An address: shifted by a constant multiple of 1 GiB, so that differences and alignments hold.
  std::uint64_t address(std::uint64_t plain) const { return plain + shift_; }
  std::uint32_t key(std::uint32_t plain) const;
  std::uint16_t lid(std::uint16_t plain) const;
  std::uint64_t guid(std::uint64_t plain) const;
  /// A GID or what else is too long for a number: its hash, also with `keep_names`.
  std::uint64_t digest(std::span<const std::byte> plain) const;
  /// "host-1f2e3d4c" for kind "host".
  std::string name(std::string_view kind, std::string_view plain) const;

 private:
  std::uint64_t hash(std::span<const std::byte> bytes) const;

  std::array<std::uint64_t, 2> key_{};
  std::uint64_t shift_{0};
  bool keep_names_{false};
};

}  // namespace weft::record
