#include "sim/input/traffic.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "sim/base/error.hpp"

namespace weft {
namespace {

using Kind = TrafficSpec::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 5> kKinds{
    {{"alltoallv", Kind::kAllToAllV},
     {"permutation", Kind::kPermutation},
     {"incast", Kind::kIncast},
     {"dispatch", Kind::kDispatch},
     {"combine", Kind::kCombine}}};
constexpr auto kWords = words_of(kKinds);
constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::int64_t kMostSeed = (std::int64_t{1} << 53) - 1;

constexpr std::array kTrafficKeys{
    KeySpec{"op", "one of", kRequired,
            "alltoallv: a matrix; permutation: each rank sends to one; incast: many to one; "
            "dispatch: tokens to their experts; combine: back",
            kWords},
    KeySpec{
        "matrix", "path", "none; alltoallv needs it",
        "CSV, relative to the scenario's folder: under the head `from,to,bytes` a line for each "
        "pair of ranks that sends, bytes a size, 16 million lines at most; or without a head a "
        "square of sizes, in row r and column c what rank r sends rank c, 16 million cells at "
        "most"},
    KeySpec{
        "routing", "path", "none: drawn by `tokens`, `top_k`, `skew`, `seed`",
        "dispatch, combine: CSV, relative to the scenario's folder, head `rank,expert,tokens`: "
        "how many of its tokens a rank sends an expert, as a layer's router counts them; a line "
        "for each pair, 16 million at most"},
    KeySpec{"bytes", "size", "none; permutation and incast need it", "what each sender sends"},
    KeySpec{"shift",
            "whole number",
            "none: one cycle through all ranks, drawn by `seed`",
            "permutation: rank r sends to rank r + shift",
            {},
            1,
            kMostRanks},
    KeySpec{"senders", "whole number", "all other ranks", "incast: how many", {}, 1, kMostRanks},
    KeySpec{"to", "whole number", "0", "incast: the rank that receives", {}, 0, kMostRanks},
    KeySpec{"stride",
            "whole number",
            "1",
            "incast: from one sender to the next; the first is rank to + stride",
            {},
            1,
            kMostRanks},
    KeySpec{"tokens",
            "whole number",
            "none; dispatch and combine need it unless `routing` stands",
            "of each rank",
            {},
            1,
            1 << 24},
    KeySpec{"experts",
            "whole number",
            "none; dispatch and combine need it",
            "of all ranks, as many on each: e is on rank e / (experts / ranks), rounded down",
            {},
            1,
            1 << 20},
    KeySpec{"top_k", "whole number", "1", "experts of each token, no expert twice", {}, 1, 64},
    KeySpec{"token_bytes", "size", "none; dispatch and combine need it", "of one token"},
    KeySpec{"skew", "number", "0: all alike",
            "Zipf's exponent, 0 to 4: the i-th most wanted expert is chosen with weight i^-skew; "
            "which is which is drawn"},
    KeySpec{"seed", "whole number", "1", "of all that is drawn", {}, 0, kMostSeed}};

/// Which keys go with an op beside `op` and must stand there, or may.
struct KeysOf {
  Kind kind;
  std::array<std::string_view, 2> needed;
  std::array<std::string_view, 5> allowed;
};
constexpr std::array<KeysOf, 5> kKeysOf{
    {{Kind::kAllToAllV, {"matrix"}, {}},
     {Kind::kPermutation, {"bytes"}, {"shift", "seed"}},
     {Kind::kIncast, {"bytes"}, {"senders", "to", "stride"}},
     {Kind::kDispatch, {"experts", "token_bytes"}, {"routing", "tokens", "top_k", "skew", "seed"}},
     {Kind::kCombine, {"experts", "token_bytes"}, {"routing", "tokens", "top_k", "skew", "seed"}}}};

void check_keys_of(const Yaml& yaml, const KeysOf& keys) {
  for (const auto& [name, value] : yaml.entries()) {
    const bool goes =
        name == "op" ||
        std::find(keys.needed.begin(), keys.needed.end(), name) != keys.needed.end() ||
        std::find(keys.allowed.begin(), keys.allowed.end(), name) != keys.allowed.end();
    if (!goes) value.fail("does not go with " + std::string(traffic_name(keys.kind)));
  }
  for (const std::string_view name : keys.needed) {
    if (!name.empty()) yaml.require(name);
  }
}

/// A file has what else is drawn.
void check_routing(const Yaml& yaml) {
  const Yaml* routing = yaml.find("routing");
  if (routing == nullptr && yaml.find("tokens") == nullptr) {
    yaml.fail("write either 'tokens', which are drawn, or 'routing', a file of them");
  }
  for (const std::string_view drawn : {"tokens", "top_k", "skew", "seed"}) {
    const Yaml* at = yaml.find(drawn);
    if (routing != nullptr && at != nullptr) {
      at->fail("write either this or 'routing', which has all tokens, not both");
    }
  }
}

/// "": it does not stand there.
std::string read_path(const Yaml& yaml, std::string_view key, const std::string& folder) {
  const Yaml* path = yaml.find(key);
  if (path == nullptr) return {};
  if (path->text().empty()) path->fail("expected a path to a CSV file");
  return (std::filesystem::path(folder) / path->text()).lexically_normal().string();
}

Bytes read_bytes(const Yaml& yaml) {
  constexpr Bytes kMost{1LL << 42};
  const Bytes size = yaml.size();
  if (size < Bytes{1} || size > kMost) {
    yaml.fail("'" + yaml.text() + "' is out of range; allowed: 1 B to " + format_size(kMost));
  }
  return size;
}

}  // namespace

std::string_view traffic_name(Kind kind) { return kKinds[static_cast<std::size_t>(kind)].first; }

std::optional<Kind> traffic_kind(std::string_view name) {
  for (const auto& [word, kind] : kKinds) {
    if (word == name) return kind;
  }
  return std::nullopt;
}

TrafficSpec read_traffic(const Yaml& yaml, const std::string& folder) {
  check_keys(yaml, kTrafficKeys);
  TrafficSpec out;
  out.place = yaml.place();
  const std::optional<Kind> kind = traffic_kind(yaml.require("op").text());
  if (!kind) yaml.require("op").fail("is no traffic");
  out.kind = *kind;
  check_keys_of(yaml, kKeysOf[static_cast<std::size_t>(*kind)]);
  const bool routes = out.kind == Kind::kDispatch || out.kind == Kind::kCombine;
  if (routes) check_routing(yaml);
  out.matrix = read_path(yaml, "matrix", folder);
  out.routing = read_path(yaml, "routing", folder);
  if (const Yaml* bytes = yaml.find("bytes")) out.bytes = read_bytes(*bytes);
  if (const Yaml* bytes = yaml.find("token_bytes")) out.token_bytes = read_bytes(*bytes);
  const auto whole = [&](std::string_view name, auto& to) {
    const Yaml* at = yaml.find(name);
    if (at == nullptr) return;
    to = static_cast<std::uint32_t>(read_integer(*at, key_of(kTrafficKeys, name)));
  };
  whole("shift", out.shift);
  whole("senders", out.senders);
  whole("to", out.to);
  whole("stride", out.stride);
  whole("tokens", out.tokens);
  whole("experts", out.experts);
  whole("top_k", out.top_k);
  if (out.shift && yaml.find("seed") != nullptr) {
    yaml.require("seed").fail("write either this or 'shift', not both");
  }
  if (const Yaml* seed = yaml.find("seed")) {
    out.seed = static_cast<std::uint64_t>(read_integer(*seed, key_of(kTrafficKeys, "seed")));
  }
  if (const Yaml* skew = yaml.find("skew")) {
    out.skew = skew->quantity(Unit::kCount);
    if (!(out.skew >= 0 && out.skew <= 4)) {
      skew->fail("'" + skew->text() + "' is out of range; allowed: 0 to 4");
    }
  }
  if (routes && out.top_k > out.experts) yaml.require("top_k").fail("is more than the experts");
  return out;
}

FormatSection traffic_format() {
  return {"workload, of traffic",
          "Irregular traffic between all GPUs, for `weft traffic`.",
          {kTrafficKeys.begin(), kTrafficKeys.end()}};
}

}  // namespace weft
