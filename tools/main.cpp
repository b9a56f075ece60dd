#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/version.hpp"
#include "tools/commands.hpp"

namespace {

constexpr int kExitInput = 2;
constexpr int kExitExpectation = 4;
constexpr int kExitBug = 70;

/// On one line, whatever a file or an argument holds: line ends and terminal codes are escaped.
std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      out += c == '\n' ? "\\n" : fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

int report(std::string_view kind, const std::exception& e, int code) {
  std::cerr << kind << ": " << one_line(e.what()) << '\n';
  return code;
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& e) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  const std::vector<std::string> left = app.remaining();
  if (app.get_subcommands().empty()) {
    const std::string what =
        left.empty() ? "no command given" : "no command '" + left.front() + "'";
    return what + "; known: " + weft::known_names(commands) + " (see weft --help)";
  }
  return std::string(e.what()) + " (see weft --help)";
}

int run(int argc, char** argv) {
  CLI::App app{
      "weft predicts how fast data moves between GPUs on different machines, and says why."};
  app.name("weft");
  app.set_version_flag("--version", "weft " + std::string(weft::weft_version()));
  app.require_subcommand(1);
  app.footer("Start with: weft run scenarios/quickstart.yaml");
  weft::add_run_command(app);
  weft::add_show_command(app);
  weft::add_check_command(app);
  weft::add_list_params_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != 0) throw weft::InputError(usage_error(app, e));
    app.exit(e);  // prints what --help and --version ask for
  }
  // A full disk shows when the last of it is written.
  if (!std::cout.flush()) throw weft::InputError("standard output: cannot be written");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const weft::InputError& e) {
    return report("error", e, kExitInput);
  } catch (const weft::ExpectationMissed& e) {
    return report("expectation missed", e, kExitExpectation);
  } catch (const std::exception& e) {
    return report("internal error (please report)", e, kExitBug);
  }
}
