#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "models/collective/settings.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/base/version.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/docs.hpp"

namespace weft {
namespace {

std::vector<std::string> all_keys() {
  std::vector<std::string> keys;
  for (SettingKey& key : setting_keys(make_catalog())) keys.push_back(std::move(key.key));
  return keys;
}

std::string page(const std::string& name, const CommandLine& line) {
  if (name == "man") return man_page(line.commands(), std::string(weft_version()));
  if (name == "bash") return bash_completion(line.commands(), all_keys());
  if (name == "zsh") return zsh_completion(line.commands(), all_keys());
  if (name == "topology") return topology_page();
  if (name == "scenario") return scenario_page();
  if (name == "trace") return trace_page();
  throw InputError("no page '" + name + "'; known: bash, man, scenario, topology, trace, zsh");
}

}  // namespace

void add_docs_command(CommandLine& line) {
  const auto name = std::make_shared<std::string>();
  line.add_hidden("docs", "What is made from the program's own declarations: pages, completions")
      .argument("page", *name, "man, bash, zsh, topology, scenario or trace")
      .example("weft docs man | man -l -")
      .action([&line, name] { std::cout << page(*name, line); });
}

}  // namespace weft
