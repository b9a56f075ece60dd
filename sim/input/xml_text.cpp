#include "sim/input/xml_text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace weft {

XmlText::XmlText(const std::string& text, std::string file, std::int64_t max_bytes)
    : file_{std::move(file)} {
  if (std::cmp_greater(text.size(), max_bytes)) {
    throw InputError({file_}, "larger than " + std::to_string(max_bytes >> 20) +
                                  " MiB, the most that is read of an XML file");
  }
  line_starts_.push_back(0);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') line_starts_.push_back(i + 1);
  }
  // The encoding is fixed, so that pugixml does not convert and its offsets are the text's.
  const pugi::xml_parse_result result = document_.load_buffer(
      text.data(), text.size(), pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
  if (result.status == pugi::status_no_document_element) {
    throw InputError({file_}, "is empty: there is no XML element in it");
  }
  if (!result) {
    const auto offset = static_cast<std::size_t>(std::max<std::ptrdiff_t>(result.offset, 0));
    const bool cut_off = text.find_first_not_of(" \t\r\n", offset + 1) == std::string::npos;
    throw InputError(place_of(offset), std::string("not valid XML: ") + result.description() +
                                           (cut_off ? "; the file seems cut off here" : ""));
  }
  check_bounds();
}

Place XmlText::place_of(std::size_t offset) const {
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const std::size_t start = *(next - 1);
  return {file_, static_cast<int>(next - line_starts_.begin()),
          static_cast<int>(offset - start) + 1};
}

Place XmlText::place(pugi::xml_node element) const {
  const std::ptrdiff_t offset = element.offset_debug();  // of the name, after the '<'
  return offset > 0 ? place_of(static_cast<std::size_t>(offset) - 1) : Place{file_};
}

void XmlText::fail(pugi::xml_node element, const std::string& why) const {
  throw InputError(place(element), why);
}

std::string XmlText::text(pugi::xml_node element, const char* attribute) {
  return element.attribute(attribute).value();
}

std::optional<std::int64_t> XmlText::integer(pugi::xml_node element, const char* attribute) const {
  const char* const written = element.attribute(attribute).value();
  if (*written == '\0') return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const std::int64_t value = std::strtoll(written, &end, 0);
  if (errno != 0 || *end != '\0') {
    fail(element, std::string("<") + element.name() + ">: " + attribute + "='" + written +
                      "' is not a whole number");
  }
  return value;
}

/// Walks without recursion: the depth is the user's.
void XmlText::check_bounds() const {
  constexpr int kMostLevels = 64;
  constexpr int kMostElements = 65'536;
  int elements = 0;
  int depth = 1;
  pugi::xml_node node = document_.first_child();
  while (node) {
    if (node.type() == pugi::node_doctype) {
      throw InputError({file_}, "holds a document type definition (<!DOCTYPE>), which is refused");
    }
    if (++elements > kMostElements) {
      fail(node, "more than " + std::to_string(kMostElements) + " elements");
    }
    if (depth > kMostLevels) {
      fail(node, "nested deeper than " + std::to_string(kMostLevels) + " levels");
    }
    if (node.first_child()) {
      node = node.first_child();
      ++depth;
      continue;
    }
    while (node && !node.next_sibling()) {
      node = node.parent();
      --depth;
      if (node == document_) return;
    }
    node = node.next_sibling();
  }
}

}  // namespace weft
