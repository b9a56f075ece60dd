#include "replay/chakra/reader.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "replay/chakra/et.pb.h"
#include "sim/base/error.hpp"
#include "sim/io/file.hpp"

namespace weft {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
constexpr std::uint32_t kMostOfNode = 16U << 20;
constexpr std::size_t kMostNodes = 2'000'000;
constexpr std::int64_t kLargestSize = std::int64_t{1} << 42;

// NodeType and CollectiveCommType of et_def.proto.
constexpr std::array<std::string_view, 8> kTypes{
    "INVALID_NODE", "METADATA_NODE",  "MEM_LOAD_NODE",  "MEM_STORE_NODE",
    "COMP_NODE",    "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE"};
enum Type { kMetadata = 1, kMemLoad, kMemStore, kComp, kSend, kReceive, kCollective };
struct CollectiveRow {
  std::string_view name;
  std::optional<Op> op;
};
constexpr std::array<CollectiveRow, 10> kCollectives{{{"ALL_REDUCE", Op::kAllReduce},
                                                      {"REDUCE", Op::kReduce},
                                                      {"ALL_GATHER", Op::kAllGather},
                                                      {"GATHER", {}},
                                                      {"SCATTER", {}},
                                                      {"BROADCAST", Op::kBroadcast},
                                                      {"ALL_TO_ALL", Op::kAllToAll},
                                                      {"REDUCE_SCATTER", Op::kReduceScatter},
                                                      {"REDUCE_SCATTER_BLOCK", {}},
                                                      {"BARRIER", {}}}};

/// Reads one node, and says what is wrong with it.
class NodeReader {
 public:
  NodeReader(const et::Node& node, const std::string& file) : node_{node}, file_{file} {}

  ChakraNode read() const {
    ChakraNode out;
    out.id = node_.id();
    out.start_us = node_.start_micros();
    out.before.assign(node_.data_dependencies().begin(), node_.data_dependencies().end());
    out.before.insert(out.before.end(), node_.control_dependencies().begin(),
                      node_.control_dependencies().end());
    std::sort(out.before.begin(), out.before.end());
    out.before.erase(std::unique(out.before.begin(), out.before.end()), out.before.end());
    out.before.shrink_to_fit();
    out.on_host = flag("is_cpu_op");
    switch (node_.type()) {
      case kMetadata:
        break;
      case kMemLoad:
      case kMemStore:
      case kComp:
        out.time = duration();
        if (out.time > Duration{}) out.kind = ChakraNode::Kind::kCompute;
        break;
      case kSend:
        out.kind = ChakraNode::Kind::kSend;
        out.peer = rank("comm_dst");
        break;
      case kReceive:
        out.kind = ChakraNode::Kind::kReceive;
        out.peer = rank("comm_src");
        break;
      case kCollective:
        out.kind = ChakraNode::Kind::kCollective;
        out.op = operation();
        out.group = group();
        break;
      default:
        fail(fmt::format("type {} is not taken; known: {}", node_.type(),
                         known_names({kTypes.begin() + 1, kTypes.end()})));
    }
    if (out.kind >= ChakraNode::Kind::kCollective) out.bytes = size();
    if (out.kind >= ChakraNode::Kind::kSend) out.tag = number("comm_tag").value_or(0);
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw InputError(fmt::format("{}: node {}: {}", file_, node_.id(), why));
  }
  const et::Attribute* find(std::string_view name) const {
    for (const et::Attribute& attribute : node_.attributes()) {
      if (attribute.name() == name) return &attribute;
    }
    return nullptr;
  }
  std::optional<std::int64_t> number(std::string_view name) const {
    const et::Attribute* const at = find(name);
    if (at == nullptr) return std::nullopt;
    const auto of_unsigned = [&](std::uint64_t value) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        fail(fmt::format("{} is out of range", name));
      }
      return static_cast<std::int64_t>(value);
    };
    switch (at->value_case()) {
      case et::Attribute::kInt32Value:
        return at->int32_value();
      case et::Attribute::kInt64Value:
        return at->int64_value();
      case et::Attribute::kUint32Value:
        return at->uint32_value();
      case et::Attribute::kUint64Value:
        return of_unsigned(at->uint64_value());
      case et::Attribute::kSint32Value:
        return at->sint32_value();
      case et::Attribute::kSint64Value:
        return at->sint64_value();
      case et::Attribute::kFixed32Value:
        return at->fixed32_value();
      case et::Attribute::kFixed64Value:
        return of_unsigned(at->fixed64_value());
      case et::Attribute::kSfixed32Value:
        return at->sfixed32_value();
      case et::Attribute::kSfixed64Value:
        return at->sfixed64_value();
      case et::Attribute::kBoolValue:
        return at->bool_value() ? 1 : 0;
      default:
        fail(fmt::format("{} is no whole number", name));
    }
  }
  bool flag(std::string_view name) const { return number(name).value_or(0) != 0; }
  /// A word, as it is named by messages.
  std::string group() const {
    const et::Attribute* const at = find("pg_name");
    if (at == nullptr) return "";
    if (at->value_case() != et::Attribute::kStringValue) {
      return std::to_string(number("pg_name").value());
    }
    const std::string& name = at->string_value();
    const bool is_plain = name.size() <= 256 && std::all_of(name.begin(), name.end(), [](char c) {
                            return c > ' ' && c <= '~';
                          });
    if (!is_plain) fail("pg_name is no plain word of at most 256 characters");
    return name;
  }
  std::int64_t need(std::string_view name, std::int64_t least, std::int64_t most) const {
    const std::optional<std::int64_t> value = number(name);
    if (!value) fail(fmt::format("has no {}", name));
    if (*value < least || *value > most) {
      fail(fmt::format("{} is {}; allowed: {} to {}", name, *value, least, most));
    }
    return *value;
  }

  Duration duration() const {
    constexpr std::uint64_t kMostMicros = 10'000'000'000;  // 10,000 s
    const std::uint64_t micros = node_.duration_micros();
    if (micros > kMostMicros) fail("duration_micros is above 10,000 s");
    if (micros == 0 && find("num_ops") != nullptr && number("num_ops").value() > 0) {
      fail(
          "computes (num_ops) without duration_micros: weft takes times as given, and has no "
          "model of computing");
    }
    return Duration::us(static_cast<std::int64_t>(micros));
  }
  std::uint32_t rank(std::string_view name) const {
    return static_cast<std::uint32_t>(need(name, 0, (1 << 20) - 1));
  }
  Bytes size() const { return Bytes{need("comm_size", 1, kLargestSize)}; }
  Op operation() const {
    const std::int64_t type = need("comm_type", 0, std::ssize(kCollectives) - 1);
    const CollectiveRow& row = kCollectives[static_cast<std::size_t>(type)];
    if (!row.op) fail(fmt::format("{} is not modelled", row.name));
    const et::Attribute* const dimensions = find("involved_dim");
    if (dimensions != nullptr) {
      const auto& all = dimensions->bools().values();
      if (std::find(all.begin(), all.end(), false) != all.end()) {
        fail(
            "involved_dim leaves out dimensions of ASTRA-sim's topology, which weft does not "
            "have; name the ranks by pg_name");
      }
    }
    return *row.op;
  }

  const et::Node& node_;
  const std::string& file_;
};

