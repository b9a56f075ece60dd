#pragma once

#include <cstdint>
#include <random>
#include <string_view>

namespace weft {

/// An independent random stream for one purpose of one run. Adding a stream never disturbs the
/// others, since each is seeded from the run's seed and its own name only.
std::mt19937_64 random_stream(std::uint64_t run_seed, std::string_view purpose);

/// Uniform in [0, 1), the same on every standard library: the top 53 bits of one draw.
double uniform01(std::mt19937_64& stream);

/// Uniform in [0, n); unbiased by rejection. Precondition: n > 0.
std::uint64_t uniform_below(std::mt19937_64& stream, std::uint64_t n);

/// One step of SplitMix64: every bit of the input moves every bit of the output.
/// Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
constexpr std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// A hash of two numbers in their order.
constexpr std::uint64_t combined(std::uint64_t a, std::uint64_t b) {
  return splitmix64(a * 0x2545f4914f6cdd1dU + b);
}

/// FNV-1a, 64 bits: a stable, non-cryptographic digest of bytes.
std::uint64_t fnv1a(std::string_view bytes);

}  // namespace weft
