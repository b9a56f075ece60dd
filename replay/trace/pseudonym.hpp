// Numbers in place of others: the same for the same number and salt, different for different ones,
// and without the salt no way back. Plain code, as block.hpp: recorder and scrub share it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::trace {

/// A salt, as SipHash's key.
using Salt = std::array<std::uint64_t, 2>;

namespace pseudonym {

struct SipState {
  std::uint64_t a, b, c, d;

  constexpr void round() {
    a += b;
    b = std::rotl(b, 13) ^ a;
    a = std::rotl(a, 32);
    c += d;
    d = std::rotl(d, 16) ^ c;
    a += d;
    d = std::rotl(d, 21) ^ a;
    c += b;
    b = std::rotl(b, 17) ^ c;
    c = std::rotl(c, 32);
  }
};

constexpr std::uint64_t word_at(std::string_view text, std::size_t at) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < 8 && at + i < text.size(); ++i) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[at + i])) << (8 * i);
  }
  return word;
}

}  // namespace pseudonym

/// SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012, section 2).
constexpr std::uint64_t siphash(const Salt& key, std::string_view text) {
  pseudonym::SipState state{key[0] ^ 0x736f6d6570736575U, key[1] ^ 0x646f72616e646f6dU,
                            key[0] ^ 0x6c7967656e657261U, key[1] ^ 0x7465646279746573U};
  const auto absorb = [&](std::uint64_t word) {
    state.d ^= word;
    state.round();
    state.round();
    state.a ^= word;
  };
  const std::size_t whole = text.size() / 8 * 8;
  for (std::size_t at = 0; at < whole; at += 8) absorb(pseudonym::word_at(text, at));
  absorb(pseudonym::word_at(text, whole) | static_cast<std::uint64_t>(text.size()) << 56U);
  state.c ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.a ^ state.b ^ state.c ^ state.d;
}

constexpr std::uint64_t siphash(const Salt& key, std::uint64_t number) {
  std::array<char, 8> text{};
  for (std::size_t i = 0; i < 8; ++i) text[i] = static_cast<char>((number >> (8 * i)) & 0xff);
  return siphash(key, std::string_view(text.data(), text.size()));
}

/// The salt that a text stands for.
constexpr Salt salt_of(std::string_view text) {
  return {siphash(Salt{0, 1}, text), siphash(Salt{2, 3}, text)};
}

/// The pseudonym of a number below 2^`bits`, below it too; `bits` is even, up to 64. 0 stays 0:
/// nothing. A permutation, so that different numbers stay different: four rounds of a Feistel
/// network (Luby and Rackoff, SIAM J. Comput. 17(2), 1988).
constexpr std::uint64_t pseudonym_of(const Salt& salt, std::uint64_t number, unsigned bits) {
  if (number == 0) return 0;
  const unsigned half = bits / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  // What would become 0 goes round once more: a permutation of the others stays one.
  do {
    std::uint64_t left = number >> half;
    std::uint64_t right = number & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const Salt key{salt[0] ^ (round + 1), salt[1] ^ bits};
      const std::uint64_t mixed = (left ^ siphash(key, right)) & mask;
      left = right;
      right = mixed;
    }
    number = left << half | right;
  } while (number == 0);
  return number;
}

/// Of a memory address: its place in a page of 4 KiB stays, so that alignment and differences
/// within a page hold.
constexpr std::uint64_t address_pseudonym(const Salt& salt, std::uint64_t address) {
  constexpr unsigned kPageBits = 12;
  const std::uint64_t in_page = address & ((1U << kPageBits) - 1);
  return pseudonym_of(salt, address >> kPageBits, 64 - kPageBits) << kPageBits | in_page;
}

}  // namespace weft::trace
