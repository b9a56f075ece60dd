#include "sim/input/nccl_root.hpp"

#include <array>
#include <string>
#include <string_view>

namespace weft {
namespace {

/// XML files that people have beside topologies, by their first element.
struct OtherXml {
  std::string_view root;
  std::string_view what;
};
constexpr std::array kOtherXml{
    OtherXml{"graphs", "an NCCL graph file, the rings and trees that NCCL chose"},
    OtherXml{"topology", "an hwloc topology (lstopo)"},
    OtherXml{"nvidia_smi_log", "what `nvidia-smi -q -x` prints"},
    OtherXml{"algo", "an MSCCL algorithm"},
};
constexpr const char* kWriteOne =
    "; NCCL writes a topology file where NCCL_TOPO_DUMP_FILE says, beginning with <system>";

}  // namespace

pugi::xml_node require_nccl_system(const XmlText& xml) {
  const pugi::xml_node root = xml.document().first_child();
  for (const pugi::xml_node element : xml.document().children()) {
    if (element.type() != pugi::node_element) continue;
    const std::string name = element.name();
    for (const OtherXml& other : kOtherXml) {
      if (name != other.root) continue;
      xml.fail(element, "this is " + std::string(other.what) + " (<" + name +
                            ">), not a topology file" + kWriteOne);
    }
    if (name == "cpu" || name == "pci" || name == "gpu" || name == "nic") {
      xml.fail(element, "a fragment: <" + name + "> stands outside of <system>" + kWriteOne);
    }
    if (name != "system") {
      xml.fail(element, "<" + name + "> begins no file that weft reads" + kWriteOne);
    }
    const std::string version = XmlText::text(element, "version");
    if (version != "1" && version != "2") {
      xml.fail(element,
               "<system version='" + version + "'> is not known; known: 1 (NCCL), 2 (RCCL)");
    }
    return element;
  }
  xml.fail(root, "no <system> element");
}

}  // namespace weft
