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

/// FNV-1a, 64 bits: a stable, non-cryptographic digest of bytes.
std::uint64_t fnv1a(std::string_view bytes);

}  // namespace weft
