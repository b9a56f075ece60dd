#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/io/keys.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {

/// What a cluster is bought as.
enum class Purchase : std::uint8_t { kNode, kNic, kSwitch, kNicCable, kSwitchCable };
/// "node", "nic", "switch", "nic-cable", "switch-cable".
std::string_view purchase_name(Purchase purchase);

/// A line of a bill of parts.
struct BillLine {
  Purchase is;
  std::string part;        ///< a node's is its first GPU's; cables have none
  std::uint32_t ports{0};  ///< of a switch
  std::uint64_t count{0};
  std::string tier{};  ///< of a cable between switches: that of its lower end; to others of it, too
  double metres{0};    ///< of a cable
};

/// How long cables are, m: those from NICs, and those from a tier's switches to the tier above (or
/// other groups), or to switches beside them.
struct CableLengths {
  double of_nics;
  std::function<double(const std::string& tier, bool is_local)> of_switches;
};

/// What a cluster is made of, counted from its topology: nodes, the NICs in them that are cabled,
/// the network's switches by their ports (a crossbar of any size has as many as are used), cables
/// from NICs and between switches. Where all NICs are on one leaf nothing is bought above it.
/// O(devices of a node + links between switches).
std::vector<BillLine> bill_of_parts(const Fabric& fabric, const CableLengths& lengths);

/// What is bought beside, to lie ready: more of the NICs and the leaves' cables that there are
/// (spare nodes are nodes). Throws InputError where NICs are of several parts. Precondition: there
/// are such lines if any are asked for.
void add_spares(std::vector<BillLine>& bill, std::uint64_t nics, std::uint64_t leaf_cables);

/// What one part costs, as the user says.
struct Price {
  Purchase is;
  std::optional<std::string> part;     ///< absent: any
  std::optional<std::uint32_t> ports;  ///< of a switch; absent: any
  std::optional<std::string> tier;     ///< of a cable between switches; absent: any
  std::optional<double> most_metres;   ///< of a cable; absent: any
  double cost{0};                      ///< in the list's currency
  double watts{0};
};

struct PriceList {
  std::string file;
  std::uint64_t digest{0};  ///< FNV-1a of the text that was read
  std::string name;
  std::string currency;
  std::vector<Price> prices;  ///< the first that fits holds
};

/// Throws InputError with file, line, column and what is allowed.
PriceList read_prices(const std::string& file);
PriceList parse_prices(const std::string& text, const std::string& file);

struct BillTotal {
  double cost;
  double watts;
};
/// Throws InputError: a part that the list has no price of.
BillTotal total_of(const std::vector<BillLine>& bill, const PriceList& prices);

/// Every map of a price list with its keys, as the reader takes them.
std::vector<FormatSection> prices_format();

}  // namespace weft
