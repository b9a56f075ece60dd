#include "sim/input/nccl_root.hpp"

#include <string>

namespace weft {

pugi::xml_node require_nccl_system(const XmlText& xml) {
  const pugi::xml_node root = xml.document().first_child();
  for (const pugi::xml_node element : xml.document().children()) {
    if (element.type() != pugi::node_element) continue;
    const std::string name = element.name();
    if (name == "graphs") {
      xml.fail(element,
               "this is an NCCL graph file (<graphs>), which is not read yet; write a topology "
               "file with NCCL_TOPO_DUMP_FILE");
    }
    if (name != "system") {
      xml.fail(element, "<" + name + "> stands outside <system>; fragments are not read yet");
    }
    const std::string version = XmlText::text(element, "version");
    if (version == "2") {
      xml.fail(element, "topology version 2 (RCCL) is not read yet; known: version 1 (NCCL)");
    }
    if (version != "1") {
      xml.fail(element, "<system version='" + version + "'> is not known; known: version 1");
    }
    return element;
  }
  xml.fail(root, "no <system> element");
}

}  // namespace weft
