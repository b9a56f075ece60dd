#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "sim/base/units.hpp"

namespace weft {

/// The IOMMU of one root port: its cache of translations (IOTLB) and its page walkers.
///
/// Model: fully associative, least recently used goes first; a miss takes a page walk, of which so
/// many run at once; requests for a page that is being walked wait for that walk.
/// Not modelled: caches of the upper levels, faults, invalidations.
class Iotlb {
 public:
  struct Settings {
    std::size_t entries{64};
    std::size_t walkers{1};
    Duration walk{};
  };
  explicit Iotlb(const Settings& settings);

  /// When the translation of an address that is asked for now is known. `page`: by which page it
  /// is mapped.
  Time translate(Time now, std::uint64_t address, Bytes page);

  std::uint64_t walks() const { return walks_; }

 private:
  struct Entry {
    std::uint64_t page;
    Time known_at;
  };

  Settings settings_;
  std::list<Entry> recent_;  ///< most recently used first
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> by_page_;  // never iterated
  std::vector<Time> walker_free_at_;
  std::uint64_t walks_{0};
};

}  // namespace weft
