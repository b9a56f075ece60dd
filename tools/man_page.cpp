#include <fmt/format.h>

#include "tools/docs.hpp"
#include "tools/exit_codes.hpp"

namespace weft {
namespace {

/// As roff shows it: no escape is read, no line is a request, a hyphen is an ASCII one.
std::string roff(const std::string& text) {
  std::string out = !text.empty() && (text[0] == '.' || text[0] == '\'') ? "\\&" : "";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

std::string synopsis(const CommandInfo& command) {
  std::string out = ".B weft " + roff(command.name) + "\n";
  for (const ArgumentInfo& argument : command.arguments) {
    if (argument.kind != ArgumentInfo::Kind::kArgument) continue;
    out += italic(argument.name) + (argument.repeatable ? "...\n" : "\n");
  }
  return out + "[" + italic("option") + "]...\n";
}

std::string entry(const ArgumentInfo& argument) {
  std::string out = ".TP\n";
  if (argument.kind == ArgumentInfo::Kind::kArgument) {
    out += italic(argument.name);
  } else {
    out += bold(argument.name);
  }
  if (argument.kind == ArgumentInfo::Kind::kOption || !argument.choices.empty()) {
    out += " ";
    for (std::size_t i = 0; i < argument.choices.size(); ++i) {
      out += (i == 0 ? "" : "|") + bold(argument.choices[i]);
    }
    if (argument.choices.empty()) out += italic("value");
  }
  out += "\n" + roff(argument.help) + ".\n";
  if (!argument.fallback.empty()) out += "Default: " + bold(argument.fallback) + ".\n";
  return out;
}

}  // namespace

std::string man_page(const std::deque<CommandInfo>& commands, const std::string& version) {
  std::string out = fmt::format(
      ".\\\" Made from the command line's own declarations (weft docs man).\n"
      ".TH WEFT 1 \"\" \"weft {}\" \"User Commands\"\n.SH NAME\n"
      "weft \\- predicts how fast data moves between GPUs on different machines, and says why\n"
      ".SH SYNOPSIS\n",
      roff(version));
  for (std::size_t i = 0; i < commands.size(); ++i) {
    out += (i == 0 ? "" : ".br\n") + synopsis(commands[i]);
  }
  out +=
      ".br\n.B weft \\-\\-help\n.br\n.B weft \\-\\-version\n.SH DESCRIPTION\n"
      "Simulates PCIe trees, GPU memory, NICs and InfiniBand or RoCE networks, decides what NCCL "
      "would decide on that machine, and names what each microsecond went to.\n"
      "Data go to standard output, talk to standard error.\n"
      "Sizes accept 8, 64K, 1M, 8G (K = 1024); other quantities carry their unit.\n"
      ".SH COMMANDS\n";
  for (const CommandInfo& command : commands) {
    out += ".SS weft " + roff(command.name) + "\n" + roff(command.description) + ".\n";
    for (const ArgumentInfo& argument : command.arguments) out += entry(argument);
    if (!command.example.empty()) {
      out += ".PP\nExample:\n.PP\n.in +4n\n.nf\n" + roff(command.example) + "\n.fi\n.in\n";
    }
  }
  out += ".SH EXIT STATUS\n";
  for (const ExitMeaning& exit : kExitMeanings) {
    out += fmt::format(".TP\n.B {}\n{}.\n", static_cast<int>(exit.code),
                       roff(std::string(exit.meaning)));
  }
  return out + ".SH SEE ALSO\n" + bold("weft list-params") +
         " lists every key of \\-\\-set with its unit, range, default, origin and source.\n";
}

}  // namespace weft
