#include "sim/input/prices.hpp"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "sim/base/random.hpp"

namespace weft::test::input_prices {
namespace {

constexpr const char* kList = R"(prices: a test's
currency: EUR
parts:
  - {is: node, part: h100-sxm, cost: 1000, watts: 100}
  - {is: nic, cost: 10, watts: 2}
  - {is: switch, ports: 8, cost: 300}
  - {is: switch, cost: 900}
  - {is: nic-cable, cost: 1}
  - {is: switch-cable, cost: 5}
)";

const CableLengths kLengths{5, [](const std::string&, bool is_local) { return is_local ? 2 : 30; }};

/// Nodes of one GPU, `nics` NICs and one that is not cabled, on a network.
Fabric cluster(std::uint32_t nodes, std::uint32_t nics, NetworkSpec network) {
  TopologySpec spec;
  spec.name = "test";
  const auto add = [&](std::string name, DeviceKind kind, std::string part) -> DeviceSpec& {
    DeviceSpec device;
    device.name = std::move(name);
    device.kind = kind;
    device.part = std::move(part);
    if (kind != DeviceKind::kCpu) device.upstream = "cpu0";
    if (kind == DeviceKind::kNic) device.network = "fabric";
    spec.node.devices.push_back(std::move(device));
    return spec.node.devices.back();
  };
  add("cpu0", DeviceKind::kCpu, "");
  add("gpu0", DeviceKind::kGpu, "h100-sxm");
  for (std::uint32_t i = 0; i < nics; ++i) {
    add("nic" + std::to_string(i), DeviceKind::kNic, "connectx-7");
  }
  add("storage", DeviceKind::kNic, "connectx-6").network = "none";
  network.name = "fabric";
  spec.network = std::move(network);
  return {std::move(spec), nodes};
}

std::map<std::string, std::uint64_t> counts(const std::vector<BillLine>& bill) {
  std::map<std::string, std::uint64_t> out;
  for (const BillLine& line : bill) {
    std::string key(purchase_name(line.is));
    if (line.is == Purchase::kSwitch) key += " " + std::to_string(line.ports);
    out[key] += line.count;
  }
  return out;
}

// Nothing is bought above a leaf that has all NICs; more nodes need it.
TEST(Bill, OfOneLeafHasNothingAboveIt) {
  NetworkSpec network;
  network.kind = NetworkSpec::Kind::kLeafSpine;
  network.ports = 64;
  const auto one = counts(bill_of_parts(cluster(16, 2, network), kLengths));
  EXPECT_EQ(one.at("switch 64"), 1U);
  EXPECT_FALSE(one.contains("switch-cable"));
  const auto two = counts(bill_of_parts(cluster(32, 2, network), kLengths));
  EXPECT_EQ(two.at("switch 64"), 3U);
  EXPECT_EQ(two.at("switch-cable"), 64U);
}

// Three tiers of equal switches of k ports: k pods of k/2 leaves and k/2 spines, (k/2)^2 cores,
// k^3/4 NICs, and as many cables between leaves and spines, and between spines and cores.
TEST(Prices, AFatTreeIsCounted) {
  NetworkSpec network;
  network.kind = NetworkSpec::Kind::kFatTree;
  network.ports = 8;
  const Fabric fabric = cluster(64, 2, network);
  EXPECT_EQ(counts(bill_of_parts(fabric, kLengths)),
            (std::map<std::string, std::uint64_t>{{"node", 64},
                                                  {"nic", 128},
                                                  {"nic-cable", 128},
                                                  {"switch 8", 32 + 32 + 16},
                                                  {"switch-cable", 128 + 128}}));
  const BillTotal total = total_of(bill_of_parts(fabric, kLengths), parse_prices(kList, "p.yaml"));
  EXPECT_DOUBLE_EQ(total.cost, 64 * 1000 + 128 * 10 + 80 * 300 + 128 * 1 + 256 * 5);
  EXPECT_DOUBLE_EQ(total.watts, 64 * 100 + 128 * 2);
}

// One switch of any size has the ports that are used; the first price that fits it holds.
TEST(Prices, ACrossbarHasThePortsThatAreUsed) {
  NetworkSpec network;
  network.kind = NetworkSpec::Kind::kOneSwitch;
  for (const std::uint32_t nodes : {8U, 9U}) {
    const Fabric fabric = cluster(nodes, 1, network);
    EXPECT_EQ(counts(bill_of_parts(fabric, kLengths)).at("switch " + std::to_string(nodes)), 1u);
    const double price = nodes == 8 ? 300 : 900;
    EXPECT_DOUBLE_EQ(total_of(bill_of_parts(fabric, kLengths), parse_prices(kList, "p.yaml")).cost,
                     nodes * (1000 + 10 + 1) + price);
  }
}

// Between leaves and spines, and between these and cores, by their lengths; racks' own links too.
TEST(Prices, CablesHavePricesByTierAndLength) {
  const PriceList list = parse_prices(R"(prices: a test's
currency: EUR
parts:
  - {is: node, cost: 0}
  - {is: nic, cost: 0}
  - {is: switch, cost: 0}
  - {is: nic-cable, up_to: 3 m, cost: 7}
  - {is: nic-cable, cost: 11}
  - {is: switch-cable, tier: spine, cost: 100}
  - {is: switch-cable, up_to: 2 m, cost: 3}
  - {is: switch-cable, cost: 20}
)",
                                      "p.yaml");
  NetworkSpec network;
  network.kind = NetworkSpec::Kind::kFatTree;
  network.ports = 8;
  const auto cost = [&](const NetworkSpec& of, double nic_m) {
    const CableLengths lengths{nic_m, kLengths.of_switches};
    return total_of(bill_of_parts(cluster(64, 2, of), lengths), list).cost;
  };
  EXPECT_DOUBLE_EQ(cost(network, 3), 128 * 7 + 128 * 20 + 128 * 100);
  EXPECT_DOUBLE_EQ(cost(network, 3.5), 128 * 11 + 128 * 20 + 128 * 100);
  network.kind = NetworkSpec::Kind::kLeafSpine;
  network.ports = 64;
  network.leaf_down = 16;  // 8 leaves
  network.leaf_up = 16;
  network.inside = NetworkSpec::Inside::kClique;
  network.rack_leaves = 4;  // 2 racks of 6 pairs
  EXPECT_DOUBLE_EQ(cost(network, 3), 128 * 7 + 8 * 16 * 20 + 2 * 6 * 3);
}

