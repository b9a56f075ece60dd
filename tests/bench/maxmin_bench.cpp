// How fast maxmin_rates is, and how much memory it takes: a million flows over 4 random distinct
// links each of 100,000. maxmin_bench [FLOWS [LINKS]]
#include <cstdlib>
#include <numeric>
#include <vector>

#include "sim/flow/maxmin.hpp"
#include "tests/bench/shapes.hpp"

int main(int argc, char** argv) {
  using weft::bench::RandomLinks;
  const std::size_t flows = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const std::size_t links = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100'000;
  if (links < RandomLinks::kUses) return 2;
  const RandomLinks random(flows, links);
  std::vector<std::uint32_t> offset(flows + 1);
  for (std::size_t f = 0; f <= flows; ++f) {
    offset[f] = static_cast<std::uint32_t>(f * RandomLinks::kUses);
  }
  const weft::bench::Stopwatch watch;
  const weft::MaxMinSolution solution = weft::maxmin_rates(
      {.capacity = random.capacity, .use_offset = offset, .use_server = random.link});
  const double seconds = watch.seconds();
  const double sum = std::accumulate(solution.rate.begin(), solution.rate.end(), 0.0);
  weft::bench::report("maxmin", sum, "B/s in all", seconds);
  return EXIT_SUCCESS;
}
