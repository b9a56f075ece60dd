#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): its own
class App;
}

namespace weft {

/// One subcommand: what it takes and what it does. What options are bound to must outlive parse().
/// CLI11 stands behind it and is compiled once, in command_line.cpp.
class Command {
 public:
  explicit Command(CLI::App& app) : app_{&app} {}

  /// A required argument without a name.
  Command& argument(const std::string& name, std::string& value, const std::string& help);
  /// `--name VALUE`; what `value` holds is the default and is shown.
  Command& option(const std::string& name, std::string& value, const std::string& help);
  /// The same, one of `choices`.
  Command& option(const std::string& name, std::string& value, const std::string& help,
                  std::initializer_list<std::string> choices);
  /// The same, a whole number up to `most`.
  Command& option(const std::string& name, unsigned& value, const std::string& help, unsigned most);
  /// May be given several times.
  Command& option(const std::string& name, std::vector<std::string>& values,
                  const std::string& help);
  Command& flag(const std::string& name, bool& value, const std::string& help);
  /// The last line of the command's help.
  Command& example(const std::string& text);
  /// What to do once the arguments are known; throws InputError or ExpectationMissed.
  Command& action(std::function<void()> work);

 private:
  CLI::App* app_;
};

/// The program's arguments.
class CommandLine {
 public:
  CommandLine();
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command add(const std::string& name, const std::string& description);
  /// Parses and runs the command that was asked for; --help and --version print. Throws InputError
  /// for arguments that are wrong, and whatever the command throws.
  void parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace weft
