// Against models/nccl/decide as `weft nccl --json` writes it, every field of every case: what seven
// releases of NCCL decided on whole machines (nccl-releases.json), what NCCL 2.28.9 decided on 106
// topologies (data/h200/nccl-2.28.9-decisions.json, captured by us on H200s, stored here with each
// distinct value once) and on 226 more (captured in the same way, after the model was written: odd
// shapes, 29 of them drawn at random).
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
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

/// nccl-releases.json, as store.py writes it.
class Store {
 public:
  explicit Store(const std::string& path) : file_{Json::parse(read_text_file(path), path)} {}

  /// Names and facts of a release's cases.
  std::vector<std::pair<std::string, Json>> cases(const std::string& release) const {
    std::vector<std::pair<std::string, Json>> out;
    for (const auto& [name, node] : file_.at("cases").at(release).members()) {
      out.emplace_back(name, value(node));
    }
    return out;
  }

 private:
  Json value(const Json& number) const {
    const Json& node = file_.at("nodes").items()[static_cast<std::size_t>(number.as_integer())];
    if (!node.is_object()) return node;
    if (const Json* const array = node.find("a")) {
      Json out = Json::array();
      for (const Json& item : array->items()) out.push(value(item));
      return out;
    }
    const Json::Array& parts = node.at("o").items();
    const Json& shape = file_.at("shapes").items()[static_cast<std::size_t>(parts[0].as_integer())];
    Json out = Json::object();
    for (std::size_t i = 0; i < shape.items().size(); ++i) {
      out.set(shape.items()[i].as_string(), value(parts[i + 1]));
    }
    return out;
  }

  Json file_;
};

// What NCCL's log does not say in full. These are facts of the log, not of the decision.

/// NCCL cuts lines at 1,024 characters, the host's name included.
bool was_cut(const Json& row) {
  constexpr std::size_t kShortestCut = 950;
  std::size_t length = 0;
  for (const auto& [name, path] : row.members()) {
    length += fmt::format("{} ({}/{:.1f}/{}) ", name, path.at("hops").as_integer(),
                          path.at("bw").as_number(), path.at("type").as_string())
                  .size();
  }
  return length > kShortestCut;
}

std::string paths_difference(const Json& ours, const Json& nccls) {
  if (ours.members().size() != nccls.members().size()) return "paths: not as many rows";
  for (const auto& [name, row] : nccls.members()) {
    const Json* const found = ours.find(name);
    if (found == nullptr) return "paths: no row " + name;
    const std::string inside = difference(*found, row, "paths." + name, was_cut(row));
    if (!inside.empty()) return inside;
  }
  return "";
}

/// Up to 2.21 a ring's line ends after 20 ranks.
Json rings_as_logged(const Json& ours, const Json& nccls) {
  constexpr std::size_t kMostRanks = 20;
  Json out = Json::object();
  for (const auto& [channel, ring] : ours.members()) {
    const Json* const logged = nccls.find(channel);
    if (logged == nullptr || logged->items().size() != kMostRanks) {
      out.set(channel, ring);
      continue;
    }
    Json::Array first = ring.items();
    first.resize(std::min(first.size(), kMostRanks));
    out.set(channel, Json::array(std::move(first)));
  }
  return out;
}

/// Up to 2.23 graphs name GPUs by rank. Where a cut line did not tell the rank's bus id, the data
/// kept the rank: "GPU/0-15".
Json graphs_as_logged(const Json& ours, const Json& nccls, const std::vector<std::string>& gpus) {
  Json out = Json::array();
  for (std::size_t g = 0; g < ours.items().size(); ++g) {
    Json graph = Json::object();
    for (const auto& [key, value] : ours.items()[g].members()) {
      if (key != "orders" || g >= nccls.items().size()) {
        graph.set(key, value);
        continue;
      }
      const Json::Array& logged = nccls.items()[g].at("orders").items();
      Json orders = Json::array();
      for (std::size_t c = 0; c < value.items().size(); ++c) {
        Json order = Json::array();
        for (std::size_t i = 0; i < value.items()[c].items().size(); ++i) {
          const std::string& name = value.items()[c].items()[i].as_string();
          const auto rank = std::find(gpus.begin(), gpus.end(), name) - gpus.begin();
          const std::string by_rank = "GPU/0-" + std::to_string(rank);
          const bool has = c < logged.size() && i < logged[c].items().size();
          order.push(has && logged[c].items()[i].as_string() == by_rank ? by_rank : name);
        }
        orders.push(std::move(order));
      }
      graph.set(key, std::move(orders));
    }
    out.push(std::move(graph));
  }
  return out;
}

