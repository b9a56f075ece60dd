#include "models/nccl/decide/tuning_env.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/lower_case.hpp"

namespace weft {
namespace {

/// The parts between separators; empty ones are passed over, as strtok does.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

bool same_word(std::string_view a, std::string_view b) { return lower_case(a) == lower_case(b); }

template <class Enum, std::size_t N>
std::vector<std::string> words(const std::array<Enum, N>& list, std::string_view (*name)(Enum)) {
  std::vector<std::string> out;
  for (const Enum each : list) out.emplace_back(name(each));
  return out;
}

/// One of the two variables: its words, and a row of switches for each collective.
struct WordSwitches {
  std::string variable;
  std::string value;
  std::vector<std::string> known;

  [[noreturn]] void fail(const std::string& why) const {
    throw InputError(variable + "='" + value + "': " + why + ", and NCCL does not start");
  }
  /// Sets a row by a list such as "ring,tree" or "^tree".
  void apply(std::string_view list, std::span<bool> row, bool refuses_unknown) const {
    const bool turned = list.starts_with('^');
    if (turned) list.remove_prefix(1);
    std::fill(row.begin(), row.end(), turned);
    for (const std::string_view word : split(list, ',')) {
      const auto found = std::find_if(known.begin(), known.end(), [&](const std::string& each) {
        return same_word(each, word);
      });
      if (found != known.end()) {
        row[static_cast<std::size_t>(found - known.begin())] = !turned;
      } else if (refuses_unknown) {
        fail("no '" + std::string(word) + "'; known: " + known_names(known));
      }
    }
  }
};

/// Calls `set(op, list)` for each list of `value` and each collective that it is meant for.
template <class Set>
void for_each_list(const WordSwitches& variable, const Set& set) {
  bool first = true;
  for (const std::string_view entry : split(variable.value, ';')) {
    const std::vector<std::string_view> parts = split(entry, ':');
    if (parts.size() == 1 && !first) {
      variable.fail("only the first list may name no collective");
    }
    bool found = false;
    for (const NcclOp op : kNcclOpList) {
      if (parts.size() > 1 && !same_word(parts[0], nccl_op_name(op))) continue;
      found = true;
      if (!parts.empty()) set(op, parts.size() > 1 ? parts[1] : parts[0]);
    }
    if (!found) {
      variable.fail("no collective '" + std::string(parts[0]) +
                    "'; known: " + known_names(words(kNcclOpList, nccl_op_name)));
    }
    first = false;
  }
}

}  // namespace

TuningPermissions tuning_permissions(const NcclEnv& env, const TuningConstants& constants) {
  TuningPermissions out{};
  for (auto& row : out.algo) row.fill(true);
  for (auto& row : out.proto) row.fill(true);
  const auto read = [&](const std::string& name, const std::string& value,
                        std::vector<std::string> known, const auto& row) {
    if (value.empty()) return;
    const WordSwitches variable{name, value, std::move(known)};
    if (constants.env_by_op) {
      for_each_list(variable,
                    [&](NcclOp op, std::string_view list) { variable.apply(list, row(op), true); });
      return;
    }
    for (const NcclOp op : kNcclOpList) variable.apply(variable.value, row(op), false);
  };
  read("NCCL_ALGO", env.algo, words(kNcclAlgoList, nccl_algo_name),
       [&](NcclOp op) { return std::span<bool>(out.algo[index_of(op)]); });
  read("NCCL_PROTO", env.proto, words(kNcclProtoList, nccl_proto_name), [&](NcclOp op) {
    out.proto_is_forced[index_of(op)] = true;
    return std::span<bool>(out.proto[index_of(op)]);
  });
  return out;
}

}  // namespace weft