/// The messages of a file, each behind its length (a varint, as protobuf's delimited messages).
class Messages {
 public:
  Messages(std::string_view bytes, const std::string& file) : bytes_{bytes}, file_{file} {}

  /// False at the end.
  template <class Message>
  bool next(Message& message) {
    if (at_ == bytes_.size()) return false;
    const std::size_t begin = at_;
    const std::uint64_t length = varint();
    if (length > kMostOfNode || length > bytes_.size() - at_) fail(begin);
    if (!message.ParseFromArray(bytes_.data() + at_, static_cast<int>(length))) fail(begin);
    at_ += length;
    return true;
  }

 private:
  std::uint64_t varint() {
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 35 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80U) return value;
    }
    fail(begin);
  }
  [[noreturn]] void fail(std::size_t at) const {
    throw InputError(fmt::format(
        "{}: at byte {}: no message of a Chakra execution trace (of at most 16 MiB), or cut off",
        file_, at));
  }

  std::string_view bytes_;
  const std::string& file_;
  std::size_t at_{0};
};

void check(const ChakraTrace& trace) {
  std::vector<std::uint64_t> ids;
  for (const ChakraNode& node : trace.nodes) ids.push_back(node.id);
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end()) {
    throw InputError(fmt::format("{}: node {} is there twice", trace.file, *twice));
  }
  for (const ChakraNode& node : trace.nodes) {
    for (const std::uint64_t before : node.before) {
      if (std::binary_search(ids.begin(), ids.end(), before)) continue;
      throw InputError(fmt::format("{}: node {} depends on node {}, which is not there", trace.file,
                                   node.id, before));
    }
  }
}

}  // namespace

ChakraTrace parse_chakra(std::string_view bytes, const std::string& file) {
  Messages messages(bytes, file);
  ChakraTrace out{file, {}, {}};
  et::Head head;
  if (!messages.next(head)) throw InputError(file + ": is empty");
  out.version = head.version();
  for (et::Node node; messages.next(node);) {
    if (out.nodes.size() == kMostNodes) throw InputError(file + ": more than 2,000,000 nodes");
    out.nodes.push_back(NodeReader(node, file).read());
  }
  check(out);
  return out;
}

ChakraTrace read_chakra(const std::string& file) {
  return parse_chakra(read_text_file(file, kMostBytes), file);
}

}  // namespace weft
