#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace weft {

/// A YAML node that remembers where it stands. Scalars stay the text that was written; whoever
/// needs a number asks for it with its unit; a missing value, `null` and `~` are the empty text.
/// Repeated keys, anchors, aliases, tags, control characters, text that is not UTF-8 and more than
/// one document are refused; size, depth, node count and memory are bounded.
class Yaml {
 public:
  using Entry = std::pair<std::string, Yaml>;

  /// Throws InputError with file, line and column.
  static Yaml load(const std::string& file);
  static Yaml parse(const std::string& text, const std::string& file);

  /// The key's position for a map's values, else the node's own.
  const Place& place() const { return place_; }
  /// "node.devices.gpu0.upstream"; "" at the root.
  const std::string& path() const { return path_; }

  /// A copy of which each value's text is what `text` makes of it; keys and places stay. An
  /// InputError of `text` is thrown on at that value's place.
  Yaml rewritten(const std::function<std::string(const std::string&)>& text) const;

  /// FNV-1a of its keys and values in their order: of comments, blanks and quotes it says nothing.
  std::uint64_t digest() const;

  bool is_scalar() const { return kind_ == Kind::kScalar; }
  bool is_list() const { return kind_ == Kind::kList; }
  bool is_map() const { return kind_ == Kind::kMap; }

  /// Throws InputError "file:line:column: path: why".
  [[noreturn]] void fail(const std::string& why) const;

  /// Each of these fails at this node if it is of another kind.
  const std::string& text() const;
  double quantity(Unit unit) const;
  std::int64_t integer(std::int64_t min, std::int64_t max) const;
  Bytes size() const;
  const std::vector<Yaml>& items() const;
  const std::vector<Entry>& entries() const;

  /// Unknown key: fails at that key and names those allowed.
  void allow_keys(std::span<const std::string_view> known) const;
  void allow_keys(std::initializer_list<std::string_view> known) const;
  /// nullptr if absent.
  const Yaml* find(std::string_view key) const;
  /// Missing: fails at this node.
  const Yaml& require(std::string_view key) const;

 private:
  friend class YamlBuilder;
  enum class Kind { kScalar, kList, kMap };

  Kind kind_{Kind::kScalar};
  Place place_;
  std::string path_;
  std::string text_;
  std::vector<Yaml> items_;
  std::vector<Entry> entries_;
};

}  // namespace weft