/// What NCCL calls a collective's size, in weft's terms: of an all-gather and a reduce-scatter it
/// logs a rank's part.
Json in_whole_bytes(const Json& choices, int ranks) {
  Json out = Json::array();
  for (const Json& choice : choices.items()) {
    const std::string& op = choice.at("op").as_string();
    const bool by_rank = op == "AllGather" || op == "ReduceScatter";
    Json whole = Json::object();
    for (const auto& [key, value] : choice.members()) {
      whole.set(key, key == "bytes" && by_rank ? Json(value.as_integer() * ranks) : value);
    }
    out.push(std::move(whole));
  }
  return out;
}

std::vector<std::string> gpus_by_rank(const NcclDecisions& decisions) {
  const NcclSystem& system = decisions.views.front().system;
  std::vector<std::string> names(static_cast<std::size_t>(decisions.gpus_per_host));
  for (int g = 0; g < system.count(NcclNodeType::kGpu); ++g) {
    const NcclNode& gpu = system.node(NcclNodeType::kGpu, g);
    names[static_cast<std::size_t>(gpu.gpu.rank)] = gpu.name();
  }
  return names;
}

/// Per field: how many cases agree.
using Agreement = std::map<std::string, int>;

void compare(const std::string& name, const Json& facts, Agreement& equal) {
  SCOPED_TRACE(name);
  std::string xml;
  for (const Json& line : facts.at("topo_xml").items()) xml += line.as_string() + "\n";
  std::map<std::string, std::string> env{{"NCCL_NVLS_ENABLE", "0"}};  // off in all
  for (const auto& [key, text] : facts.at("env").members()) env[key] = text.as_string();
  const NcclDecisions decisions = decide_nccl(
      parse_nccl_tree(xml, name + ".xml"), static_cast<int>(facts.at("hosts").as_integer()),
      parse_nccl_env(env), parse_nccl_version(facts.at("nccl").as_string()));
  EXPECT_EQ(decisions.nodes, facts.at("nodes").as_integer());
  EXPECT_EQ(decisions.ranks, facts.at("ranks").as_integer());
  const Json choices = in_whole_bytes(facts.at("choice"), decisions.ranks);
  const Json answer = nccl_json(decisions, Tuning(tuning_input(decisions)), sizes_of(choices));
  for (const auto& [field, more_is_fine] : kFields) {
    const Json& nccls = facts.at(field);
    Json ours = answer.at(field);
    if (field == "rings") ours = rings_as_logged(ours, nccls);
    if (field == "graphs") ours = graphs_as_logged(ours, nccls, gpus_by_rank(decisions));
    if (field == "choice") ours = same_choices(ours, choices);
    const std::string found =
        field == "paths"
            ? paths_difference(ours, nccls)
            : difference(ours, field == "choice" ? choices : nccls, field, more_is_fine);
    EXPECT_EQ(found, "");
    equal[field] += found.empty() ? 1 : 0;
  }
}

/// Releases from 2.20.5 to 2.30.7 on machines of 2 to 16 GPUs, and NVLink domains over several
/// hosts (mnnvl): NCCL's own code with pretended GPUs and hosts.
class CapturedRelease : public testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(CapturedRelease, EveryFieldOfEveryCaseIsAsNcclDecided) {
  static const Store store(std::string(WEFT_SOURCE_DIR) +
                           "/tests/nccl_decisions/nccl-releases.json");
  const auto& [release, expected_cases] = GetParam();
  Agreement equal;
  const auto cases = store.cases(release);
  for (const auto& [name, facts] : cases) compare(name, facts, equal);
  EXPECT_EQ(cases.size(), static_cast<std::size_t>(expected_cases));
  std::printf("%s: of %zu cases equal:", release, cases.size());
  for (const auto& [field, count] : equal) std::printf(" %s %d", field.c_str(), count);
  std::printf("\n");
}

INSTANTIATE_TEST_SUITE_P(
    Nccl, CapturedRelease,
    testing::Values(std::pair{"decisions-2.20.5", 19}, std::pair{"decisions-2.21.5", 19},
                    std::pair{"decisions-2.23.4", 19}, std::pair{"decisions-2.27.7", 19},
                    std::pair{"decisions-2.28.9", 70}, std::pair{"decisions-2.29.7", 19},
                    std::pair{"decisions-2.30.7", 57}, std::pair{"mnnvl-2.28.9", 9}),
    [](const auto& each) {
      std::string name = each.param.first;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
      return name;
    });

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
