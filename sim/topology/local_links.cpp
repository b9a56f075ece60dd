#include "sim/topology/local_links.hpp"

#include <algorithm>
#include <cmath>

namespace weft {

std::size_t pair_number(std::size_t low, std::size_t high) { return high * (high - 1) / 2 + low; }

std::pair<std::size_t, std::size_t> pair_of(std::size_t number) {
  auto high = static_cast<std::size_t>((1 + std::sqrt(1 + 8 * static_cast<double>(number))) / 2);
  while (pair_number(0, high) > number) --high;  // what rounding gave too much, or too little
  while (pair_number(0, high + 1) <= number) ++high;
  return {number - pair_number(0, high), high};
}

std::size_t LocalLinks::pairs() const {
  if (inside_ == Inside::kTree || size_ < 2) return 0;
  if (inside_ == Inside::kClique) return size_ * (size_ - 1) / 2;
  return size_ == 2 ? 1 : size_;
}

std::size_t LocalLinks::ports() const {
  if (pairs() == 0) return 0;
  const std::size_t others = size_ - 1;
  return each_ * (inside_ == Inside::kRing ? std::min<std::size_t>(others, 2) : others);
}

SwitchEnds LocalLinks::ends(std::size_t link) const {
  const std::size_t pair = link / each_;
  const std::size_t group = pair / pairs() * size_;
  if (inside_ == Inside::kClique) {
    const auto [low, high] = pair_of(pair % pairs());
    return {group + low, group + high, true};
  }
  const std::size_t at = pair % pairs();
  return {group + at, group + (at + 1) % size_, true};
}

std::uint64_t LocalLinks::ways(std::size_t from, std::size_t to) const {
  const bool opposite = inside_ == Inside::kRing && size_ > 2 && 2 * ahead(from, to) == size_;
  return opposite ? 2 : 1;
}

std::uint64_t LocalLinks::take_way(std::size_t from, std::size_t to, std::uint64_t& pick) const {
  return take_choice(pick, ways(from, to));
}

void LocalLinks::add_route(std::size_t from, std::size_t to, std::uint64_t way, std::uint64_t& pick,
                           NetworkSteps& steps) const {
  if (from == to) return;
  const std::size_t group = from / size_;
  const auto cross = [&](std::size_t pair, bool forward) {
    steps.push_back({(group * pairs() + pair) * each_ + take_choice(pick, each_), forward});
  };
  std::size_t at = from % size_;
  const std::size_t end = to % size_;
  if (inside_ == Inside::kClique || size_ == 2) {
    const std::size_t pair = pair_number(std::min(at, end), std::max(at, end));
    cross(pair, at < end);
    return;
  }
  const std::size_t there = ahead(from, to);
  const bool forward = 2 * there == size_ ? way == 0 : 2 * there < size_;
  for (; at != end; at = (at + (forward ? 1 : size_ - 1)) % size_) {
    cross(forward ? at : (at + size_ - 1) % size_, forward);
  }
}

}  // namespace weft
