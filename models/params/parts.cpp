#include "models/params/parts.hpp"

namespace weft {

Part read_part(const Yaml& yaml, const ParamCatalog& catalog) {
  yaml.allow_keys({"part", "kind", "about", "values"});
  Part part{
      yaml.require("part").text(), yaml.require("kind").text(), yaml.require("about").text(), {}};
  for (const auto& [name, value] : yaml.require("values").entries()) {
    value.allow_keys({"value", "origin", "source"});
    try {
      const ParamSpec& spec = catalog.require(part.kind + "." + name);
      part.values[name] = {ParamCatalog::parse(spec, value.require("value").text()),
                           parse_origin(value.require("origin").text()),
                           value.require("source").text()};
    } catch (const InputError& e) {
      if (std::string_view(e.what()).starts_with(value.place().file)) throw;
      value.fail(e.what());
    }
  }
  return part;
}

PartLibrary::PartLibrary(const ParamCatalog& catalog) {
  for (const EmbeddedPart& file : embedded_parts()) {
    Part part = read_part(Yaml::parse(file.text, file.file), catalog);
    parts_.emplace(part.name, std::move(part));
  }
}

const ParamValues* PartLibrary::values(std::string_view part, std::string_view kind,
                                       const Place& place) const {
  if (part.empty()) return nullptr;
  const auto at = parts_.find(part);
  if (at != parts_.end() && at->second.kind == kind) return &at->second.values;
  std::vector<std::string> known;
  for (const auto& [name, candidate] : parts_) {
    if (candidate.kind == kind) known.push_back(name);
  }
  throw InputError(place, "no " + std::string(kind) + " part '" + std::string(part) + "'" +
                              did_you_mean(part, known) + "; known: " + known_names(known, 30));
}

}  // namespace weft
