#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// Protobuf's wire format by hand: field numbers are those of Chakra's schema.
struct WireMessage {
  std::string bytes;

  void varint(std::uint64_t value) {
    for (; value >= 0x80U; value >>= 7U) bytes += static_cast<char>((value & 0x7fU) | 0x80U);
    bytes += static_cast<char>(value);
  }
  WireMessage& number(unsigned field, std::uint64_t value) {
    varint(field << 3U);
    varint(value);
    return *this;
  }
  WireMessage& text(unsigned field, const std::string& value) {
    varint(field << 3U | 2U);
    varint(value.size());
    bytes += value;
    return *this;
  }
};

/// One node as Chakra's tools write it.
class MadeNode {
 public:
  MadeNode(std::uint64_t id, unsigned type) {
    node_.number(1, id).text(2, "node " + std::to_string(id)).number(3, type);
  }
  MadeNode& after(const std::vector<std::uint64_t>& ids, bool data = true) {
    WireMessage packed;
    for (const std::uint64_t id : ids) packed.varint(id);
    node_.text(data ? 5 : 4, packed.bytes);
    return *this;
  }
  MadeNode& begins(std::uint64_t micros) { return node_.number(6, micros), *this; }
  MadeNode& takes(std::uint64_t micros) { return node_.number(7, micros), *this; }
  /// An attribute: int64_val by default.
  MadeNode& with(const std::string& name, std::uint64_t value, unsigned field = 9) {
    return attribute(WireMessage{}.text(1, name).number(field, value));
  }
  MadeNode& named(const std::string& name, const std::string& value) {
    return attribute(WireMessage{}.text(1, name).text(29, value));
  }
  MadeNode& involves(const std::string& dimensions) {  // bytes of a packed list of bools
    return attribute(
        WireMessage{}.text(1, "involved_dim").text(28, WireMessage{}.text(1, dimensions).bytes));
  }
  const std::string& bytes() const { return node_.bytes; }

 private:
  MadeNode& attribute(const WireMessage& message) { return node_.text(10, message.bytes), *this; }
  WireMessage node_;
};

// NodeType.
inline constexpr unsigned kMetadataNode = 1;
inline constexpr unsigned kCompNode = 4;
inline constexpr unsigned kSendNode = 5;
inline constexpr unsigned kReceiveNode = 6;
inline constexpr unsigned kCollectiveNode = 7;
// CollectiveCommType.
inline constexpr unsigned kAllReduceType = 0;
inline constexpr unsigned kAllGatherType = 2;

/// The file of one rank.
inline std::string made_trace(const std::vector<MadeNode>& nodes) {
  WireMessage out;
  const std::string head = WireMessage{}.text(1, "0.0.4").bytes;
  out.varint(head.size());
  out.bytes += head;
  for (const MadeNode& node : nodes) {
    out.varint(node.bytes().size());
    out.bytes += node.bytes();
  }
  return out.bytes;
}

}  // namespace weft
