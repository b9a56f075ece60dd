// What NCCL 2.28.9 decided on 106 topologies (data/h200/nccl-2.28.9-decisions.json, captured by us
// on H200s, stored here with each distinct value once) and on 226 more (captured in the same way,
// after the model was written: odd shapes, 29 of them drawn at random), against models/nccl as
// `weft nccl --json` writes it: every field of every case.
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/nccl/decide/decide.hpp"
#include "models/nccl/decide/tuning_input.hpp"
#include "sim/io/file.hpp"
#include "sim/io/json.hpp"
#include "tools/nccl_view.hpp"

namespace weft::test::nccl_decisions_captured {
namespace {

/// The pretended hosts of a capture share one machine: the second host's GPUs are CUDA devices 2
/// and 3, and NCCL picks a GPU's NIC by device number. Weft's hosts all count from 0. These fields
/// follow from that number, and no more than these.
const std::map<std::string, std::string> kOtherDeviceNumbers = {{"twonics.2x2.levelLOC", "gdr"},
                                                                {"r053s7.2x2.gdr", "trees"},
                                                                {"r122s7.2x2.gdr", "trees"},
                                                                {"r159s7.2x2.gdr", "rings"}};

/// Where `ours` first differs from NCCL's: "paths.GPU/0-60.NET/0-0.bw: ours 48, NCCL's 24"; "" if
/// it does not. More keys than NCCL's are allowed where `extra` says so.
std::string difference(const Json& ours, const Json& nccls, const std::string& at, bool extra) {
  const auto differ = [&] {
    return at + ": ours " + ours.dump() + at + ": NCCL's " + nccls.dump();
  };
  if (nccls.is_object() && ours.is_object()) {
    for (const auto& [key, value] : nccls.members()) {
      const Json* const found = ours.find(key);
      if (found == nullptr) return at + "." + key + ": missing; NCCL has " + value.dump();
      const std::string inside = difference(*found, value, at + "." + key, false);
      if (!inside.empty()) return inside;
    }
    return !extra && ours.members().size() != nccls.members().size() ? differ() : "";
  }
  if (nccls.is_array() && ours.is_array()) {
    for (std::size_t i = 0; i < std::min(ours.items().size(), nccls.items().size()); ++i) {
      const std::string inside =
          difference(ours.items()[i], nccls.items()[i], at + "[" + std::to_string(i) + "]", false);
      if (!inside.empty()) return inside;
    }
    return ours.items().size() != nccls.items().size() ? differ() : "";
  }
  if (nccls.is_number() && ours.is_number()) {
    return std::abs(nccls.as_number() - ours.as_number()) > 1e-5 ? differ() : "";
  }
  return ours.dump() != nccls.dump() ? differ() : "";
}

const Json& value(const Json& file, const Json& one_case, const std::string& field) {
  return file.at("values")
      .at(field)
      .items()[static_cast<std::size_t>(one_case.at(field).as_integer())];
}

/// What weft answers of a case, and whether it says more than NCCL does: GDR for pairs that NCCL
/// has not come to use, how many channels NVLS has.
const std::map<std::string, bool> kFields = {
    {"system", false}, {"paths", false},  {"gdr", true},      {"graphs", false}, {"rings", false},
    {"trees", false},  {"tuning", false}, {"channels", true}, {"choice", false}};

NcclDecisions decide(const std::string& name, const Json& topo_xml, const Json& env_json) {
  std::map<std::string, std::string> env;
  for (const auto& [key, text] : env_json.members()) env.emplace(key, text.as_string());
  const NcclTree tree = parse_nccl_tree(topo_xml.as_string(), name + ".xml");
  const std::string shape = name.substr(name.find('.') + 1);  // "2x2.gdr1": hosts x GPUs
  return decide_nccl(tree, std::stoi(shape), parse_nccl_env(env));
}

/// The sizes that `nccls` choices are for, each once.
std::vector<Bytes> sizes_of(const Json& nccls) {
  std::set<std::int64_t> sizes;
  for (const Json& choice : nccls.items()) sizes.insert(choice.at("bytes").as_integer());
  std::vector<Bytes> out;
  for (const std::int64_t size : sizes) out.emplace_back(size);
  return out;
}

/// Of `ours`, what `nccls` has a choice for, with the keys that it has.
Json same_choices(const Json& ours, const Json& nccls) {
  Json out = Json::array();
  for (const Json& asked : nccls.items()) {
    for (const Json& choice : ours.items()) {
      if (choice.at("op").as_string() != asked.at("op").as_string() ||
          choice.at("bytes").as_integer() != asked.at("bytes").as_integer()) {
        continue;
      }
      Json same = Json::object();
      for (const auto& [key, value] : asked.members()) same.set(key, choice.at(key));
      out.push(std::move(same));
    }
  }
  return out;
}

void compare_all(const std::string& name_of_file, int expected_cases) {
  const std::string path = std::string(WEFT_SOURCE_DIR) + "/tests/nccl_decisions/" + name_of_file;
  const Json file = Json::parse(read_text_file(path), path);
  std::map<std::string, int> equal;
  int cases = 0;
  for (const auto& [name, one_case] : file.at("cases").members()) {
    SCOPED_TRACE(name);
    ++cases;
    const NcclDecisions decisions =
        decide(name, value(file, one_case, "topo_xml"), value(file, one_case, "env"));
    EXPECT_EQ(decisions.ranks, one_case.at("ranks").as_integer());
    EXPECT_EQ(decisions.nodes, one_case.at("nodes").as_integer());
    const auto other = kOtherDeviceNumbers.find(name);
    const Json& choices = value(file, one_case, "choice");
    const Json answer = nccl_json(decisions, Tuning(tuning_input(decisions)), sizes_of(choices));
    for (const auto& [field, more_is_fine] : kFields) {
      const Json& ours = answer.at(field);
      const std::string found = difference(field == "choice" ? same_choices(ours, choices) : ours,
                                           value(file, one_case, field), field, more_is_fine);
      if (other != kOtherDeviceNumbers.end() && other->second == field) {
        EXPECT_NE(found, "") << field << " is equal now: take it off the list";
      } else {
        EXPECT_EQ(found, "");
      }
      equal[field] += found.empty() ? 1 : 0;
    }
  }
  EXPECT_EQ(cases, expected_cases);
  for (const auto& [field, count] : equal)
    std::printf("%-9s %d of %d\n", field.c_str(), count, cases);
}

TEST(Captured, EveryFieldOfEveryCaseIsAsNcclDecided) { compare_all("nccl-2.28.9.json", 106); }

TEST(Captured, EveryFieldOfTheLaterCasesIsAsNcclDecided) {
  compare_all("nccl-2.28.9-more.json", 226);
}

}  // namespace
}  // namespace weft::test::nccl_decisions_captured
