#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace weft {

/// An index into one kind of thing; ids of different kinds do not mix.
template <class Tag>
struct Id {
  std::uint32_t value{0};

  constexpr Id() = default;
  explicit constexpr Id(std::size_t index) : value{static_cast<std::uint32_t>(index)} {}
  constexpr std::size_t index() const { return value; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using DeviceId = Id<struct DeviceTag>;
using LinkId = Id<struct LinkTag>;

}  // namespace weft
