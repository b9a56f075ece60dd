#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pugixml.hpp>

#include "sim/base/error.hpp"

namespace weft {

/// A parsed XML text that knows where its elements stand, for this layer's own readers. Bounded: an
/// internal document type definition (whose entities could blow up), more than 64 levels, 65,536
/// elements or a million attributes are refused, the last two before anything is built of them.
class XmlText {
 public:
  /// Throws InputError with file, line and column. `max_bytes` bounds the text. What is no XML but
  /// NCCL writes it, an attribute ` =""` without a name, is passed over.
  XmlText(const std::string& text, std::string file, std::int64_t max_bytes);

  const std::string& file() const { return file_; }
  pugi::xml_node document() const { return document_.root(); }
  /// Where an element's '<' stands.
  Place place(pugi::xml_node element) const;
  [[noreturn]] void fail(pugi::xml_node element, const std::string& why) const;

  /// An attribute's text; "" if it is absent.
  static std::string text(pugi::xml_node element, const char* attribute);
  /// An attribute as a whole number, decimal or "0x..." as NCCL reads it; nullopt if it is absent
  /// or empty. Fails at the element if it is anything else.
  std::optional<std::int64_t> integer(pugi::xml_node element, const char* attribute) const;
  /// The same for numbers of PCI (class, vendor, device), which people also write as "030200" and
  /// "10de": a leading zero or a letter makes them hexadecimal.
  std::optional<std::int64_t> pci_number(pugi::xml_node element, const char* attribute) const;

 private:
  Place place_of(std::size_t offset) const;
  [[noreturn]] void refuse_malformed(const std::string& text,
                                     const pugi::xml_parse_result& result) const;
  void check_text(const std::string& text) const;
  void check_bounds() const;
  std::int64_t whole_number(pugi::xml_node element, const char* attribute, const char* written,
                            int base) const;

  std::string file_;
  std::vector<std::size_t> line_starts_;
  pugi::xml_document document_;
};

}  // namespace weft
