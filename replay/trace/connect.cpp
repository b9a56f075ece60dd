#include "replay/trace/connect.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "replay/trace/record.hpp"

namespace weft::trace {
namespace {

bool is_addressed(const PairEnd& from, const PairEnd& to) {
  return from.peer_port != 0 &&
         std::find(to.lids.begin(), to.lids.end(), from.peer_port) != to.lids.end();
}

}  // namespace

std::vector<std::uint32_t> connect(std::span<const PairEnd> ends) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> by_numbers;
  for (std::uint32_t i = 0; i < ends.size(); ++i) {
    by_numbers[{ends[i].number, ends[i].peer_number}].push_back(i);
  }
  std::vector<std::uint32_t> peers(ends.size(), kNone);
  for (std::uint32_t i = 0; i < ends.size(); ++i) {
    const auto found = by_numbers.find({ends[i].peer_number, ends[i].number});
    if (ends[i].peer_number == 0 || found == by_numbers.end()) continue;
    std::vector<std::uint32_t> others = found->second;
    std::erase(others, i);
    std::erase_if(others, [&](std::uint32_t other) {  // a loop through its own port would name it
      const PairEnd& end = ends[i];
      const bool has_lid =
          std::any_of(end.lids.begin(), end.lids.end(), [](auto l) { return l != 0; });
      return has_lid && end.lids == ends[other].lids && end.peer_port != 0 &&
             !is_addressed(end, ends[other]);
    });
    if (others.size() > 1) {
      std::erase_if(others, [&](std::uint32_t other) {
        return !is_addressed(ends[i], ends[other]) || !is_addressed(ends[other], ends[i]);
      });
    }
    if (others.size() == 1) peers[i] = others.front();
  }
  // Of three with the same numbers two may take the third for theirs.
  for (std::uint32_t i = 0; i < peers.size(); ++i) {
    if (peers[i] != kNone && peers[peers[i]] != i) peers[i] = kNone;
  }
  return peers;
}

}  // namespace weft::trace
