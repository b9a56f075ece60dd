#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/params.hpp"
#include "sim/io/embedded_file.hpp"
#include "sim/io/keys.hpp"
#include "sim/io/yaml.hpp"

namespace weft {

/// The part files, as built into the program.
std::vector<EmbeddedFile> embedded_parts();

/// A product: values for the parameters of one kind of device, each with origin and source.
struct Part {
  std::string name;  ///< "h100-sxm"
  std::string kind;  ///< "gpu": the scope of its parameters
  std::string about;
  ParamValues values;  ///< by parameter name ("pcie_gen")
};

/// Reads one part: keys part, kind, about, values {name: {value, origin, source}}.
/// Throws InputError with the place: unknown parameter, missing origin or source, wrong unit.
Part read_part(const Yaml& yaml, const ParamCatalog& catalog);

/// Every map of a part file with its keys, as read_part takes them.
std::vector<FormatSection> part_format();

/// The parts that come with weft.
class PartLibrary {
 public:
  explicit PartLibrary(const ParamCatalog& catalog);
  const std::map<std::string, Part, std::less<>>& parts() const { return parts_; }
  /// nullptr for "": a device of no known part has the declared defaults.
  /// Throws InputError at `place` if there is no such part or it is of another kind.
  const ParamValues* values(std::string_view part, std::string_view kind, const Place& place) const;

 private:
  std::map<std::string, Part, std::less<>> parts_;
};

}  // namespace weft
