#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): its own
class App;
}

namespace weft {

class Outputs;

/// One argument or option of a subcommand, as it was declared.
struct ArgumentInfo {
  enum class Kind : std::uint8_t { kArgument, kOption, kFlag };
  Kind kind{Kind::kOption};
  std::string name;  ///< "topology", "--json"
  std::string help;
  std::string fallback;              ///< an option's default; "" if it has none
  std::vector<std::string> choices;  ///< the words it takes; empty: any text
  bool repeatable{false};
  bool is_output{false};  ///< names a file that the command writes
};

/// One subcommand, as it was declared: what man page and completions are made from.
struct CommandInfo {
  std::string name;
  std::string description;
  std::string example;
  std::vector<ArgumentInfo> arguments;
};

/// One subcommand: what it takes and what it does. What options are bound to must outlive parse().
/// CLI11 stands behind it and is compiled once, in command_line.cpp.
class Command {
 public:
  Command(CLI::App& app, CommandInfo& info) : app_{&app}, info_{&info} {}

  /// A required argument without a name.
  Command& argument(const std::string& name, std::string& value, const std::string& help);
  /// The same, one of `choices`.
  Command& argument(const std::string& name, std::string& value, const std::string& help,
                    std::initializer_list<std::string> choices);
  /// At least one, the last of the arguments without a name.
  Command& argument(const std::string& name, std::vector<std::string>& values,
                    const std::string& help);
  /// `--name VALUE`, or "-n,--name" with a letter; what `value` holds is the default and is shown.
  Command& option(const std::string& name, std::string& value, const std::string& help);
  /// The same, one of `choices`.
  Command& option(const std::string& name, std::string& value, const std::string& help,
                  std::initializer_list<std::string> choices);
  /// The same, a whole number up to `most`.
  Command& option(const std::string& name, unsigned& value, const std::string& help, unsigned most);
  /// May be given several times.
  Command& option(const std::string& name, std::vector<std::string>& values,
                  const std::string& help);
  /// `--name FILE`: a file that the command writes, "-" standard output. Before it does anything an
  /// output is refused that another one goes to, or that another of its arguments names.
  Command& output(const std::string& name, std::string& value, const std::string& help);
  Command& flag(const std::string& name, bool& value, const std::string& help);
  /// The last line of the command's help.
  Command& example(const std::string& text);
  /// What to do once the arguments are known; throws InputError or ExpectationMissed.
  Command& action(std::function<void()> work);
  /// The same of a command that reads files which its arguments do not name: it holds them against
  /// its outputs.
  Command& action(std::function<void(const Outputs&)> work);
  /// Of what was given: how many arguments without a name stand before the first of an option.
  std::size_t arguments_before(const std::string& option) const;

 private:
  CLI::App* app_;
  CommandInfo* info_;
};

/// The program's arguments.
class CommandLine {
 public:
  CommandLine();
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command add(const std::string& name, const std::string& description);
  /// One that --help does not show.
  Command add_hidden(const std::string& name, const std::string& description);
  /// What was added so far, less what is hidden.
  const std::deque<CommandInfo>& commands() const { return commands_; }
  /// Parses and runs the command that was asked for; --help and --version print. Throws InputError
  /// for arguments that are wrong, and whatever the command throws.
  void parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
  std::deque<CommandInfo> commands_;  ///< where Command's handles point
  std::deque<CommandInfo> hidden_;
};

}  // namespace weft
