#include <exception>
#include <iostream>
#include <string_view>

#include "sim/base/error.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"

namespace {

constexpr int kExitInput = 2;
constexpr int kExitExpectation = 4;
constexpr int kExitBug = 70;

int report(std::string_view kind, const std::exception& e, int code) {
  std::cerr << kind << ": " << weft::one_line(e.what()) << '\n';
  return code;
}

int run(int argc, char** argv) {
  weft::CommandLine line;
  weft::add_run_command(line);
  weft::add_sweep_command(line);
  weft::add_diff_command(line);
  weft::add_show_command(line);
  weft::add_check_command(line);
  weft::add_nccl_command(line);
  weft::add_perftest_command(line);
  weft::add_list_params_command(line);
  line.parse(argc, argv);
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
