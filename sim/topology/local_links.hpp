#pragma once

#include <cstdint>

#include "sim/topology/network_shape.hpp"

namespace weft {

/// The links between switches that stand side by side: in each group of `size` a ring, or all to
/// all, of `each` parallel links between two. Switches are numbered group by group, links likewise.
/// Nothing is stored.
class LocalLinks {
 public:
  using Inside = NetworkSpec::Inside;
  /// kTree: no links.
  LocalLinks(Inside inside, std::size_t size, std::size_t groups, std::size_t each)
      : inside_{inside}, size_{size}, groups_{groups}, each_{each} {}

  std::size_t count() const { return groups_ * pairs() * each_; }
  /// Of one switch. A ring of two is one pair.
  std::size_t ports() const;
  SwitchEnds ends(std::size_t link) const;
  /// The parallel links between the same two.
  Trunk trunk(std::size_t link) const { return {LinkId{link - link % each_}, each_}; }
  bool joins(std::size_t a, std::size_t b) const {
    return inside_ != Inside::kTree && a / size_ == b / size_;
  }
  /// Whether routes may wait for each other in a ring: no hop of three is both first and last.
  bool has_loops() const { return inside_ == Inside::kRing && size_ > 3; }

  /// Two of a ring that stand opposite have two shortest ways, all others one.
  std::uint64_t ways(std::size_t from, std::size_t to) const;
  /// Whether some two have several routes.
  bool has_equal_routes() const {
    return pairs() > 0 && (each_ > 1 || (inside_ == Inside::kRing && size_ > 2 && size_ % 2 == 0));
  }
  /// Which way round: the first choice of a pick. Precondition of these: `joins(from, to)`.
  std::uint64_t take_way(std::size_t from, std::size_t to, std::uint64_t& pick) const;
  /// Adds a shortest route that way round, with parallel links as `pick` chooses.
  void add_route(std::size_t from, std::size_t to, std::uint64_t way, std::uint64_t& pick,
                 NetworkSteps& steps) const;

 private:
  std::size_t pairs() const;
  std::size_t ahead(std::size_t from, std::size_t to) const {
    return (to % size_ + size_ - from % size_) % size_;
  }

  Inside inside_;
  std::size_t size_;
  std::size_t groups_;
  std::size_t each_;
};

/// Numbers of unordered pairs: 0-1, 0-2, 1-2, 0-3, ...
std::size_t pair_number(std::size_t low, std::size_t high);
/// The pair of a number, lower first.
std::pair<std::size_t, std::size_t> pair_of(std::size_t number);

/// Takes one of `ways` choices off a pick.
inline std::uint64_t take_choice(std::uint64_t& pick, std::uint64_t ways) {
  const std::uint64_t choice = pick % ways;
  pick /= ways;
  return choice;
}

}  // namespace weft
