#include "sim/result/perftest_log.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/json.hpp"
#include "sim/result/log_text.hpp"
#include "sim/result/perftest_ends.hpp"

namespace weft {
namespace {

/// A unit of rates, as the head of a table has it.
struct RateUnit {
  std::string_view name;
  double bytes_per_s;
};
// perftest's MB are 2^20 bytes, whatever it calls them (src/perftest_parameters.h).
constexpr std::array<RateUnit, 3> kUnits{
    {{"[Gb/sec]", 1e9 / 8}, {"[MB/sec]", 1 << 20}, {"[MiB/sec]", 1 << 20}}};

/// What is said of all rows that follow.
struct Head {
  std::string test;      ///< "RDMA_Write BW Test"
  std::string unlike{};  ///< what of it weft does not model
  StatedColumns cells{};
  std::string set{};

  void add_set(const std::string& entry) { set += (set.empty() ? "" : "; ") + entry; }
};

bool has_word(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

/// What perftest prints of memory on a GPU, before its head or behind it, by release and vendor.
bool tells_of_gpu(std::string_view line) {
  return has_word(line, "cuMemAlloc() of") ||
         (has_word(line, "allocated") && has_word(line, "GPU buffer") &&
          !has_word(line, "CUDA_MEM_MALLOC"));
}

/// Our word for a test such as "RDMA_Write Bidirectional BW Test"; "" for one without a model.
std::string op_of(std::string_view test) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kVerbs{
      {{"RDMA_Write", "write"}, {"RDMA_Read", "read"}, {"Send", "send"}}};
  const auto verb = std::find_if(kVerbs.begin(), kVerbs.end(),
                                 [&](const auto& v) { return test.starts_with(v.first); });
  if (verb == kVerbs.end() || has_word(test, "Post") || has_word(test, "_imm") ||
      has_word(test, "forwarding")) {
    return "";
  }
  const std::string op = std::string(verb->second) + (has_word(test, "BW") ? "_bw" : "_lat");
  return op + (has_word(test, "Bidirectional") ? "_bidirectional" : "");
}

/// What a command such as "$ sudo ib_write_bw -b --use_cuda=0 10.0.0.2" runs.
struct Command {
  std::string program;  ///< "" of a line that is none
  std::string op{};     ///< ours; "" of one without a model
  bool on_gpu{false};
};

/// Only what a shell would run: at a line's beginning, behind a prompt or sudo, or with its folder;
/// a name in a sentence does not count.
Command command_of(const Words& words) {
  constexpr std::array<std::string_view, 6> kPrograms{"ib_write_bw",  "ib_read_bw",  "ib_send_bw",
                                                      "ib_write_lat", "ib_read_lat", "ib_send_lat"};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = bare(words[i]);
    const std::string_view name = word.substr(word.rfind('/') + 1);
    if (std::find(kPrograms.begin(), kPrograms.end(), name) == kPrograms.end()) continue;
    const bool is_run = i == 0 || name.size() < word.size() || words[i - 1] == "sudo" ||
                        has_word("$#%>", words[i - 1].substr(words[i - 1].size() - 1));
    if (!is_run) return {};
    Command out{std::string(word), std::string(name.substr(name.find('_') + 1))};
    for (std::size_t o = i + 1; o < words.size(); ++o) {
      const std::string_view option = bare(words[o]);
      const std::string_view value = o + 1 < words.size() ? bare(words[o + 1]) : "";
      if (option.starts_with("--use_cuda")) out.on_gpu = true;
      const bool is_both_ways = option == "-b" || option == "--bidirectional";
      if (is_both_ways && out.op.ends_with("_bw")) out.op += "_bidirectional";
      const bool is_connection = option == "-c" || option == "--connection";
      if ((is_connection && value != "RC") || option == "--write_with_imm" ||
          (option.starts_with("--connection=") && !option.ends_with("=RC"))) {
        return {out.program};
      }
    }
    return out;
  }
  return {};
}

/// Takes in a line of the head, such as "TX depth : 128".
void read_fact(const std::string& key, const std::string& value, Head& head) {
  const auto unless = [&](const char* usual) {
    if (value != usual) head.unlike = key + " " + value;
  };
  if (key == "Number of qps") head.cells["qps"] = value;
  if (key == "TX depth") head.cells["tx_depth"] = value;
  if (key == "CQ Moderation") head.cells["cq_mod"] = value;
  if (key == "Post List") head.cells["post_list"] = value;
  if (key == "Outstand reads") head.add_set("nic.max_rd_atomic=" + value);
  if (key == "PCIe relax order" && value == "OFF") head.add_set("nic.relaxed_ordering=off");
  if (key == "Dual-port") unless("OFF");
  if (key == "Using SRQ") unless("OFF");
  if (key == "Transport type") unless("IB");
  if (key == "Connection type") unless("RC");
  if (key == "Mtu") {  // "4096[B]", of first releases "2048B"
    head.add_set("wire.mtu=" + value.substr(0, value.find_first_not_of("0123456789")) + " B");
  }
  if (key == "Link type") {
    head.add_set(std::string("wire.kind=") + (value == "Ethernet" ? "roce" : "infiniband"));
  }
}

/// A row's numbers: of bandwidths average and messages, in units; of latencies the typical, or the
/// average where that alone is printed (-D).
struct Numbers {
  std::string bytes;
  double rate{0};       ///< bytes/s
  double rate_step{0};  ///< what its last digit is worth
  double messages{0};   ///< a second
  double messages_step{0};
  std::optional<double> us{};  ///< of a latency
};

/// The time of a message: by whichever of rate and messages is known to more digits.
double message_us(const Numbers& n, double bytes) {
  if (n.us) return *n.us;
  const double by_rate = n.rate > 0 ? n.rate_step / n.rate : 1;
  const double by_messages = n.messages > 0 ? n.messages_step / n.messages : 1;
  if (by_rate >= 1 && by_messages >= 1) throw InputError("a rate of 0: too few digits");
  return by_messages < by_rate ? 1e6 / n.messages : bytes / n.rate * 1e6;
}

MeasuredRow row_of(const Head& head, const Numbers& numbers, const StatedColumns& stated) {
  StatedColumns cells = head.cells;
  StatedColumns more = stated;
  if (!head.test.empty()) {
    const std::string op = head.unlike.empty() ? op_of(head.test) : "";
    cells["op"] = op.empty() ? std::string(kOtherOp) : op;
    if (op.empty()) cells["id"] = head.test + (head.unlike.empty() ? "" : ", " + head.unlike);
  } else if (more.contains("op") && more["op"].ends_with("_lat") != numbers.us.has_value()) {
    throw InputError("--as: op=" + more["op"] + " is not what this table shows");
  }
  cells["transport"] = "net";
  cells["hosts"] = cells["ranks"] = "2";
  cells["bytes"] = numbers.bytes;
  const std::optional<double> bytes = parse_number(numbers.bytes);
  cells["us"] = format_number(message_us(numbers, bytes.value_or(0)));
  if (!cells.contains("memory_path")) more.try_emplace("memory_path", "host");
  cells["set"] = head.set;
  if (const auto own = more.extract("set")) cells["set"] += "; " + own.mapped();
  return row_of_log(std::move(cells), more);
}

double number_of(std::string_view word) {
  const std::optional<double> number = parse_number(std::string(word));
  if (number && *number < 0) {
    throw InputError("'" + std::string(word) +
                     "': below 0: perftest counted beyond its numbers; run it for less time");
  }
  if (!number || !(*number >= 0)) throw InputError("'" + std::string(word) + "': not a number");
  return *number;
}

/// What the last digit of a printed number is worth.
double step_of(std::string_view word) {
  const std::size_t point = word.find('.');
  if (point == std::string_view::npos) return 1;
  return std::pow(10.0, -static_cast<double>(word.size() - point - 1));
}

/// "#bytes" and "#iterations", which only perftest's tables begin with.
bool is_table(const Words& words) {
  return words.size() > 3 && words[0] == "#bytes" && words[1] == "#iterations";
}

class TextReader {
 public:
  TextReader(const StatedColumns& stated, MeasuredTable& out) : stated_{stated}, out_{out} {}

