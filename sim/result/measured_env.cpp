#include "sim/result/measured_env.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/lower_case.hpp"
#include "sim/base/operation.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// The value of a variable in a cell, the last one; "" if none, or if it goes on behind a ';', as
/// lists of operations do.
std::string variable_in(std::string_view cell, std::string_view variable) {
  std::string out;
  bool is_last = false;
  for (const std::string& entry : entries_of_cell(cell)) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) {
      if (is_last) out.clear();
      continue;
    }
    is_last = entry.substr(0, equals) == variable;
    if (is_last) out = unquoted(trimmed(std::string_view(entry).substr(equals + 1)));
  }
  return out;
}

/// As NCCL's strtoll(value, 0) has it, whatever follows the digits: decimal, 0x or 0 octal; 0
/// without any, or of too many.
std::int64_t whole_in(const std::string& value) {
  errno = 0;
  const std::int64_t number = std::strtoll(value.c_str(), nullptr, 0);
  return errno == 0 ? number : 0;
}

/// Whether a value of NCCL_P2P_LEVEL has no GPU reach another: LOC, of old 0.
bool is_local(const std::string& value) {
  return value == "LOC" || (value.front() >= '0' && value.front() <= '9' && whole_in(value) == 0);
}

/// What a variable of words says: "Ring", "Ring,Tree", "^Tree".
struct Words {
  explicit Words(std::string_view value)
      : excludes{value.starts_with('^')},
        words{comma_separated(std::string(value.substr(excludes ? 1 : 0)))} {}

  bool allows(std::string_view word) const {
    return excludes != std::ranges::any_of(
                           words, [&](const std::string& one) { return is_same_word(one, word); });
  }

  bool excludes;
  std::vector<std::string> words;
};

/// Of other operations than all-reduce NCCL never excludes rings.
bool is_governed(const std::string& op, const Words& algos) {
  if (algos.excludes) return governs("Tree", op);
  return std::ranges::any_of(algos.words,
                             [&](const std::string& algo) { return governs(algo, op); });
}

bool is_collective(const std::string& op) { return governs("Ring", op); }

}  // namespace

std::vector<std::string> entries_of_cell(std::string_view cell) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < cell.size();) {
    const std::size_t end = std::min(cell.find(';', begin), cell.size());
    const std::string_view entry = trimmed(cell.substr(begin, end - begin));
    if (!entry.empty()) out.emplace_back(entry);
    begin = end + 1;
  }
  return out;
}

std::string unquoted(std::string_view value) {
  const bool is_quoted = value.size() >= 2 && value.front() == value.back() &&
                         (value.front() == '"' || value.front() == '\'');
  return std::string(is_quoted ? value.substr(1, value.size() - 2) : value);
}

bool governs(std::string_view algo, std::string_view op) {
  const auto at = std::ranges::find(kOpNames, op);
  if (at == kOpNames.end()) return false;
  const Operation& operation = kOperations[static_cast<std::size_t>(at - kOpNames.begin())];
  return !operation.point_to_point &&
         (is_same_word(algo, "Ring") ||
          (is_same_word(algo, "Tree") && operation.op == Op::kAllReduce));
}

void check_env(const MeasuredRow& row) {
  const auto check = [&](std::string_view column, const std::string& cell,
                         std::string_view variable, const auto& agrees) {
    const std::string value = variable_in(row.env, variable);
    if (value.empty() || agrees(value)) return;
    throw InputError(fmt::format("{}={}, but the row's {} is {}", variable, value, column, cell));
  };
  // What is said of single operations ("allreduce:ring") is not looked at.
  const auto is_of_all = [](const std::string& value) {
    return value.find(':') == std::string::npos;
  };
  check("algo", row.algo, "NCCL_ALGO", [&](const std::string& value) {
    const Words words(value);
    return row.algo == "auto" || !is_of_all(value) || !is_governed(row.op, words) ||
           words.allows(row.algo);
  });
  check("proto", row.proto, "NCCL_PROTO", [&](const std::string& value) {
    return row.proto == "auto" || !is_of_all(value) || !is_collective(row.op) ||
           Words(value).allows(row.proto);
  });
  // NCCL reads the old name where the new one is not set.
  const auto check_channels = [&](std::string_view variable, std::string_view old,
                                  const auto& compare) {
    const bool is_old = variable_in(row.env, variable).empty();
    check("channels", std::to_string(row.channels), is_old ? old : variable,
          [&](const std::string& value) {
            const std::int64_t number = whole_in(value);
            return row.channels == 0 || number <= 0 || compare(number, row.channels);
          });
  };
  check_channels("NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS", std::less_equal<>{});
  check_channels("NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS", std::greater_equal<>{});
  const bool is_nvlink = row.transport == "nvlink";
  check("transport", row.transport, "NCCL_P2P_DISABLE",
        [&](const std::string& value) { return !is_nvlink || whole_in(value) != 1; });
  check("transport", row.transport, "NCCL_P2P_LEVEL",
        [&](const std::string& value) { return !is_nvlink || !is_local(value); });
}

}  // namespace weft
