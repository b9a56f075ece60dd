#include "tools/listed_gpus.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"
#include "sim/input/evidence/product_names.hpp"

namespace weft {
namespace {

/// Of the GPUs that a log lists; none if weft has no part of one of them.
std::set<std::string> parts_of(const MeasuredTable& measured) {
  std::set<std::string> out;
  for (const std::string& gpu : measured.gpus) out.insert(gpu_part_named(product_name(gpu)));
  return out.contains("") ? std::set<std::string>{} : out;
}

/// A part measured in a virtual machine is the same product.
std::string product_of(const std::string& part) { return part == "h200-vm" ? "h200-sxm" : part; }

/// Whether both are known and have nothing in common.
bool are_unlike(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::set<std::string> products;
  for (const std::string& part : b) products.insert(product_of(part));
  return !a.empty() && !b.empty() && std::ranges::none_of(a, [&](const std::string& part) {
    return products.contains(product_of(part));
  });
}

std::string is_of(const MeasuredTable& measured) {
  return fmt::format("{} is of {}", measured.file, fmt::join(measured.gpus, ", "));
}

}  // namespace

std::string other_gpus(const MeasuredTable& measured, const TopologySpec& machine) {
  const std::set<std::string> parts = gpu_parts_of(machine.node);
  if (measured.gpus.empty() || parts.empty()) return "";
  const bool has_some = std::ranges::any_of(measured.gpus, [&](const std::string& gpu) {
    return std::ranges::any_of(parts, [&](const std::string& part) {
      return may_be_of(product_name(gpu), product_of(part));
    });
  });
  if (has_some) return "";
  return fmt::format("{}, the machine has {}", is_of(measured), fmt::join(parts, ", "));
}

void refuse_gate_of_others(const MeasuredTable& measured, const Gate& gate) {
  if (!are_unlike(parts_of(measured), gate.gpus)) return;
  throw InputError(fmt::format("{}, the floors of {} are for {}", is_of(measured), gate.file,
                               fmt::join(gate.gpus, ", ")));
}

void refuse_other_gpus(const MeasuredTable& slow, const MeasuredTable& healthy) {
  if (!are_unlike(parts_of(slow), parts_of(healthy))) return;
  throw InputError(is_of(slow) + ", " + is_of(healthy) +
                   ": the healthy run must be one of the same machine");
}

}  // namespace weft
