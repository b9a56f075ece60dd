#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/input/evidence/evidence.hpp"

namespace weft {
namespace {

// POSIX.1-2017, pax: ustar interchange format; a header is a block of 512 bytes.
constexpr std::size_t kBlock = 512;
constexpr std::size_t kMostMembers = 4096;

std::string_view field(std::string_view header, std::size_t at, std::size_t size) {
  const std::string_view all = header.substr(at, size);
  return all.substr(0, all.find('\0'));
}

std::optional<std::uint64_t> octal(std::string_view digits) {
  std::uint64_t out = 0;
  bool any = false;
  for (const char c : digits) {
    if (c == ' ') continue;
    if (c < '0' || c > '7') return std::nullopt;
    out = out * 8 + static_cast<std::uint64_t>(c - '0');
    any = true;
  }
  return any ? std::optional(out) : std::nullopt;
}

bool sum_fits(std::string_view header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const bool in_sum = i >= 148 && i < 156;
    sum += in_sum ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return octal(field(header, 148, 8)) == sum;
}

}  // namespace

bool is_tar(std::string_view text) {
  return text.size() >= kBlock && text.substr(257, 5) == "ustar" && sum_fits(text);
}

std::vector<TarMember> tar_members(std::string_view text, const std::string& file) {
  std::vector<TarMember> out;
  const auto fail = [&](std::size_t at, const std::string& why) {
    throw InputError(fmt::format("{}: at byte {}: {}", file, at, why));
  };
  for (std::size_t at = 0; at + kBlock <= text.size();) {
    const std::string_view header = text.substr(at, kBlock);
    if (header.find_first_not_of('\0') == std::string_view::npos) return out;
    const std::optional<std::uint64_t> size = octal(field(header, 124, 12));
    if (header.substr(257, 5) != "ustar" || !sum_fits(header) || !size) {
      fail(at, "damaged: no header of a tar's member");
    }
    const std::size_t begin = at + kBlock;
    if (*size > text.size() - begin) fail(at, "cut off");
    const char type = header[156];
    if (type == '0' || type == '\0') {
      if (out.size() == kMostMembers) fail(at, fmt::format("more than {} members", kMostMembers));
      const std::string_view prefix = field(header, 345, 155);
      std::string name(field(header, 0, 100));
      if (!prefix.empty()) name = std::string(prefix) + "/" + name;
      out.push_back({one_line(name), text.substr(begin, *size)});
    }
    at = begin + (*size + kBlock - 1) / kBlock * kBlock;
  }
  return out;
}

}  // namespace weft
