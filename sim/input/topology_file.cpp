#include "sim/input/topology_file.hpp"

#include "sim/base/random.hpp"
#include "sim/input/nccl_xml.hpp"
#include "sim/input/topology_yaml.hpp"
#include "sim/io/file.hpp"
#include "sim/io/text_kind.hpp"

namespace weft {

TopologySpec read_topology(const std::string& file, const ParamCatalog& catalog) {
  return parse_topology(read_text_file(file), file, catalog);
}

TopologySpec parse_topology(const std::string& text, const std::string& file,
                            const ParamCatalog& catalog) {
  refuse_other_kind(text, file, TextKind::kTopology);
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const std::size_t start = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  const std::size_t first = text.find_first_not_of(" \t\r\n", start);
  const bool is_xml = first != std::string::npos && text[first] == '<';
  TopologySpec spec =
      is_xml ? parse_nccl_xml(text, file, catalog) : parse_topology_yaml(text, file, catalog);
  spec.digest = fnv1a(text);
  if (is_xml) spec.content_digest = spec.digest;
  return spec;
}

}  // namespace weft
