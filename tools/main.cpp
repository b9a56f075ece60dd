#include <exception>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include "sim/base/error.hpp"
#include "sim/base/version.hpp"
#include "tools/commands.hpp"

namespace {

constexpr int kExitInput = 2;
constexpr int kExitExpectation = 4;
constexpr int kExitBug = 70;

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
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    std::cerr << "error: " << e.what() << " (see weft --help)\n";
    return kExitInput;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const weft::InputError& e) {
    std::cerr << "error: " << e.what() << '\n';
    return kExitInput;
  } catch (const weft::ExpectationMissed& e) {
    std::cerr << "expectation missed: " << e.what() << '\n';
    return kExitExpectation;
  } catch (const std::exception& e) {
    std::cerr << "internal error (please report): " << e.what() << '\n';
    return kExitBug;
  }
}
