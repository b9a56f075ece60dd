#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "models/collective/settings.hpp"
#include "models/registry/registry.hpp"
#include "sim/io/json.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"

namespace weft {
namespace {

void list_text(const std::vector<SettingKey>& keys) {
  for (const SettingKey& key : keys) {
    std::cout << fmt::format("{} = {}  [{}]\n    {}\n    {}: {}\n", key.key, key.fallback,
                             key.range, key.meaning, key.origin, key.source);
    if (!key.also.empty()) std::cout << fmt::format("    also: {}\n", fmt::join(key.also, ", "));
  }
}

void list_json(const std::vector<SettingKey>& keys) {
  Json params = Json::array();
  for (const SettingKey& key : keys) {
    Json also = Json::array();
    for (const std::string& narrower : key.also) also.push(narrower);
    params.push(Json::object({{"key", key.key},
                              {"unit", key.unit},
                              {"range", key.range},
                              {"default", key.fallback},
                              {"origin", key.origin},
                              {"source", key.source},
                              {"meaning", key.meaning},
                              {"also", also}}));
  }
  std::cout << Json::object({{"schema", "weft.params/1"}, {"parameters", params}}).dump();
}

}  // namespace

void add_list_params_command(CommandLine& line) {
  const auto json = std::make_shared<bool>(false);
  line.add(
          "list-params",
          "Every key of --set: default, range, meaning, origin, source; <nic> is a NIC by its name")
      .flag("--json", *json, "as JSON")
      .example("weft list-params | grep -A3 ^pcie")
      .action([json] {
        const std::vector<SettingKey> keys = setting_keys(make_catalog());
        if (*json) {
          list_json(keys);
        } else {
          list_text(keys);
        }
      });
}

}  // namespace weft
