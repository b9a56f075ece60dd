#include "replay/record/salt.hpp"

#include <bit>
#include <cstdio>
#include <cstring>
#include <sys/random.h>

#include "replay/record/clock.hpp"

namespace weft::record {
namespace {

constexpr std::uint64_t kPage = 1ULL << 30;

struct SipState {
  std::array<std::uint64_t, 4> v;

  void round() {
    v[0] += v[1];
    v[1] = std::rotl(v[1], 13) ^ v[0];
    v[0] = std::rotl(v[0], 32);
    v[2] += v[3];
    v[3] = std::rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = std::rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = std::rotl(v[1], 17) ^ v[2];
    v[2] = std::rotl(v[2], 32);
  }
  void take(std::uint64_t word) {
    v[3] ^= word;
    round();
    round();
    v[0] ^= word;
  }
};

std::array<std::uint64_t, 2> random_key() {
  std::array<std::uint64_t, 2> key{};
  if (getrandom(key.data(), sizeof key, GRND_NONBLOCK) != sizeof key) {
    // Early in a boot: times nobody outside knows to the nanosecond.
    key = {now_ns(), now_ns(CLOCK_REALTIME)};
  }
  return key;
}

}  // namespace

std::uint64_t siphash(const std::array<std::uint64_t, 2>& key, std::span<const std::byte> bytes) {
  SipState state{{key[0] ^ 0x736f6d6570736575ULL, key[1] ^ 0x646f72616e646f6dULL,
                  key[0] ^ 0x6c7967656e657261ULL, key[1] ^ 0x7465646279746573ULL}};
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    state.take(word);
  }
  std::uint64_t last = 0;
  if (at < bytes.size()) std::memcpy(&last, bytes.data() + at, bytes.size() - at);
  state.take(last | static_cast<std::uint64_t>(bytes.size()) << 56);
  state.v[2] ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v[0] ^ state.v[1] ^ state.v[2] ^ state.v[3];
}

Salt::Salt(std::string_view text, bool keep_names) : keep_names_{keep_names} {
  if (text.empty()) {
    key_ = random_key();
  } else {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
    key_ = {siphash({0, 0}, bytes), siphash({1, 0}, bytes)};
  }
  if (keep_names_) return;
  const std::uint64_t zero = 0;
  shift_ = hash(std::as_bytes(std::span(&zero, 1))) / kPage * kPage;
}

std::uint64_t Salt::hash(std::span<const std::byte> bytes) const { return siphash(key_, bytes); }

std::uint32_t Salt::key(std::uint32_t plain) const {
  if (keep_names_) return plain;
  return static_cast<std::uint32_t>(hash(std::as_bytes(std::span(&plain, 1))));
}

std::uint16_t Salt::lid(std::uint16_t plain) const {
  if (keep_names_ || plain == 0) return plain;
  return static_cast<std::uint16_t>(hash(std::as_bytes(std::span(&plain, 1))));
}

std::uint64_t Salt::guid(std::uint64_t plain) const {
  if (keep_names_) return plain;
  return hash(std::as_bytes(std::span(&plain, 1)));
}

std::uint64_t Salt::digest(std::span<const std::byte> plain) const { return hash(plain); }

std::string Salt::name(std::string_view kind, std::string_view plain) const {
  if (keep_names_) return std::string(plain);
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x",
                static_cast<std::uint32_t>(hash(std::as_bytes(std::span(plain)))));
  return std::string(kind) + '-' + digits;
}

}  // namespace weft::record
