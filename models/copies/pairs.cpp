#include "models/copies/pairs.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "models/machine/device_name.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/topology/require_gpu.hpp"

namespace weft {
namespace {

constexpr const char* kAll = "all";
constexpr const char* kNearest = "cpu";

/// One end of a copy; nullopt: the other end's CPU.
using End = std::optional<DeviceId>;

DeviceId device_of(const Fabric& fabric, const std::string& text, const char* option) {
  const DeviceName name = parse_device_name(text, option, 0);
  if (name.node > 0) throw InputError(fmt::format("{} '{}': copies stay in node 0", option, text));
  const DeviceId id = find_device(fabric, name, option);
  const DeviceKind kind = fabric.device(id).kind;
  if (kind == DeviceKind::kGpu || kind == DeviceKind::kCpu) return id;
  throw InputError(fmt::format("{} '{}': not a GPU or CPU", option, text));
}

std::vector<End> ends_of(const Fabric& fabric, const std::string& text, const char* option) {
  if (text.empty() || text == kNearest) return {std::nullopt};
  std::vector<End> out;
  for (const std::string& name : comma_separated(text)) {
    if (name == kNearest) {
      out.emplace_back();
    } else if (name == kAll) {
      throw InputError(fmt::format("{} '{}': 'all' stands alone", option, text));
    } else {
      out.emplace_back(device_of(fabric, name, option));
    }
  }
  return out;
}

/// All GPUs but those that are the other end.
std::vector<End> gpus_but(const Fabric& fabric, const std::vector<End>& others) {
  std::vector<End> out;
  for (std::size_t i = 0; i < fabric.count(DeviceKind::kGpu); ++i) {
    const DeviceId gpu = fabric.device(0, DeviceKind::kGpu, i);
    if (std::find(others.begin(), others.end(), End{gpu}) == others.end()) out.emplace_back(gpu);
  }
  return out;
}

CopyPair pair_of(const Fabric& fabric, End from, End to) {
  const auto is_gpu = [&](End end) { return end && fabric.device(*end).kind == DeviceKind::kGpu; };
  const auto name = [&](End end) { return end ? fabric.device(*end).name : kNearest; };
  if (!is_gpu(from) && !is_gpu(to)) {
    throw InputError(
        fmt::format("--from {} --to {}: one of them must be a GPU", name(from), name(to)));
  }
  if (from == to) {
    throw InputError(
        fmt::format("--from {0} --to {0}: copies inside a device are not modelled", name(from)));
  }
  if (!from) from = fabric.root_cpu(*to);
  if (!to) to = fabric.root_cpu(*from);
  return {*from, *to, is_gpu(from) ? *from : *to};
}

}  // namespace

std::vector<CopyPair> copy_pairs(const Fabric& fabric, const std::string& from,
                                 const std::string& to) {
  require_gpu(fabric);
  if (from == kAll && to == kAll) {
    throw InputError("--from all --to all: say which GPUs are paired, or leave both out");
  }
  std::vector<End> sources = from == kAll ? std::vector<End>{} : ends_of(fabric, from, "--from");
  std::vector<End> sinks = to == kAll ? std::vector<End>{} : ends_of(fabric, to, "--to");
  if (from == kAll) sources = gpus_but(fabric, sinks);
  if (to == kAll) sinks = gpus_but(fabric, sources);
  if (sources.empty() || sinks.empty()) {
    throw InputError(fmt::format("--from {} --to {}: there is no other GPU", from, to));
  }
  const std::size_t count = std::max(sources.size(), sinks.size());
  for (std::vector<End>* ends : {&sources, &sinks}) {
    if (ends->size() == 1) ends->resize(count, ends->front());
  }
  if (sources.size() != sinks.size()) {
    throw InputError(fmt::format("--from has {} devices and --to {}: give one, or as many of both",
                                 sources.size(), sinks.size()));
  }
  if (count > kMostPairs) {
    throw InputError(fmt::format("{} copies at once are too many; at most {}", count, kMostPairs));
  }
  std::vector<CopyPair> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(pair_of(fabric, sources[i], sinks[i]));
  return out;
}

}  // namespace weft
