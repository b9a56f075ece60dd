#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "models/registry/registry.hpp"
#include "sim/io/json.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"

namespace weft {
namespace {

std::string range_text(const ParamSpec& spec) {
  if (spec.unit == Unit::kChoice) return std::string(spec.choices);
  if (spec.unit == Unit::kFlags) return "none or any of " + std::string(spec.choices);
  return format_quantity(spec.min, spec.unit) + " to " + format_quantity(spec.max, spec.unit);
}

void list_text(const ParamCatalog& catalog) {
  for (const ParamSpec& spec : catalog.specs()) {
    std::cout << fmt::format("{} = {}  [{}]\n    {}\n    {}: {}\n", spec.key,
                             ParamCatalog::format(spec, spec.fallback), range_text(spec),
                             spec.meaning, origin_name(spec.origin), spec.source);
  }
}

void list_json(const ParamCatalog& catalog) {
  Json params = Json::array();
  for (const ParamSpec& spec : catalog.specs()) {
    params.push(Json::object({{"key", spec.key},
                              {"unit", unit_symbol(spec.unit)},
                              {"range", range_text(spec)},
                              {"default", ParamCatalog::format(spec, spec.fallback)},
                              {"origin", origin_name(spec.origin)},
                              {"source", spec.source},
                              {"meaning", spec.meaning}}));
  }
  std::cout << Json::object({{"schema", "weft.params/1"}, {"parameters", params}}).dump();
}

}  // namespace

void add_list_params_command(CommandLine& line) {
  const auto json = std::make_shared<bool>(false);
  line.add("list-params", "Every parameter: key, default, range, meaning, origin, source")
      .flag("--json", *json, "as JSON")
      .example("weft list-params | grep -A3 ^pcie")
      .action([json] {
        const ParamCatalog catalog = make_catalog();
        if (*json) {
          list_json(catalog);
        } else {
          list_text(catalog);
        }
      });
}

}  // namespace weft
