#include "models/params/parts.hpp"

#include <array>

namespace weft {
namespace {

constexpr std::array kPartKeys{
    KeySpec{"part", "text", kRequired, "its name, which topologies use"},
    KeySpec{"kind", "a kind of device", kRequired, "the scope of its parameters"},
    KeySpec{"about", "text", kRequired, "which product it is"},
    KeySpec{"values", "map", kRequired, "parameters by name (pcie_gen)"}};
constexpr std::array kPartValueKeys{
    KeySpec{"value", "quantity", kRequired, "with its unit"},
    KeySpec{"origin", "text", kRequired, "specification, published, measured, fitted or assumed"},
    KeySpec{"source", "text", kRequired, "what says so"}};

}  // namespace

std::vector<FormatSection> part_format() {
  return {{"", "The file.", {kPartKeys.begin(), kPartKeys.end()}},
          {"values.NAME", "A parameter.", {kPartValueKeys.begin(), kPartValueKeys.end()}}};
}

Part read_part(const Yaml& yaml, const ParamCatalog& catalog) {
  check_keys(yaml, kPartKeys);
  Part part{
      yaml.require("part").text(), yaml.require("kind").text(), yaml.require("about").text(), {}};
  for (const auto& [name, value] : yaml.require("values").entries()) {
    check_keys(value, kPartValueKeys);
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
  for (const EmbeddedFile& file : embedded_parts()) {
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
