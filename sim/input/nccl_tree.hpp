#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"

namespace weft {

/// One element of an NCCL topology file: <cpu>, <pci>, <gpu>, <nvlink>, <c2c>, <nic>, <net>.
struct NcclElement {
  std::string tag;
  std::vector<std::pair<std::string, std::string>> attributes;  ///< in the file's order
  std::vector<NcclElement> children;
  Place place;

  /// An attribute's text, or nullptr.
  const std::string* find(std::string_view attribute) const;
  /// An attribute's text; "" if it is absent.
  const std::string& text(std::string_view attribute) const;
  /// An attribute as a whole number, decimal or "0x..." as NCCL reads it; nullopt if it is absent
  /// or empty. Throws InputError at the element if it is anything else.
  std::optional<std::int64_t> integer(std::string_view attribute) const;
  /// Sets or adds an attribute.
  void set(std::string_view attribute, std::string value);
  /// The first child with this tag, or nullptr.
  const NcclElement* child(std::string_view child_tag) const;
  [[noreturn]] void fail(const std::string& why) const;
};

/// An NCCL topology file as it is: plain data between its reader, its writer and models/nccl.
struct NcclTree {
  std::string file;
  NcclElement system;  ///< <system version="1">
};

/// Reads an NCCL topology file (version 1). Throws InputError: not valid XML (with line and
/// column), entity definitions, more than 64 levels or 65,536 elements, RCCL's version 2,
/// graph files, fragments outside <system>.
NcclTree read_nccl_tree(const std::string& file);
/// The same from text; `file` is the name that messages use.
NcclTree parse_nccl_tree(const std::string& text, const std::string& file);

}  // namespace weft
