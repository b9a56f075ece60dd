// How fast maxmin_rates is, and how much memory it takes: a million flows over 4 random distinct
// links each of 100,000, capacities 50 + 50 u. maxmin_bench [FLOWS [LINKS]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sys/resource.h>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/flow/maxmin.hpp"

int main(int argc, char** argv) {
  constexpr std::size_t kUses = 4;
  const std::size_t flows = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const std::size_t links = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100'000;
  if (links < kUses) return 2;
  const std::clock_t begin = std::clock();
  std::mt19937_64 stream = weft::random_stream(1, "maxmin_bench");
  std::vector<double> capacity(links);
  for (double& c : capacity) c = 50 + 50 * weft::uniform01(stream);
  std::vector<std::uint32_t> offset{0};
  std::vector<std::uint32_t> resource;
  offset.reserve(flows + 1);
  resource.reserve(flows * kUses);
  for (std::size_t f = 0; f < flows; ++f) {
    while (resource.size() < (f + 1) * kUses) {
      const auto r = static_cast<std::uint32_t>(weft::uniform_below(stream, links));
      const auto first = resource.begin() + static_cast<std::ptrdiff_t>(f * kUses);
      if (std::find(first, resource.end(), r) == resource.end()) resource.push_back(r);
    }
    offset.push_back(static_cast<std::uint32_t>(resource.size()));
  }
  const std::clock_t solve = std::clock();
  const weft::MaxMinSolution solution =
      weft::maxmin_rates({.capacity = capacity, .use_offset = offset, .use_resource = resource});
  const std::clock_t end = std::clock();
  double sum = 0;
  for (const double rate : solution.rate) sum += rate;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  // Processor time, which a busy machine does not stretch; the program has one thread.
  const auto seconds = [](std::clock_t ticks) {
    return static_cast<double>(ticks) / CLOCKS_PER_SEC;
  };
  std::printf(
      "maxmin: %zu flows, %zu links, sum of rates %.6f, set-up %.3f s, solve %.3f s, "
      "peak %.1f MB\n",
      flows, links, sum, seconds(solve - begin), seconds(end - solve),
      static_cast<double>(usage.ru_maxrss) * 1024.0 / 1e6);
  return EXIT_SUCCESS;
}