  /// Returns the note of what is left out, "" if nothing is.
  std::string read(std::string_view text) {
    std::string left_out = read_lines_to_cut(
        text, out_, [&](std::string_view line, int number) { return read(line, number); });
    ends_.take_out(out_);
    return left_out;
  }

 private:
  /// Whether it is one of a table or begins a test.
  bool read(std::string_view line, int number) {
    const Words words = words_of(line);
    if (words.empty()) return false;
    if (is_table(words)) {
      read_columns(words);
      ends_.table();
      if (head_.test.empty() && !command_.op.empty()) take_command(number);
    } else if (columns_ > 0 && words[0].find_first_not_of("0123456789") == std::string_view::npos) {
      read_row(words, number);
    } else if (words.back() == "Test") {
      head_ = {.test = joined(words)};
      columns_ = 0;
      ends_.begin(out_.rows.size());
      if (std::exchange(on_gpu_, false)) head_.cells["memory_path"] = "gdr";
    } else {
      read_command(words);
      read_of_head(line);
      ends_.read(words);
      return false;
    }
    return true;
  }

  void read_of_head(std::string_view line) {
    if (tells_of_gpu(line)) {
      if (!head_.test.empty() && columns_ == 0) {
        head_.cells["memory_path"] = "gdr";
      } else {
        on_gpu_ = true;
      }
    } else if (columns_ == 0) {
      if (has_word(line, "Test with events")) head_.unlike = "events";
      read_facts(line);
    }
  }

