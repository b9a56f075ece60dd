#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "sim/base/random.hpp"

/// What weft and SimGrid are timed on, so that both get the same to do, and how they are timed.
namespace weft::bench {

inline constexpr double kLinkBytesPerS = 50e9;

/// Ring all-reduce of 1 GiB over a two-level fat tree, message by message. `hosts`: a power of two
/// from 64 on.
struct RingShape {
  static constexpr std::uint32_t kLeafSize = 32;
  static constexpr std::int64_t kLinkLatencyNs = 500;

  std::uint32_t hosts{1024};
  std::uint32_t leaves{hosts / kLeafSize};
  std::uint32_t steps{2 * (hosts - 1)};
  std::int64_t chunk_bytes{(std::int64_t{1} << 30) / hosts};
  std::uint32_t links{2 * hosts + 2 * leaves * leaves};

  /// The links from a host to its right neighbour: host up, leaf to spine, spine to leaf, host
  /// down. There are as many spines as leaves, so each leaf's ring flow has one of its own.
  std::vector<std::uint32_t> route(std::uint32_t host) const {
    const std::uint32_t peer = (host + 1) % hosts;
    const std::uint32_t from = host / kLeafSize;
    const std::uint32_t to = peer / kLeafSize;
    const std::uint32_t spine = from;
    if (from == to) return {host, hosts + peer};
    return {host, 2 * hosts + from * leaves + spine, 2 * hosts + (leaves + to) * leaves + spine,
            hosts + peer};
  }

  static bool takes(std::uint32_t hosts) { return hosts >= 64 && std::has_single_bit(hosts); }

  /// Hosts with a neighbour on another leaf set the pace: 4 links' latencies a step.
  double seconds() const {
    return steps * (static_cast<double>(chunk_bytes) / kLinkBytesPerS + 4e-9 * kLinkLatencyNs);
  }
};

/// Bytes from host to host on one crossbar, with an up link and a down link a host: 1 MB each, or 1
/// to 2,000,000 bytes at random. Row by row, 0 from a host to itself.
inline std::vector<std::int64_t> all_to_all_bytes(std::uint32_t hosts, bool equal) {
  std::mt19937_64 stream = random_stream(1, "fluid_bench");
  std::vector<std::int64_t> bytes;
  for (std::uint32_t a = 0; a < hosts; ++a) {
    for (std::uint32_t b = 0; b < hosts; ++b) {
      const auto drawn = equal || a == b
                             ? 1'000'000
                             : static_cast<std::int64_t>(1 + uniform_below(stream, 2'000'000));
      bytes.push_back(a == b ? 0 : drawn);
    }
  }
  return bytes;
}

/// Flows over 4 random distinct links each; capacities 50 + 50 u.
struct RandomLinks {
  static constexpr std::size_t kUses = 4;
  std::vector<double> capacity;
  std::vector<std::uint32_t> link;  // kUses a flow

  RandomLinks(std::size_t flows, std::size_t links) : capacity(links) {
    std::mt19937_64 stream = random_stream(1, "maxmin_bench");
    for (double& c : capacity) c = 50 + 50 * uniform01(stream);
    link.reserve(flows * kUses);
    for (std::size_t f = 0; f < flows; ++f) {
      while (link.size() < (f + 1) * kUses) {
        const auto r = static_cast<std::uint32_t>(uniform_below(stream, links));
        const auto first = link.begin() + static_cast<std::ptrdiff_t>(f * kUses);
        if (std::find(first, link.end(), r) == link.end()) link.push_back(r);
      }
    }
  }
};

/// The process's largest resident memory. (getrusage would count what its parent had before exec.)
inline double peak_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    double kibibytes = 0;
    status >> kibibytes;
    return kibibytes * 1024.0 / 1e6;
  }
  return 0;
}

/// The processor's name and how many there are.
inline std::string machine() {
  std::ifstream info("/proc/cpuinfo");
  std::string model = "unknown";
  int count = 0;
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    model = line.substr(line.find(':') + 2);
    ++count;
  }
  return model + ", " + std::to_string(count) + " cores";
}

/// Processor time, which a busy machine does not stretch as it does the time of day; the programs
/// have one thread.
class Stopwatch {
 public:
  double seconds() const { return static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t begin_{std::clock()};
};

/// The line that tests/bench/compare reads. `result` is what both sides must agree on.
inline void report(const char* shape, double result, const char* unit, double seconds) {
  std::printf("%s: %.9f %s, %.3f s, peak %.1f MB\n", shape, result, unit, seconds,
              peak_megabytes());
}

}  // namespace weft::bench
