#include "sim/result/measured_env.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/lower_case.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// The value of a variable in a cell of "VARIABLE=VALUE; VARIABLE=VALUE", the last one; "" if none.
std::string_view variable_in(std::string_view cell, std::string_view variable) {
  std::string_view out;
  while (!cell.empty()) {
    const std::string_view entry = trimmed(cell.substr(0, cell.find(';')));
    cell.remove_prefix(std::min(cell.find(';'), cell.size() - 1) + 1);
    const std::size_t equals = entry.find('=');
    if (entry.substr(0, equals) == variable && equals != std::string_view::npos) {
      out = entry.substr(equals + 1);
    }
  }
  return out;
}

/// Whether a variable with this value allows a word: "Ring", "Ring,Tree", "^Tree". What is said of
/// single operations ("allreduce:ring") is not looked at.
bool allows(std::string_view value, std::string_view word) {
  if (value.empty() || value.find(':') != std::string_view::npos) return true;
  const bool excludes = value.starts_with('^');
  const std::vector<std::string> words = comma_separated(std::string(value.substr(excludes)));
  return excludes != std::ranges::any_of(
                         words, [&](const std::string& one) { return is_same_word(one, word); });
}

}  // namespace

void check_env(const MeasuredRow& row) {
  const auto check = [&](std::string_view column, const std::string& cell,
                         std::string_view variable, const auto& agrees) {
    const std::string_view value = variable_in(row.env, variable);
    if (value.empty() || agrees(value)) return;
    throw InputError(fmt::format("{}={}, but the row's {} is {}", variable, value, column, cell));
  };
  const auto allows_word = [](const std::string& word) {
    return [&word](std::string_view value) { return word == "auto" || allows(value, word); };
  };
  check("algo", row.algo, "NCCL_ALGO", allows_word(row.algo));
  check("proto", row.proto, "NCCL_PROTO", allows_word(row.proto));
  const auto compares = [&](const auto& compare) {
    return [&, compare](std::string_view value) {
      const std::optional<double> number = parse_number(std::string(value));
      return row.channels == 0 || !number || compare(*number, static_cast<double>(row.channels));
    };
  };
  const std::string channels = std::to_string(row.channels);
  check("channels", channels, "NCCL_MIN_NCHANNELS", compares(std::less_equal<>{}));
  check("channels", channels, "NCCL_MAX_NCHANNELS", compares(std::greater_equal<>{}));
  check("transport", row.transport, "NCCL_P2P_DISABLE", [&](std::string_view value) {
    return row.transport == "net" || (row.transport == "shm") == (value != "0");
  });
}

}  // namespace weft