  /// Another command ends what the one before printed.
  void read_command(const Words& words) {
    Command command = command_of(words);
    if (command.program.empty()) return;
    command_ = std::move(command);
    if (columns_ > 0) head_ = {};
    columns_ = 0;
  }

  /// A table without a head of its own, as guides have it, is the command's above.
  void take_command(int number) {
    if (!stated_.contains("op")) {
      head_.cells["op"] = command_.op;
      out_.notes.push_back(Place{out_.file, number, 0}.text() + ": op " + command_.op + ", by '" +
                           command_.program + "' above; --as op=OP says another");
    }
    if (command_.on_gpu && !stated_.contains("memory_path")) head_.cells["memory_path"] = "gdr";
  }

  static std::string joined(const Words& words) {
    std::string out;
    for (const std::string_view word : words) out += (out.empty() ? "" : " ") + std::string(word);
    return out;
  }

  /// " Dual-port       : OFF		Device         : mlx5_0": values are a word each.
  void read_facts(std::string_view line) {
    for (std::size_t colon = line.find(':'); colon != std::string_view::npos;
         colon = line.find(':')) {
      const std::string key = joined(words_of(line.substr(0, colon)));
      line.remove_prefix(colon + 1);
      const Words rest = words_of(line);
      if (rest.empty()) return;
      read_fact(key, std::string(rest[0]), head_);
      line.remove_prefix(static_cast<std::size_t>(rest[0].data() - line.data()) + rest[0].size());
    }
  }

