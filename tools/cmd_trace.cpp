#include <array>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "replay/trace/carried_losses.hpp"
#include "replay/trace/lines.hpp"
#include "replay/trace/summary.hpp"
#include "replay/trace/text_lines.hpp"
#include "replay/trace/transform.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/file.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"

namespace weft {
namespace {

struct TraceArguments {
  std::string action;
  std::vector<std::string> files;
  std::string output;
  std::string json;
  std::string format;
  std::string from;
  std::string to;
  std::vector<std::string> pairs;
  std::vector<std::string> devices;
  std::string salt;
};

/// An option that not every action takes.
struct Taken {
  std::string_view option;
  std::string_view actions;
  bool is_given;
};

void check_options(const TraceArguments& a) {
  const std::array<Taken, 8> options{
      {{"--output", "dump, cut, merge, scrub, import", !a.output.empty()},
       {"--json", "info", !a.json.empty()},
       {"--format", "dump", !a.format.empty()},
       {"--from", "cut", !a.from.empty()},
       {"--to", "cut", !a.to.empty()},
       {"--pair", "cut", !a.pairs.empty()},
       {"--device", "cut", !a.devices.empty()},
       {"--salt", "scrub", !a.salt.empty()}}};
  for (const Taken& option : options) {
    if (!option.is_given || option.actions.find(a.action) != std::string_view::npos) continue;
    throw InputError(fmt::format("weft trace {} takes no {}; it is for: {}", a.action,
                                 option.option, option.actions));
  }
}

const std::string& only_file(const TraceArguments& a) {
  if (a.files.size() > 1) throw InputError("weft trace " + a.action + " takes one file");
  return a.files.front();
}

/// Where a trace is written: a file, since it takes its place only once it is whole.
const std::string& output_of(const TraceArguments& a) {
  if (a.output.empty() || a.output == "-") {
    throw InputError("weft trace " + a.action + ": --output FILE is required: the trace to write");
  }
  return a.output;
}

/// What could not be read of a file, for standard error.
void say_losses(const std::string& file, const trace::Losses& losses, bool is_ended) {
  for (const trace::Loss& loss : losses.first) {
    std::cerr << fmt::format(
        "warning: {}: {} bytes at byte {} are lost: {}; blocks: {}, records: {}\n", one_line(file),
        loss.bytes, loss.offset, loss.what, loss.blocks == 0 ? "?" : std::to_string(loss.blocks),
        loss.records == 0 ? "?" : std::to_string(loss.records));
  }
  if (losses.places > losses.first.size()) {
    std::cerr << fmt::format("warning: {}: and {} more such places\n", one_line(file),
                             losses.places - losses.first.size());
  }
  if (!is_ended) {
    std::cerr << fmt::format("warning: {}: has no end: its writer was stopped, or it is cut off\n",
                             one_line(file));
  }
}

void say_losses(const trace::Source& source) {
  say_losses(source.file, source.losses, source.is_ended);
  if (source.left_out > 0) {
    std::cerr << fmt::format(
        "warning: {}: left out {} records of types that this weft doesn't know\n",
        one_line(source.file), source.left_out);
  }
}

void info(const TraceArguments& a) {
  const trace::TraceSummary summary = trace::summarize(only_file(a));
  if (a.json != "-") std::cout << trace::summary_text(summary) << std::flush;
  if (!a.json.empty()) write_text_file(a.json, trace::summary_json(summary).dump());
}

void dump(const TraceArguments& a) {
  constexpr std::size_t kPiece = 1U << 20;
  const bool is_json = a.format == "json";
  trace::TraceReader reader(only_file(a));
  OutputFile out(a.output.empty() ? "-" : a.output);
  std::string text;
  if (is_json) trace::append_head_line(text, reader.facts());
  trace::CarriedLosses losses(reader);
  const auto say_lost = [&] {
    const std::uint64_t blocks = losses.blocks();
    if (is_json && blocks > 0) trace::append_lost_line(text, blocks);
  };
  while (const auto block = reader.next()) {
    say_lost();
    if (is_json) trace::append_block_line(text, block->head.kind, block->head.thread);
    for (auto left = block->records; !left.empty();) {
      const auto record = left.first(trace::record_bytes(left));
      is_json ? trace::append_record_line(text, record) : trace::append_record_text(text, record);
      left = left.subspan(record.size());
      if (text.size() < kPiece) continue;
      out.write(text);
      text.clear();
    }
  }
  say_lost();
  if (is_json && reader.is_ended()) trace::append_block_line(text, trace::BlockKind::kEnd, 0);
  out.write(text);
  out.commit();
  say_losses(reader.path(), reader.losses(), reader.is_ended());
}

std::uint64_t time_of(const std::string& option, const std::string& text) {
  try {
    const double ns = parse_quantity(text, Unit::kNanoseconds);
    constexpr double kMost = 9e18;
    if (ns >= 0 && ns < kMost) return static_cast<std::uint64_t>(ns);
    throw InputError("from 0 on, since the trace's begin");
  } catch (const InputError& e) {
    throw InputError(option + " '" + text + "': " + e.what());
  }
}

std::uint32_t pair_of(const std::string& text) {
  const auto number = parse_number(text);
  if (number && *number >= 0 && *number < trace::kNone &&
      *number == static_cast<double>(static_cast<std::uint32_t>(*number))) {
    return static_cast<std::uint32_t>(*number);
  }
  throw InputError("--pair '" + text + "': a queue pair's number, as weft trace info shows it");
}

void cut(const TraceArguments& a) {
  trace::CutRequest request;
  if (!a.from.empty()) request.from_ns = time_of("--from", a.from);
  if (!a.to.empty()) request.to_ns = time_of("--to", a.to);
  if (request.to_ns && *request.to_ns <= request.from_ns) {
    throw InputError("--to '" + a.to + "': not later than --from");
  }
  for (const std::string& pair : a.pairs) request.pairs.push_back(pair_of(pair));
  request.devices = a.devices;
  const trace::CutResult result = trace::cut_trace(only_file(a), request, output_of(a));
  say_losses(result.source);
  std::cout << fmt::format("kept {} posts and completions, left out {}\n", result.kept,
                           result.left_out);
}

void merge(const TraceArguments& a) {
  if (a.files.size() < 2) throw InputError("weft trace merge takes two files or more");
  std::vector<trace::Source> sources;
  const auto clocks = trace::merge_traces(a.files, output_of(a), sources);
  for (const trace::Source& source : sources) say_losses(source);
  for (const trace::HostClock& clock : clocks) {
    std::cout << fmt::format(
        "{} ({}): shifted by {} ns, known to {} ns, by {} matched operations\n", clock.file,
        one_line(clock.host), clock.shift_ns, clock.error_ns, clock.matched);
  }
}

/// 128 bits that nobody knows.
std::string drawn_salt() {
  std::random_device device;
  std::string salt;
  for (int i = 0; i < 4; ++i) salt += fmt::format("{:08x}", device());
  return salt;
}

void scrub(const TraceArguments& a) {
  const std::string salt = a.salt.empty() ? drawn_salt() : a.salt;
  const trace::ScrubResult result = trace::scrub_trace(only_file(a), salt, output_of(a));
  say_losses(result.source);
  for (const auto& [field, n] : result.replaced) {
    std::cout << fmt::format("replaced {} {}\n", n, field);
  }
  if (result.had_topology) std::cout << "left out the topology's text\n";
  std::cout << "left as they are: times, the time of day too; sizes, offsets in regions, places in "
               "a page; numbers of queue pairs; vendor and part of devices; who wrote the trace\n";
}

void import(const TraceArguments& a) {
  trace::TextLines lines(a.files.front());
  const auto first = lines.next();
  if (first && first->starts_with("{")) {
    trace::trace_of_lines(only_file(a), output_of(a));
    return;
  }
  const trace::ImportResult result = trace::import_net_operations(a.files, output_of(a));
  std::cout << fmt::format("{} operations of {} queue pairs\n", result.operations, result.pairs);
}

void run(const TraceArguments& a) {
  check_options(a);
  if (a.action == "info") return info(a);
  if (a.action == "dump") return dump(a);
  if (a.action == "cut") return cut(a);
  if (a.action == "merge") return merge(a);
  if (a.action == "scrub") return scrub(a);
  import(a);
}

}  // namespace

void add_trace_command(CommandLine& line) {
  const auto arguments = std::make_shared<TraceArguments>();
  line.add("trace", "Look into verbs traces, cut, merge and scrub them")
      .argument("action", arguments->action,
                "info: counts by operation and queue pair, what is missing; dump: every record; "
                "cut: a part; merge: one trace of several hosts', their clocks aligned; scrub: "
                "pseudonyms for names and addresses; import: a trace of JSON lines (dump --format "
                "json) or of network operations' CSVs, one file a host",
                {"info", "dump", "cut", "merge", "scrub", "import"})
      .argument("file", arguments->files, "traces; for import what becomes one")
      .output("-o,--output", arguments->output,
              "the trace to write; of dump the text, '-' or nothing is standard output")
      .output("--json", arguments->json, "info: write it as JSON; '-' is standard output")
      .option("--format", arguments->format, "dump: text, or JSON lines without loss",
              {"text", "json"})
      .option("--from", arguments->from, "cut: from this time of the trace on, such as '1.5 s'")
      .option("--to", arguments->to, "cut: up to this time of the trace")
      .option("--pair", arguments->pairs,
              "cut: this queue pair, by its number in weft trace info; repeatable")
      .option("--device", arguments->devices,
              "cut: this device's queue pairs, such as mlx5_0 or, of one host, mlx5_0@1, as weft "
              "trace info shows it; repeatable")
      .option("--salt", arguments->salt,
              "scrub: the same salt gives the same pseudonyms; unless given one is drawn, which "
              "nobody knows")
      .example("weft trace info run.weft")
      .action([arguments] { run(*arguments); });
}

}  // namespace weft
