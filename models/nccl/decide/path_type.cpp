#include "models/nccl/decide/path_type.hpp"

#include <array>
#include <charconv>

#include "sim/base/error.hpp"

namespace weft {
namespace {

constexpr std::array<std::string_view, 12> kNames{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                  "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

/// Reads digits from the front of `text`; nullopt if there are none.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::string NcclVersion::text() const {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

NcclVersion parse_nccl_version(const std::string& text) {
  const auto fail = [&]() -> NcclVersion {
    throw InputError(
        "NCCL version '" + text + "' is not modelled; known: 2.18, 2.19, 2.20, 2.21, " +
        "2.22, 2.23, 2.24, 2.25, 2.26, 2.27, 2.28, 2.29, 2.30 and their patches, e.g. " +
        NcclVersion{}.text());
  };
  std::string_view rest = text;
  std::array<int, 3> numbers{0, 0, 0};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::optional<int> number = take_number(rest);
    if (!number) return fail();
    numbers[i] = *number;
    if (rest.empty() && i > 0) break;
    if (rest.empty() || i == 2 || rest.front() != '.') return fail();
    rest.remove_prefix(1);
  }
  const NcclVersion version{numbers[0], numbers[1], numbers[2]};
  if (version < kOldestNccl || version > kNewestNccl) return fail();
  return version;
}

std::string_view nccl_path_type_name(NcclPathType type) {
  return kNames[static_cast<std::size_t>(type)];
}

std::optional<NcclPathType> nccl_path_type(std::string_view word) {
  for (std::size_t i = 0; i <= static_cast<std::size_t>(NcclPathType::kSys); ++i) {
    if (word == kNames[i]) return static_cast<NcclPathType>(i);
  }
  return std::nullopt;
}

}  // namespace weft
