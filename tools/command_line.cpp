#include "tools/command_line.hpp"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>

#include "sim/base/error.hpp"
#include "sim/base/version.hpp"
#include "tools/output_files.hpp"

namespace weft {
namespace {

using Kind = ArgumentInfo::Kind;

constexpr const char* kHidden = "";  // CLI11's name of the group that --help leaves out

std::string usage_error(const CLI::App& app, const CLI::ParseError& e) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_group() != kHidden) commands.push_back(command->get_name());
  }
  const std::vector<std::string> left = app.remaining();
  if (app.get_subcommands().empty()) {
    const std::string what =
        left.empty() ? "no command given" : "no command '" + left.front() + "'";
    return what + "; known: " + known_names(commands, commands.size()) + " (see weft --help)";
  }
  return std::string(e.what()) + " (see weft --help)";
}

/// "weft 0.1.0 (commit 2f83ba303abc)".
std::string version_text() {
  return "weft " + std::string(weft_version()) + " (commit " + std::string(weft_commit()) + ")";
}

/// The outputs that the command was given, refused by what else it was given; flags and words of a
/// choice name no files.
Outputs given_outputs(const CLI::App& app, const CommandInfo& info) {
  std::vector<GivenFile> outputs;
  std::vector<GivenFile> others;
  for (const ArgumentInfo& argument : info.arguments) {
    if (argument.kind == Kind::kFlag || !argument.choices.empty()) continue;
    std::vector<GivenFile>& to = argument.is_output ? outputs : others;
    for (const std::string& value : app.get_option(argument.name)->results()) {
      to.push_back({argument.name, value});
    }
  }
  check_outputs(outputs, others);
  return Outputs(std::move(outputs));
}

}  // namespace

Command& Command::argument(const std::string& name, std::string& value, const std::string& help) {
  app_->add_option(name, value, help)->required();
  info_->arguments.push_back({Kind::kArgument, name, help, "", {}, false});
  return *this;
}

Command& Command::argument(const std::string& name, std::string& value, const std::string& help,
                           std::initializer_list<std::string> choices) {
  app_->add_option(name, value, help)
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>(choices)));
  info_->arguments.push_back({Kind::kArgument, name, help, "", choices, false});
  return *this;
}

Command& Command::argument(const std::string& name, std::vector<std::string>& values,
                           const std::string& help) {
  app_->add_option(name, values, help)->required();
  info_->arguments.push_back({Kind::kArgument, name, help, "", {}, true});
  return *this;
}

Command& Command::option(const std::string& name, std::string& value, const std::string& help) {
  app_->add_option(name, value, help)->capture_default_str();
  const std::string long_name = name.substr(name.find("--"));
  info_->arguments.push_back({Kind::kOption, long_name, help, value, {}, false});
  return *this;
}

Command& Command::option(const std::string& name, std::string& value, const std::string& help,
                         std::initializer_list<std::string> choices) {
  app_->add_option(name, value, help)
      ->check(CLI::IsMember(std::vector<std::string>(choices)))
      ->capture_default_str();
  info_->arguments.push_back({Kind::kOption, name, help, value, choices, false});
  return *this;
}

Command& Command::option(const std::string& name, unsigned& value, const std::string& help,
                         unsigned most) {
  app_->add_option(name, value, help)->check(CLI::Range(0U, most))->capture_default_str();
  info_->arguments.push_back({Kind::kOption, name, help, std::to_string(value), {}, false});
  return *this;
}

Command& Command::option(const std::string& name, std::vector<std::string>& values,
                         const std::string& help) {
  app_->add_option(name, values, help)->take_all()->allow_extra_args(false);
  info_->arguments.push_back({Kind::kOption, name, help, "", {}, true});
  return *this;
}

Command& Command::output(const std::string& name, std::string& value, const std::string& help) {
  option(name, value, help);
  info_->arguments.back().is_output = true;
  return *this;
}

Command& Command::flag(const std::string& name, bool& value, const std::string& help) {
  app_->add_flag(name, value, help);
  info_->arguments.push_back({Kind::kFlag, name, help, "", {}, false});
  return *this;
}

Command& Command::example(const std::string& text) {
  app_->footer("Example: " + text);
  info_->example = text;
  return *this;
}

Command& Command::action(std::function<void()> work) {
  return action([work = std::move(work)](const Outputs&) { work(); });
}

Command& Command::action(std::function<void(const Outputs&)> work) {
  app_->callback(
      [app = app_, info = info_, work = std::move(work)] { work(given_outputs(*app, *info)); });
  return *this;
}

std::size_t Command::arguments_before(const std::string& option) const {
  const std::vector<CLI::Option*> given = app_->parse_order();
  const auto end = std::find(given.begin(), given.end(), app_->get_option(option));
  return static_cast<std::size_t>(std::count_if(
      given.begin(), end, [](const CLI::Option* each) { return each->get_positional(); }));
}

CommandLine::CommandLine()
    : app_{std::make_unique<CLI::App>(
          "weft predicts how fast data moves between GPUs on different machines, and says why.")} {
  app_->name("weft");
  app_->set_version_flag("--version", version_text());
  app_->require_subcommand(1);
  app_->footer("Start with: weft run scenarios/quickstart.yaml");
}

CommandLine::~CommandLine() = default;

Command CommandLine::add(const std::string& name, const std::string& description) {
  commands_.push_back({name, description, "", {}});
  return {*app_->add_subcommand(name, description), commands_.back()};
}

Command CommandLine::add_hidden(const std::string& name, const std::string& description) {
  hidden_.push_back({name, description, "", {}});
  return {*app_->add_subcommand(name, description)->group(kHidden), hidden_.back()};
}

void CommandLine::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != 0) throw InputError(usage_error(*app_, e));
    app_->exit(e);  // prints what --help and --version ask for
  }
}

}  // namespace weft
