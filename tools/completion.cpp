#include <fmt/ranges.h>

#include "tools/docs.hpp"

namespace weft {
namespace {

using Kind = ArgumentInfo::Kind;

constexpr const char* kMadeFrom = "made from the command line's own declarations";

/// Inside of single quotes, in either shell.
std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// As _arguments and _describe read it: colons and brackets are theirs.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// Takes a key of `weft list-params`.
bool takes_key(const ArgumentInfo& option) { return option.name == "--set"; }

std::string key_words(const std::vector<std::string>& keys) {
  return fmt::format("{}=", fmt::join(keys, "= "));
}

std::string zsh_argument(const ArgumentInfo& argument) {
  if (argument.kind == Kind::kArgument) {
    const std::string words = fmt::format("({})", fmt::join(argument.choices, " "));
    return shell_quoted((argument.repeatable ? "*:" : ":") + zsh_text(argument.name) + ":" +
                        (argument.choices.empty() ? "_files" : words));
  }
  std::string out = argument.repeatable ? "*" : "";
  out += argument.name + "[" + zsh_text(argument.help) + "]";
  if (argument.kind == Kind::kOption) {
    const std::string words = fmt::format("({})", fmt::join(argument.choices, " "));
    out += ":value:" + (takes_key(argument)        ? "{compadd -S '' -- $keys}"
                        : argument.choices.empty() ? "_files"
                                                   : words);
  }
  return shell_quoted(out);
}

}  // namespace

std::string bash_completion(const std::deque<CommandInfo>& commands,
                            const std::vector<std::string>& keys) {
  std::vector<std::string> names;
  std::string values;
  std::string options;
  for (const CommandInfo& command : commands) {
    names.push_back(command.name);
    std::vector<std::string> of_command{"--help"};
    for (const ArgumentInfo& argument : command.arguments) {
      if (argument.kind == Kind::kArgument) {
        // Words stand in the first place only, behind the command's name.
        if (!argument.choices.empty()) {
          values += fmt::format("    '{0} {0}') words=\"{1}\" ;;\n", command.name,
                                fmt::join(argument.choices, " "));
        }
        continue;
      }
      of_command.push_back(argument.name);
      if (argument.kind == Kind::kFlag) continue;
      const std::string words =
          takes_key(argument) ? "$keys" : fmt::format("{}", fmt::join(argument.choices, " "));
      values += fmt::format("    '{} {}') words=\"{}\"; takes_value=yes ;;\n", command.name,
                            argument.name, words);
    }
    options += fmt::format("    {}) words='{}' ;;\n", command.name, fmt::join(of_command, " "));
  }
  return fmt::format(R"(# bash completion for weft, {}.
_weft() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local words='' takes_value=no
  local keys='{}'
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W '{} --help --version' -- "$current")
    return
  fi
  case "${{COMP_WORDS[1]}} $previous" in
{}  esac
  if [ "$takes_value" = no ] && [[ $current == -* ]]; then
    case "${{COMP_WORDS[1]}}" in
{}    esac
  fi
  # Without words: the names of files, by `complete -o default`.
  if [ -n "$words" ]; then mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"); fi
  if [ "${{#COMPREPLY[@]}}" -gt 0 ] && [ "${{COMPREPLY[0]: -1}}" = = ]; then compopt -o nospace; fi
}}
complete -o default -F _weft weft
)",
                     kMadeFrom, key_words(keys), fmt::join(names, " "), values, options);
}

std::string zsh_completion(const std::deque<CommandInfo>& commands,
                           const std::vector<std::string>& keys) {
  std::string names;
  std::string cases;
  for (const CommandInfo& command : commands) {
    names += "    " + shell_quoted(command.name + ":" + zsh_text(command.description)) + "\n";
    cases += fmt::format("    {})\n      _arguments -S '--help[print this command'\\''s help]'",
                         command.name);
    for (const ArgumentInfo& argument : command.arguments) {
      cases += " \\\n        " + zsh_argument(argument);
    }
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef weft
# zsh completion for weft, {}.
_weft() {{
  local -a commands=(
{}  )
  local -a keys=({})
  if (( CURRENT == 2 )); then
    _describe command commands
    _arguments '--help[print help]' '--version[print version and commit]'
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
{}  esac
}}
_weft "$@"
)",
                     kMadeFrom, names, key_words(keys), cases);
}

}  // namespace weft
