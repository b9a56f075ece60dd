#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/io/keys.hpp"
#include "tools/command_line.hpp"

namespace weft {

/// The manual page weft(1), in roff with the man macros. `version` stands in its footer.
std::string man_page(const std::deque<CommandInfo>& commands, const std::string& version);

/// A completion script for bash, for zsh: subcommands, their options and the words these take,
/// files elsewhere. `keys` are offered after --set.
std::string bash_completion(const std::deque<CommandInfo>& commands,
                            const std::vector<std::string>& keys);
std::string zsh_completion(const std::deque<CommandInfo>& commands,
                           const std::vector<std::string>& keys);

/// A heading and a table of keys in Markdown for each map of a format. `left_out` heads the column
/// of what holds without a key, or of when it is there.
std::string sections_text(const std::vector<FormatSection>& sections, std::string_view left_out);

/// topologies/README.md and scenarios/README.md: every key that the readers take and that results
/// have, in Markdown.
std::string topology_page();
std::string scenario_page();

/// replay/trace/README.md: the file of a verbs trace, every field of every record, in Markdown.
std::string trace_page();

}  // namespace weft