  /// "BW", "average[Gb/sec]" are two words of one column.
  void read_columns(const Words& words) {
    std::size_t column = 0;
    rate_ = messages_ = latency_ = 0;
    unit_ = 0;
    for (const std::string_view word : words) {
      if (word == "BW" || word == "tps" || word == "99%" || word == "99.9%") continue;
      if (word.starts_with("average[")) {
        rate_ = column;
        unit_ = unit_of(word.substr(word.find('[')));
      }
      if (word == "MsgRate[Mpps]") messages_ = column;
      if (word == "t_typical[usec]") latency_ = column;
      if (word == "t_avg[usec]" && latency_ == 0) latency_ = column;
      ++column;
    }
    if (rate_ == 0 && latency_ == 0) {
      throw InputError("no column 'BW average', no 't_typical[usec]' and no 't_avg[usec]'");
    }
    columns_ = column;
  }

  static double unit_of(std::string_view name) {
    std::vector<std::string> known;
    for (const RateUnit& unit : kUnits) {
      if (unit.name == name) return unit.bytes_per_s;
      known.emplace_back(unit.name);
    }
    throw InputError("'" + std::string(name) + "': unknown unit; known: " + known_names(known));
  }

  /// Columns behind the latency's: of some releases their numbers touch if they are large.
  bool has_glued(const Words& words) const {
    return latency_ > 0 && words.size() > latency_ + 1 &&
           std::any_of(words.begin() + static_cast<std::ptrdiff_t>(latency_) + 1, words.end(),
                       [](Words::value_type word) {
                         return std::count(word.begin(), word.end(), '.') > 1;
                       });
  }

  void read_row(const Words& words, int number) {
    if (words.size() < columns_ && !has_glued(words)) {
      throw CutShort(fmt::format("{} columns, not {}", words.size(), columns_));
    }
    check_room(out_.rows.size());
    Numbers numbers{.bytes = std::string(words[0])};
    if (latency_ > 0) {
      numbers.us = number_of(words[latency_]);
    } else {
      numbers.rate = number_of(words[rate_]) * unit_;
      numbers.rate_step = step_of(words[rate_]) * unit_;
      if (messages_ > 0) numbers.messages = number_of(words[messages_]) * 1e6;
      if (messages_ > 0) numbers.messages_step = step_of(words[messages_]) * 1e6;
    }
    out_.rows.push_back(row_of(head_, numbers, stated_));
    out_.rows.back().line = number;
  }