TEST(Prices, SparesAreMoreOfTheSame) {
  NetworkSpec network;
  network.kind = NetworkSpec::Kind::kFatTree;
  network.ports = 8;
  std::vector<BillLine> bill = bill_of_parts(cluster(64, 2, network), kLengths);
  add_spares(bill, 3, 5);
  EXPECT_EQ(counts(bill).at("nic"), 131U);
  EXPECT_EQ(counts(bill).at("nic-cable"), 128U);
  EXPECT_EQ(counts(bill).at("switch-cable"), 256U + 5);
}

TEST(Prices, SparesOfSeveralPartsAreRefused) {
  std::vector<BillLine> bill{{Purchase::kNic, "connectx-7", 0, 8},
                             {Purchase::kNic, "bluefield-3", 0, 1}};
  add_spares(bill, 0, 0);
  EXPECT_THROW(add_spares(bill, 1, 0), InputError);
}

TEST(Prices, WithoutAPriceItIsRefused) {
  const std::vector<BillLine> bill{{Purchase::kNode, "b200-sxm", 0, 3}};
  try {
    (void)total_of(bill, parse_prices(kList, "p.yaml"));
    FAIL();
  } catch (const InputError& e) {
    EXPECT_STREQ(e.what(), "p.yaml: no price of a node (part b200-sxm), of which there are 3");
  }
}

TEST(Prices, DamagedListsAreReadOrRefused) {
  const std::string text = kList;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    auto dice = random_stream(seed, "damage");
    std::string damaged = text;
    for (int i = 0; i < 3; ++i) {
      damaged[uniform_below(dice, damaged.size())] = "{}[]:-,'\" \n0e"[uniform_below(dice, 13)];
    }
    try {
      EXPECT_LE(parse_prices(damaged, "p.yaml").prices.size(), 16u);
    } catch (const InputError&) {
    }
  }
}

}  // namespace
}  // namespace weft::test::input_prices
