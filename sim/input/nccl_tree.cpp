#include "sim/input/nccl_tree.hpp"

#include <cerrno>
#include <cstdlib>

#include "sim/input/nccl_root.hpp"
#include "sim/input/nccl_xml.hpp"
#include "sim/io/file.hpp"

namespace weft {
namespace {

/// Recursion is bounded: XmlText refuses more than 64 levels.
NcclElement element_of(const XmlText& xml, pugi::xml_node node) {
  NcclElement element;
  element.tag = node.name();
  element.place = xml.place(node);
  for (const pugi::xml_attribute attribute : node.attributes()) {
    element.attributes.emplace_back(attribute.name(), attribute.value());
  }
  for (const pugi::xml_node child : node.children()) {
    if (child.type() == pugi::node_element) element.children.push_back(element_of(xml, child));
  }
  return element;
}

}  // namespace

const std::string* NcclElement::find(std::string_view attribute) const {
  for (const auto& [name, value] : attributes) {
    if (name == attribute) return &value;
  }
  return nullptr;
}

const std::string& NcclElement::text(std::string_view attribute) const {
  static const std::string kNone;
  const std::string* const value = find(attribute);
  return value != nullptr ? *value : kNone;
}

std::optional<std::int64_t> NcclElement::integer(std::string_view attribute) const {
  const std::string& written = text(attribute);
  if (written.empty()) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const std::int64_t value = std::strtoll(written.c_str(), &end, 0);
  if (errno != 0 || *end != '\0') {
    fail("<" + tag + ">: " + std::string(attribute) + "='" + written + "' is not a whole number");
  }
  return value;
}

void NcclElement::set(std::string_view attribute, std::string value) {
  for (auto& [name, old] : attributes) {
    if (name == attribute) {
      old = std::move(value);
      return;
    }
  }
  attributes.emplace_back(attribute, std::move(value));
}

const NcclElement* NcclElement::child(std::string_view child_tag) const {
  for (const NcclElement& element : children) {
    if (element.tag == child_tag) return &element;
  }
  return nullptr;
}

void NcclElement::fail(const std::string& why) const { throw InputError(place, why); }

NcclTree read_nccl_tree(const std::string& file) {
  return parse_nccl_tree(read_text_file(file, kMaxXmlBytes), file);
}

NcclTree parse_nccl_tree(const std::string& text, const std::string& file) {
  const XmlText xml(text, file, kMaxXmlBytes);
  const pugi::xml_node system = require_nccl_system(xml);
  if (XmlText::text(system, "version") == "2") {
    xml.fail(system,
             "topology version 2 (RCCL, AMD GPUs): what NCCL decides is known for version 1 only");
  }
  return {file, element_of(xml, system)};
}

}  // namespace weft