  const StatedColumns& stated_;
  MeasuredTable& out_;
  Head head_{};
  Command command_{};  ///< the last one
  PerftestEnds ends_;
  bool on_gpu_{false};
  std::size_t columns_{0};  ///< of a row; 0 before the table
  std::size_t rate_{0};     ///< places of columns; 0: there is none
  std::size_t messages_{0};
  std::size_t latency_{0};
  double unit_{0};
};

std::string text_of(const Json& value) {
  return value.is_string() ? value.as_string() : format_number(value.as_number());
}

/// JSON's keys are the table's with '_' for each blank.
Head head_of(const Json& info) {
  Head head;
  head.test = info.at("test").as_string();
  for (const std::string_view verb : {"RDMA_Write", "RDMA_Read", "Send"}) {
    if (head.test.starts_with(verb)) {
      std::replace(head.test.begin() + static_cast<std::ptrdiff_t>(verb.size()), head.test.end(),
                   '_', ' ');
    }
  }
  for (const auto& [name, value] : info.members()) {
    std::string key = name;
    std::replace(key.begin(), key.end(), '_', ' ');
    if (key == "Dual port") key = "Dual-port";
    if (key == "cuda device") head.cells["memory_path"] = "gdr";
    if (value.is_string() || value.is_number()) read_fact(key, text_of(value), head);
  }
  return head;
}

/// JSON states no unit: the rate and the messages a second agree in one.
void find_unit(double rate, double bytes, Numbers& numbers) {
  for (const RateUnit& unit : kUnits) {
    const double by_messages = numbers.messages * bytes / unit.bytes_per_s;
    const double step = numbers.messages_step * bytes / unit.bytes_per_s + 0.005 + rate * 1e-6;
    if (std::abs(rate - by_messages) > step) continue;
    numbers.rate = rate * unit.bytes_per_s;
    numbers.rate_step = 0.01 * unit.bytes_per_s;
    return;
  }
  throw InputError(fmt::format("BW_average {} is neither Gb/s nor MiB/s by MsgRate {}",
                               format_number(rate), format_number(numbers.messages / 1e6)));
}

Numbers numbers_of(const Json& results) {
  const std::int64_t bytes = results.at("MsgSize").as_integer();
  Numbers numbers{.bytes = std::to_string(bytes)};
  for (const char* const latency : {"t_typical", "t_avg"}) {
    if (const Json* const us = results.find(latency)) {
      numbers.us = us->as_number();
      return numbers;
    }
  }
  numbers.messages = results.at("MsgRate").as_number() * 1e6;
  numbers.messages_step = 1;  // it is written with six digits behind the point
  find_unit(results.at("BW_average").as_number(), static_cast<double>(bytes), numbers);
  return numbers;
}

/// Before 2024 its JSON was none: a line each "test: Send_BW_Test," and "},", nothing in quotes but
/// the device, and commas before brackets (linux-rdma/perftest#216).
bool is_unquoted(std::string_view text) {
  constexpr std::string_view kKey = "test_info:";
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n{"), text.size()));
  return text.starts_with(kKey);
}

/// The same as JSON, in as many lines.
std::string quoted_json(std::string_view text) {
  std::string out;
  for_each_line(text, [&](std::string_view line, int) {
    constexpr std::string_view kBlanks = " \t\r";
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    line = line.substr(0, line.find_last_not_of(" \t\r,") + 1);
    const std::size_t colon = line.find(':');
    if (line.starts_with('}') && out.find_last_of(',') != std::string::npos) {
      out.erase(out.find_last_of(','), 1);  // that behind the last value
    }
    if (colon == std::string_view::npos) {
      out += line;
    } else {
      const std::string_view name = line.substr(0, line.find_last_not_of(" \t:", colon) + 1);
      std::string_view value = line.substr(colon + 1);
      value.remove_prefix(std::min(value.find_first_not_of(kBlanks), value.size()));
      const bool is_bare = !value.starts_with('{') && !value.starts_with('"') &&
                           !parse_number(std::string(value)).has_value();
      out += '"' + std::string(name) + "\":" + (is_bare ? "\"" : "") + std::string(value) +
             (is_bare ? "\"" : "");
    }
    if (!line.empty() && !line.ends_with('{')) out += ',';
    out += '\n';
  });
  if (const std::size_t last = out.find_last_of(','); last != std::string::npos) out.erase(last, 1);
  return out;
}

}  // namespace

bool is_perftest_log(std::string_view text) {
  if (is_json_object(text)) return is_json_with(text, "test_info") || is_unquoted(text);
  bool any = false;
  for_each_line(text, [&](std::string_view line, int) {
    any = any || (line.size() <= kMostLogLineBytes && has_word(line, "#bytes") &&
                  is_table(words_of(line)));
  });
  return any;
}

MeasuredTable parse_perftest_log(std::string_view text, const std::string& file,
                                 const StatedColumns& stated) {
  MeasuredTable out;
  out.file = file;
  out.is_log = true;
  std::string left_out;
  if (!is_json_object(text)) {
    left_out = TextReader(stated, out).read(text);
    if (left_out.empty()) left_out = "its table has a head alone: the run ended before it measured";
  } else {
    const std::string quoted = is_unquoted(text) ? quoted_json(text) : "";
    const Json document = Json::parse(quoted.empty() ? text : std::string_view(quoted), file);
    try {
      out.rows.push_back(
          row_of(head_of(document.at("test_info")), numbers_of(document.at("results")), stated));
      out.rows.back().line = 1;
    } catch (const InputError& e) {
      throw InputError(Place{file, 0, 0}, e.what());
    }
  }
  check_any_row(out, left_out);
  return out;
}

}  // namespace weft
