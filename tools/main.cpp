#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "tools/command_line.hpp"
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

int run(int argc, char** argv) {
  weft::CommandLine line;
  weft::add_run_command(line);
  weft::add_show_command(line);
  weft::add_check_command(line);
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
