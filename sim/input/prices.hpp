#pragma once

#include <cstdint>
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
};

/// What a cluster is made of, counted from its topology: nodes, the NICs in them that are cabled,
/// the network's switches by their ports (a crossbar of any size has as many as are used), cables
/// from NICs and between switches. Where all NICs are on one leaf nothing is bought above it.
std::vector<BillLine> bill_of_parts(const Fabric& fabric);

/// What one part costs, as the user says.
struct Price {
  Purchase is;
  std::optional<std::string> part;     ///< absent: any
  std::optional<std::uint32_t> ports;  ///< of a switch; absent: any
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
