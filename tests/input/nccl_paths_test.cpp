/// Holds Fabric's path classes, on trees read from NCCL's dumps, to the classes NCCL computed on
/// the very same trees (tests/nccl_decisions, NCCL 2.28.9).

#include <string>

#include <gtest/gtest.h>

#include "sim/input/nccl_xml.hpp"
#include "sim/io/file.hpp"
#include "sim/io/json.hpp"
#include "sim/topology/fabric.hpp"
#include "tests/input/catalog.hpp"

namespace weft::test::input_nccl_paths {
namespace {

/// The device that NCCL calls "GPU/0-60" (bus id 0000:00:06.0) or "NET/0-1" (dev 1).
std::optional<DeviceId> device_of(const Fabric& fabric, const std::string& nccl_name) {
  const std::string number = nccl_name.substr(nccl_name.find('-') + 1);
  if (nccl_name.starts_with("NET/")) {
    return fabric.device(0, DeviceKind::kNic, std::stoul(number));
  }
  if (!nccl_name.starts_with("GPU/")) return std::nullopt;
  for (std::size_t i = 0; i < fabric.count(DeviceKind::kGpu); ++i) {
    const DeviceId gpu = fabric.device(0, DeviceKind::kGpu, i);
    std::string digits;
    for (const char c : fabric.device(gpu).bus_id) {
      if (c != ':' && c != '.') digits += c;
    }
    if (std::stoul(digits, nullptr, 16) == std::stoul(number, nullptr, 16)) return gpu;
  }
  return std::nullopt;
}

/// Ours in NCCL's words: it has no NODE, and NVLink is one class.
std::string nccl_word(const PathLabel& label) {
  switch (label.path_class) {
    case PathClass::kSelf:
      return "LOC";
    case PathClass::kNvlink:
      return "NVL";
    case PathClass::kNode:
      return "PHB";
    default:
      return label.text();
  }
}

int compare_paths(const std::string& name, const Json& topo_xml, const Json& paths) {
  const Fabric fabric(parse_nccl_xml(topo_xml.as_string(), name + ".xml", test_catalog()), 1);
  int compared = 0;
  for (const auto& [from_name, ways] : paths.members()) {
    for (const auto& [to_name, way] : ways.members()) {
      const auto from = device_of(fabric, from_name);
      const auto to = device_of(fabric, to_name);
      const std::string& type = way.at("type").as_string();
      // NVB hops over a third GPU, which no matrix of pairs shows.
      if (!from || !to || type == "NVB") continue;
      EXPECT_EQ(nccl_word(fabric.path_label(*from, *to)), type)
          << name << ": " << from_name << " " << to_name;
      ++compared;
    }
  }
  return compared;
}

TEST(NcclPaths, FabricGivesTheClassesThatNcclComputes) {
  const std::string file = std::string(WEFT_SOURCE_DIR) + "/tests/nccl_decisions/nccl-2.28.9.json";
  const Json decisions = Json::parse(read_text_file(file), file);
  const auto value = [&](const Json& one_case, const char* field) -> const Json& {
    const auto index = static_cast<std::size_t>(one_case.at(field).as_integer());
    return decisions.at("values").at(field).items()[index];
  };
  int cases = 0;
  int compared = 0;
  for (const auto& [name, one_case] : decisions.at("cases").members()) {
    // Elsewhere NCCL has rerouted pairs over the CPU, by its settings or for want of GDR.
    if (!name.ends_with(".gdr1") && !name.ends_with(".default")) continue;
    compared += compare_paths(name, value(one_case, "topo_xml"), value(one_case, "paths"));
    ++cases;
  }
  EXPECT_GE(cases, 20);
  EXPECT_GE(compared, 200);
}

}  // namespace
}  // namespace weft::test::input_nccl_paths
