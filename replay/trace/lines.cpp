#include "replay/trace/lines.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "replay/trace/fields.hpp"
#include "sim/base/error.hpp"
#include "sim/io/utf8.hpp"

namespace weft::trace {
namespace {

using Out = std::back_insert_iterator<std::string>;

// The largest number that every reader of JSON keeps: 2^53 - 1 (RFC 8259, 6).
constexpr std::uint64_t kMaxPlain = (std::uint64_t{1} << 53U) - 1;

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(Out(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string flags_text(const Field& field, std::uint64_t value) {
  std::string out;
  for (const Word& word : field.words) {
    if ((value & word.value) == 0) continue;
    out += (out.empty() ? "" : "|") + std::string(word.word);
    value &= ~word.value;
  }
  if (value != 0) out += fmt::format("{}0x{:x}", out.empty() ? "" : "|", value);
  return out;
}

// A field's value: a number, or a text that `is_text` says to quote in JSON.
std::string value_text(const Field& field, std::uint64_t value, bool& is_text) {
  is_text = false;
  if (field.form == Form::kName && value == kNone) return "null";
  if (field.form == Form::kSigned) {
    const auto number = static_cast<std::int64_t>(value);
    is_text = static_cast<std::uint64_t>(number < 0 ? -(number + 1) : number) >= kMaxPlain;
    return std::to_string(number);
  }
  const std::string_view word = word_of(field, value);
  is_text =
      field.form == Form::kHex || field.form == Form::kFlags || !word.empty() || value > kMaxPlain;
  if (field.form == Form::kHex) return fmt::format("0x{:x}", value);
  if (field.form == Form::kFlags) return flags_text(field, value);
  return word.empty() ? std::to_string(value) : std::string(word);
}

void append_fields(std::string& out, std::span<const std::byte> record,
                   std::span<const Field> fields, bool is_first) {
  for (const Field& field : fields) {
    if (field.form == Form::kZero) continue;
    bool is_text = false;
    const std::string text = value_text(field, field_value(record, field), is_text);
    const char* const quote = is_text ? "\"" : "";
    fmt::format_to(Out(out), "{}\"{}\":{}{}{}", is_first ? "" : ",", field.name, quote, text,
                   quote);
    is_first = false;
  }
}

std::string_view tail_text(std::span<const std::byte> record, const RecordForm& form) {
  const void* const tail = record.data() + form.bytes;
  const std::string_view text(static_cast<const char*>(tail), record.size() - form.bytes);
  return text.substr(0, text.find_last_not_of('\0') + 1);
}

std::size_t segments_of(std::span<const std::byte> record) {
  return RecordView(record).as<Post>().segments;
}

// Whether its bytes follow from its fields and its tail.
bool is_plain(std::span<const std::byte> record, const RecordForm* form) {
  if (form == nullptr || !is_sound(record)) return false;
  std::size_t tail = 0;
  if (form->tail == Tail::kSegments) tail = segments_of(record) * sizeof(Segment);
  if (form->tail == Tail::kText) {
    const std::string_view text = tail_text(record, *form);
    if (!is_utf8(text)) return false;
    tail = text.size();
  }
  if (record.size() != (form->bytes + tail + 7) / 8 * 8) return false;
  return std::all_of(form->fields.begin(), form->fields.end(), [&](const Field& field) {
    return field.form != Form::kZero || field_value(record, field) == 0;
  });
}

void append_hex(std::string& out, std::span<const std::byte> bytes) {
  for (const std::byte b : bytes) fmt::format_to(Out(out), "{:02x}", static_cast<unsigned>(b));
}

// A text; its bytes in hexadecimal under another name where it is not UTF-8.
void append_text(std::string& out, const char* key, std::string_view text) {
  if (is_utf8(text)) {
    fmt::format_to(Out(out), ",\"{}\":", key);
    append_string(out, text);
    return;
  }
  fmt::format_to(Out(out), ",\"{}_raw\":\"", key);
  append_hex(out, std::as_bytes(std::span(text)));
  out += '"';
}

void append_tail(std::string& out, std::span<const std::byte> record, const RecordForm& form) {
  if (form.tail == Tail::kText) {
    out += ",\"text\":";
    append_string(out, tail_text(record, form));
  }
  if (form.tail != Tail::kSegments) return;
  out += ",\"segments\":[";
  for (std::size_t i = 0; i < segments_of(record); ++i) {
    out += i == 0 ? "{" : ",{";
    append_fields(out, record.subspan(form.bytes + i * sizeof(Segment), sizeof(Segment)),
                  segment_fields(), true);
    out += '}';
  }
  out += ']';
}

// The number of segments is that of the list, in lines.
bool is_count(const RecordForm& form, const Field& field) {
  return form.tail == Tail::kSegments && field.name == "segments";
}

void append_record_fields(std::string& out, std::span<const std::byte> record,
                          const RecordForm& form) {
  for (const Field& field : form.fields) {
    if (!is_count(form, field)) append_fields(out, record, std::span(&field, 1), false);
  }
}

std::string type_text(RecordType type, const RecordForm* form) {
  return form != nullptr ? std::string(form->name) : std::to_string(static_cast<unsigned>(type));
}

std::string name_text(std::uint32_t name) { return name == kNone ? "null" : std::to_string(name); }

}  // namespace

void append_head_line(std::string& out, const FileFacts& facts) {
  bool is_text = false;
  const std::string clock =
      value_text(clock_field(), static_cast<std::uint64_t>(facts.clock), is_text);
  const char* const quote = is_text ? "\"" : "";
  fmt::format_to(Out(out), R"({{"format":"{0}","clock":{1}{2}{1},"salted":{3},"cut":{4},)",
                 kLinesFormat, quote, clock, facts.is_salted, facts.is_cut);
  fmt::format_to(Out(out), R"("post_ns":{},"poll_ns":{})", facts.post_ns, facts.poll_ns);
  append_text(out, "tool", facts.tool);
  append_text(out, "topology", facts.topology);
  out += "}\n";
}

void append_block_line(std::string& out, BlockKind kind, std::uint32_t thread) {
  if (kind == BlockKind::kEnd) {
    out += "{\"block\":\"end\"}\n";
  } else {
    fmt::format_to(Out(out), "{{\"block\":\"records\",\"by\":{}}}\n", name_text(thread));
  }
}

void append_lost_line(std::string& out, std::uint64_t blocks) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 53U;  // of any number in JSON
  fmt::format_to(Out(out), "{{\"block\":\"lost\",\"blocks\":{}}}\n", std::min(blocks, kMost));
}

void append_record_line(std::string& out, std::span<const std::byte> record) {
  const RecordHead head = RecordView(record).head();
  const RecordForm* const form = find_form(head.type);
  const char* const quote = form != nullptr ? "\"" : "";
  const bool is_big = head.time_ns > kMaxPlain;
  fmt::format_to(Out(out), R"({{"type":{0}{1}{0},"by":{2},"time_ns":{3}{4}{3})", quote,
                 type_text(head.type, form), name_text(head.thread), is_big ? "\"" : "",
                 head.time_ns);
  if (is_plain(record, form)) {
    append_record_fields(out, record, *form);
    append_tail(out, record, *form);
  } else {
    out += ",\"raw\":\"";
    append_hex(out, record.subspan(sizeof head));
    out += '"';
  }
  out += "}\n";
}

void append_record_text(std::string& out, std::span<const std::byte> record) {
  const RecordHead head = RecordView(record).head();
  const RecordForm* const form = find_form(head.type);
  fmt::format_to(Out(out), "{}.{:09} s  by {}  {}", head.time_ns / 1'000'000'000,
                 head.time_ns % 1'000'000'000, name_text(head.thread), type_text(head.type, form));
  if (!is_plain(record, form)) {
    out += "  raw=";
    append_hex(out, record.subspan(sizeof head));
  } else {
    bool is_text = false;
    for (const Field& field : form->fields) {
      if (field.form == Form::kZero) continue;
      fmt::format_to(Out(out), " {}={}", field.name,
                     value_text(field, field_value(record, field), is_text));
    }
    if (form->tail == Tail::kText) out += " '" + one_line(tail_text(record, *form)) + "'";
    for (std::size_t i = 0; form->tail == Tail::kSegments && i < segments_of(record); ++i) {
      const Segment segment = RecordView(record).segment(i);
      fmt::format_to(Out(out), " [region={} offset=0x{:x} length={}]", name_text(segment.region),
                     segment.offset, segment.length);
    }
  }
  out += '\n';
}

}  // namespace weft::trace
