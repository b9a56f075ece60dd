#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "replay/trace/fields.hpp"
#include "replay/trace/lines.hpp"
#include "replay/trace/text_lines.hpp"
#include "replay/trace/writer.hpp"
#include "sim/base/error.hpp"

namespace weft::trace {
namespace {

constexpr KeySpec kBlock{"block", "text", "", "records, lost or end"};
constexpr KeySpec kBy{"by", "an object's number, or null", "",
                      "the thread; null: no thread's, or several threads'"};

constexpr std::array kHeadKeys{
    KeySpec{"format", "text", "", "the version of this form: weft.trace/1"},
    KeySpec{"clock", "text", "", "unknown, monotonic_raw or monotonic; a number without a word"},
    KeySpec{"salted", "true or false", "", "addresses are pseudonyms"},
    KeySpec{"cut", "true or false", "", "it was cut from a longer trace"},
    KeySpec{"post_ns", "whole number", "", "what recording added to a post, ns; 0: not measured"},
    KeySpec{"poll_ns", "whole number", "", "likewise to a poll"},
    KeySpec{"tool", "text", "if it is UTF-8", "what recorded it"},
    KeySpec{"tool_raw", "text", "else", "its bytes in hexadecimal"},
    KeySpec{"topology", "text", "if it is UTF-8", "the topology's text; empty: there is none"},
    KeySpec{"topology_raw", "text", "else", "its bytes in hexadecimal"}};
constexpr std::array kRecordsKeys{kBlock, kBy};
constexpr std::array kLostKeys{
    kBlock, KeySpec{"blocks", "whole number", "", "how many were lost here, as numbers tell"}};
constexpr std::array kEndKeys{kBlock};
constexpr std::array kRawKeys{
    KeySpec{"type", "text or number", "", "as below; a number: one that weft does not know"}, kBy,
    KeySpec{"time_ns", "number", "", "of its host's clock"},
    KeySpec{"raw", "text", "if its bytes do not follow from its fields",
            "its bytes behind the head, in hexadecimal; no other keys then"}};
/// Beside its fields.
constexpr std::array kRecordKeys{
    kRawKeys[0],
    kRawKeys[1],
    kRawKeys[2],
    KeySpec{"text", "text", "of types with a text", "what stands behind the fields"},
    KeySpec{"segments", "list", "of posts", "their segments, each with its fields"},
    kRawKeys[3]};

// "123" or "0x1f", all of it.
std::optional<std::uint64_t> whole(std::string_view text) {
  const bool is_hex = text.starts_with("0x");
  if (is_hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, is_hex ? 16 : 10);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

std::uint64_t word_value(std::string_view text, const Field& field) {
  for (const Word& word : field.words) {
    if (word.word == text) return word.value;
  }
  if (const auto value = whole(text)) return *value;
  std::vector<std::string> known;
  for (const Word& word : field.words) known.emplace_back(word.word);
  throw InputError("'" + std::string(text) + "': a whole number" +
                   (known.empty() ? "" : " or one of: " + known_names(known, 24)));
}

std::uint64_t flags_value(std::string_view text, const Field& field) {
  std::uint64_t value = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('|'), text.size());
    value |= word_value(text.substr(0, end), field);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return value;
}

std::uint64_t signed_value(const Json& json) {
  if (!json.is_string()) return static_cast<std::uint64_t>(json.as_integer());
  const std::string& text = json.as_string();
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || rest != text.data() + text.size()) {
    throw InputError("'" + text + "': a whole number");
  }
  return static_cast<std::uint64_t>(value);
}

std::uint64_t value_of(const Json& json, const Field& field) {
  if (field.form == Form::kName && json.is_null()) return kNone;
  if (field.form == Form::kSigned) return signed_value(json);
  std::uint64_t value = 0;
  if (json.is_string()) {
    const std::string& text = json.as_string();
    value = field.form == Form::kFlags ? flags_value(text, field) : word_value(text, field);
  } else {
    const std::int64_t number = json.as_integer();
    if (number < 0) throw InputError("a negative number");
    value = static_cast<std::uint64_t>(number);
  }
  if (field.bytes < 8 && value >> (8U * field.bytes) != 0) {
    throw InputError(fmt::format("{}: has {} bits", value, 8U * field.bytes));
  }
  return value;
}

// The value under a key, read by `read`; what is wrong with it is said with the key's name.
template <typename Read>
auto member(const Json& json, std::string_view key, Read read) {
  const Json* const found = json.find(key);
  if (found == nullptr) throw InputError("missing key '" + std::string(key) + "'");
  try {
    return read(*found);
  } catch (const InputError& e) {
    throw InputError(std::string(key) + ": " + e.what());
  }
}

std::uint64_t number(const Json& json, std::string_view key, std::size_t bytes, Form form) {
  const Field field{.name = key, .bytes = static_cast<std::uint8_t>(bytes), .form = form};
  return member(json, key, [&](const Json& value) { return value_of(value, field); });
}

std::vector<std::byte> bytes_of_hex(const std::string& text) {
  std::vector<std::byte> out;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    const auto value = whole("0x" + text.substr(at, 2));
    if (!value || text.size() % 2 != 0) throw InputError("hexadecimal digits, two for each byte");
    out.push_back(static_cast<std::byte>(*value));
  }
  return out;
}

