#include "sim/input/evidence/product_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/lower_case.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

using PartName = std::pair<std::string_view, std::string_view>;

/// Words of product names as nvidia-smi and lspci print them; the first that fits counts. Those
/// without a part of their own stand with "".
constexpr std::array<PartName, 24> kGpuNames{{{"GB300", "gb300"},
                                              {"GB200", "gb200"},
                                              {"B300", "b300-sxm"},
                                              {"B200", "b200-sxm"},
                                              {"GH200", "gh200"},
                                              {"H200 NVL", ""},
                                              {"H100 NVL", ""},
                                              {"H200", "h200-sxm"},
                                              {"H100 PCIe", "h100-pcie"},
                                              {"H100 80GB HBM3", "h100-sxm"},
                                              {"H100 SXM", "h100-sxm"},
                                              {"A100-SXM", "a100-sxm"},
                                              {"A100-PCIE", "a100-pcie"},
                                              {"A100 80GB PCIe", "a100-pcie"},
                                              {"A100 PCIe", "a100-pcie"},
                                              {"V100-SXM", "v100-sxm"},
                                              {"RTX PRO 6000", "rtx-pro-6000"},
                                              {"NVIDIA L40S", "l40s"},
                                              {"NVIDIA L4 ", "l4"},
                                              {"NVIDIA A10 ", "a10"},
                                              {"NVIDIA A30", "a30"},
                                              {"NVIDIA A40", "a40"},
                                              {"Tesla T4", "t4"},
                                              {"NVIDIA T4", "t4"}}};
/// Of virtual functions, whose PCI ids are their own, and of ibstat's types.
constexpr std::array<PartName, 12> kNicNames{{{"ConnectX-6 Dx", "connectx-6-dx"},
                                              {"ConnectX-6 Lx", ""},
                                              {"ConnectX-5", "connectx-5"},
                                              {"ConnectX-6", "connectx-6"},
                                              {"ConnectX-7", "connectx-7"},
                                              {"ConnectX-8", "connectx-8"},
                                              {"BlueField-3", "bluefield-3"},
                                              {"MT4123", "connectx-6"},
                                              {"MT4125", "connectx-6-dx"},
                                              {"MT4129", "connectx-7"},
                                              {"MT4119", "connectx-5"},
                                              {"MT4131", "connectx-8"}}};

/// In small letters, with blanks for all that is no letter or digit.
std::string plain(std::string_view name) {
  std::string out = lower_case(name);
  std::replace_if(
      out.begin(), out.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, ' ');
  return out;
}

template <class Names>
std::string part_named(const Names& names, std::string_view product) {
  const std::string padded = std::string(product) + " ";  // "NVIDIA A10" is a whole word
  for (const auto& [words, part] : names) {
    if (holds(padded, words)) return std::string(part);
  }
  return {};
}

/// All parts of GPUs.
std::set<std::string> gpu_parts() {
  std::set<std::string> out{"mi50", "mi100", "mi250x",
                            "mi300x"};  // known by gfx names: nccl_parts.cpp
  for (const auto& [words, part] : kGpuNames) {
    if (!part.empty()) out.emplace(part);
  }
  return out;
}

/// Parts of which a product is a form: those whose model, "h100" of "h100-sxm", is a word of its
/// name. An H800 is an H100 with 8 of its NVLinks (topologies/hgx-h800-4nic.yaml).
std::vector<std::string> nearest(std::string_view product, const std::set<std::string>& parts) {
  const std::string words = " " + plain(product) + " ";
  std::vector<std::string> out;
  for (const std::string& part : parts) {
    const std::string model = part.substr(0, part.find('-'));
    const bool is_number = model.find_first_of("0123456789") != std::string::npos;  // not "rtx"
    if (is_number && holds(words, " " + model + " ")) out.push_back(part);
  }
  if (holds(words, " h800 ")) out.emplace_back("h100-sxm");
  return out;
}

}  // namespace

std::string gpu_part_named(std::string_view product) { return part_named(kGpuNames, product); }
std::string gpu_part_meant(std::string_view name) {
  const std::string words = plain(product_name(name)) + " ";
  const auto* const found =
      std::find_if(kGpuNames.begin(), kGpuNames.end(),
                   [&](const PartName& each) { return holds(words, plain(each.first)); });
  return found == kGpuNames.end() ? std::string{} : std::string(found->second);
}
std::string nic_part_named(std::string_view product) { return part_named(kNicNames, product); }

bool may_be_of(std::string_view product, const std::string& part) {
  if (const std::string named = gpu_part_named(product); !named.empty()) return named == part;
  const std::vector<std::string> near = nearest(product, {part});
  return std::find(near.begin(), near.end(), part) != near.end();
}

std::string unknown_gpu(std::string_view product, const Place& place) {
  const std::set<std::string> parts = gpu_parts();
  const std::vector<std::string> near = nearest(product, parts);
  return "'" + one_line(product) + "' (" + place.text() + ") is no GPU that weft knows; " +
         (near.empty() ? "" : "nearest: " + known_names(near) + "; ") +
         "known: " + known_names({parts.begin(), parts.end()}, parts.size()) +
         "; without --gpu PART, or 'part: PART' in the topology, the declared defaults stand in";
}

bool is_of_other_maker(std::string_view product) {
  constexpr std::array<std::string_view, 4> kWords{"AMD", "Instinct", "Radeon", "Intel"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return holds(product, word); });
}

std::string product_name(std::string_view name) {
  std::string out = one_line(without_blanks(name));
  const bool is_name = !out.empty() && out[0] != '[' && !out.starts_with("N/A") &&
                       !out.starts_with("ERR!") && !out.starts_with("Unknown");
  return !is_name || holds(out, "NVIDIA") || is_of_other_maker(out) ? out : "NVIDIA " + out;
}

}  // namespace weft