std::vector<std::byte> bytes_of_text(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Fields as they are written by append_fields(); the keys that they are.
void read_fields(const Json& json, std::span<std::byte> record, std::span<const Field> fields,
                 std::vector<std::string>& keys) {
  for (const Field& field : fields) {
    if (field.form == Form::kZero) continue;
    keys.emplace_back(field.name);
    set_field(record, field,
              member(json, field.name, [&](const Json& value) { return value_of(value, field); }));
  }
}

void allow_keys(const Json& json, std::vector<std::string> known) {
  for (const auto& [key, value] : json.members()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw InputError("unknown key '" + key + "'; allowed here: " + known_names(known, 24));
  }
}

void allow_keys(const Json& json, std::span<const KeySpec> known) {
  std::vector<std::string> names;
  for (const KeySpec& key : known) names.emplace_back(key.name);
  allow_keys(json, std::move(names));
}

std::vector<std::byte> read_segments(const Json& list) {
  std::vector<std::byte> out;
  for (const Json& item : list.items()) {
    std::vector<std::byte> segment(sizeof(Segment));
    std::vector<std::string> keys;
    read_fields(item, segment, segment_fields(), keys);
    allow_keys(item, keys);
    out.insert(out.end(), segment.begin(), segment.end());
  }
  return out;
}

std::vector<std::byte> read_tail(const Json& json, Tail tail) {
  if (tail == Tail::kSegments) return member(json, "segments", read_segments);
  if (tail == Tail::kNothing) return {};
  return member(json, "text", [](const Json& text) { return bytes_of_text(text.as_string()); });
}

RecordHead read_record_head(const Json& json, RecordType type) {
  RecordHead head{};
  head.type = type;
  head.thread = static_cast<std::uint32_t>(number(json, "by", 4, Form::kName));
  head.time_ns = number(json, "time_ns", 8, Form::kNumber);
  return head;
}

RecordType type_of(const Json& json) {
  if (json.is_integer()) {
    const Field field{.name = "type", .bytes = 2};
    return static_cast<RecordType>(value_of(json, field));
  }
  if (const RecordForm* const form = find_form(json.as_string())) return form->type;
  std::vector<std::string> known;
  for (const RecordForm& form : record_forms()) known.emplace_back(form.name);
  throw InputError("no type '" + json.as_string() + "'; known: " + known_names(known, 24));
}

std::vector<std::byte> read_raw(const Json& json, const RecordHead& head) {
  allow_keys(json, kRawKeys);
  const auto tail =
      member(json, "raw", [](const Json& raw) { return bytes_of_hex(raw.as_string()); });
  if (tail.size() % 8 != 0) throw InputError("raw: a multiple of 8 bytes");
  return record_of(head, tail);
}

std::vector<std::byte> read_record(const Json& json) {
  const RecordHead head = read_record_head(json, member(json, "type", type_of));
  const RecordForm* const form = find_form(head.type);
  if (form == nullptr || json.find("raw") != nullptr) return read_raw(json, head);
  std::vector<std::byte> fixed(form->bytes);
  std::memcpy(fixed.data(), &head, sizeof head);
  std::vector<std::string> keys{"type", "by", "time_ns"};
  if (form->tail == Tail::kText) keys.emplace_back("text");
  const std::vector<std::byte> tail = read_tail(json, form->tail);
  for (const Field& field : form->fields) {
    if (form->tail == Tail::kSegments && field.name == "segments") {
      keys.emplace_back("segments");
      set_field(fixed, field, tail.size() / sizeof(Segment));
    } else {
      read_fields(json, fixed, std::span(&field, 1), keys);
    }
  }
  allow_keys(json, keys);
  return whole_record(fixed, tail);
}

// A text of the head, which may stand as bytes.
std::string head_text(const Json& json, const char* key) {
  const std::string raw = std::string(key) + "_raw";
  if (json.find(raw) == nullptr) {
    return member(json, key, [](const Json& text) { return text.as_string(); });
  }
  const auto bytes =
      member(json, raw, [](const Json& text) { return bytes_of_hex(text.as_string()); });
  std::string text(bytes.size(), '\0');
  std::memcpy(text.data(), bytes.data(), bytes.size());
  return text;
}

/// Goes from line to line of a file.
class LinesToTrace {
 public:
  LinesToTrace(const std::string& lines, const std::string& path) : lines_{lines}, path_{path} {}

  void convert() {
    while (const auto line = lines_.next()) {
      if (line->empty()) continue;
      const Json json = Json::parse(*line, lines_.path(), lines_.line());
      try {
        take(json);
      } catch (const InputError& e) {
        throw InputError(Place{lines_.path(), lines_.line()}, e.what());
      }
    }
    if (!writer_) throw InputError(lines_.path() + ": is empty; the first line is a trace's head");
    flush();
    if (is_ended_) writer_->end();
    writer_->commit();
  }

 private:
  void take(const Json& json) {
    if (!writer_) {
      take_head(json);
    } else if (is_ended_) {
      throw InputError("a line behind the last block");
    } else if (json.find("block") != nullptr) {
      take_block(json);
    } else {
      const std::vector<std::byte> record = read_record(json);
      if (records_.size() + record.size() > kMaxBlockBytes) flush();
      records_.insert(records_.end(), record.begin(), record.end());
    }
  }

  void take_head(const Json& json) {
    const Json* const format = json.find("format");
    if (format == nullptr || !format->is_string() || format->as_string() != kLinesFormat) {
      throw InputError(std::string("the first line is a trace's head: {\"format\":\"") +
                       kLinesFormat + "\",...}");
    }
    allow_keys(json, kHeadKeys);
    const std::string tool = head_text(json, "tool");
    const std::string topology = head_text(json, "topology");
    const auto clock =
        member(json, "clock", [](const Json& value) { return value_of(value, clock_field()); });
    const auto flag = [&](const char* key) {
      return member(json, key, [](const Json& value) { return value.as_bool(); });
    };
    const auto cost_ns = [&](const char* key) {
      return static_cast<std::uint32_t>(number(json, key, 4, Form::kNumber));
    };
    writer_.emplace(path_, FileFacts{.tool = tool,
                                     .topology = topology,
                                     .clock = static_cast<ClockKind>(clock),
                                     .is_salted = flag("salted"),
                                     .is_cut = flag("cut"),
                                     .post_ns = cost_ns("post_ns"),
                                     .poll_ns = cost_ns("poll_ns")});
  }

  void take_block(const Json& json) {
    flush();
    const std::string kind =
        member(json, "block", [](const Json& value) { return value.as_string(); });
    if (kind == "lost") {
      allow_keys(json, kLostKeys);
      writer_->lose(number(json, "blocks", 8, Form::kNumber));
      return;
    }
    is_ended_ = kind == "end";
    if (!is_ended_ && kind != "records") {
      throw InputError("block: '" + kind + "'; one of: end, lost, records");
    }
    if (is_ended_) {
      allow_keys(json, kEndKeys);
    } else {
      allow_keys(json, kRecordsKeys);
      thread_ = static_cast<std::uint32_t>(number(json, "by", 4, Form::kName));
    }
  }

  void flush() {
    writer_->block(thread_, records_);
    records_.clear();
  }

  TextLines lines_;
  std::string path_;
  std::optional<TraceWriter> writer_;
  std::uint32_t thread_{kNone};
  std::vector<std::byte> records_;
  bool is_ended_{false};
};

}  // namespace

std::vector<FormatSection> lines_format() {
  const auto listed = [](std::span<const KeySpec> keys) {
    return std::vector<KeySpec>(keys.begin(), keys.end());
  };
  return {
      {R"({"format": ...})", "The first line, the file's head.", listed(kHeadKeys)},
      {R"({"block": "records"})", "Where a block begins.", listed(kRecordsKeys)},
      {R"({"block": "lost"})", "Where blocks of the file were lost.", listed(kLostKeys)},
      {R"({"block": "end"})", "The last line, of a file that has its end.", listed(kEndKeys)},
      {R"({"type": ...})", "A record; with the fields of its type, below.", listed(kRecordKeys)}};
}

void trace_of_lines(const std::string& lines, const std::string& path) {
  LinesToTrace(lines, path).convert();
}

}  // namespace weft::trace
