#include <fmt/format.h>

#include "replay/trace/block.hpp"
#include "replay/trace/fields.hpp"
#include "replay/trace/lines.hpp"
#include "replay/trace/summary.hpp"
#include "tools/docs.hpp"

namespace weft {
namespace {

std::string words_text(const trace::Field& field) {
  std::string out;
  for (const trace::Word& word : field.words) {
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", word.value, word.word);
  }
  return out;
}

std::string form_text(const trace::Field& field) {
  switch (field.form) {
    case trace::Form::kNumber:
      return "number";
    case trace::Form::kSigned:
      return "signed number";
    case trace::Form::kHex:
      return "number, in hexadecimal";
    case trace::Form::kName:
      return "an object's number, or null";
    case trace::Form::kWord:
      return "one of: " + words_text(field);
    case trace::Form::kFlags:
      return "any of: " + words_text(field);
    case trace::Form::kZero:
      break;
  }
  return "zeros";
}

std::string fields_text(std::span<const trace::Field> fields) {
  std::string out = "| byte | bytes | field | what it holds | meaning |\n|---|---|---|---|---|\n";
  for (const trace::Field& field : fields) {
    const bool is_zero = field.form == trace::Form::kZero;
    out += fmt::format("| {} | {} | {} | {} | {} |\n", field.offset, field.bytes,
                       is_zero ? "" : fmt::format("`{}`", field.name), form_text(field),
                       field.meaning);
  }
  return out;
}

const char* tail_text(trace::Tail tail) {
  switch (tail) {
    case trace::Tail::kText:
      return " Behind it a text, filled up with zeros to a multiple of 8 bytes.";
    case trace::Tail::kSegments:
      return " Behind it its segments.";
    case trace::Tail::kNothing:
      break;
  }
  return "";
}

constexpr const char* kIntroduction =
    R"(<!-- Written by `weft docs trace` from what the readers and writers declare; change it there. -->
# Verbs traces: the file

What a program asked of RDMA devices, and when it was told that it was done. [`../README.md`](../README.md) says how traces
are used. All numbers are little-endian; a length is in bytes, a time in nanoseconds of the recording host's clock.

```
file  = head: 48 bytes, the recorder's name, a topology's text, zeros up to a multiple of 8; then blocks
block = head: 56 bytes; then one zstd frame with a content checksum: records, at most {} KiB of them
```

A file's head: magic `89 77 65 66 74 0d 0a 1a`, version {}.{} (2 + 2), byte order 0x01020304 (4), length of the head (4), of
the name (4), of the topology (4), what recording added to a post and to a poll in ns (4 + 4; 0: not measured), clock
(1: {}), whether addresses are pseudonyms (1), whether it was cut from a longer
trace (1), zeros (5), CRC-32 of these 48 bytes XOR that of what follows in the head (4; its own bytes are taken as 0). A
reader refuses another major version. A new minor version adds types of records, and fields at the end of those without a
tail.

A block's head: magic `b1 77 65 66 74 62 6c 6b`, kind (4: 1 records, 2 the file's end), thread (4), blocks before it (8), earliest
and latest time (8 + 8), records (4), their bytes (4), bytes of the frame (4), CRC-32 of this head (4). Blocks stand for
themselves: behind a damaged one reading goes on with the next, and the numbers of blocks tell what is missing. A file
without its last block is one whose writer was stopped; what it has can be read.

A record: type (2), bytes (2, a multiple of 8), thread (4), time (8), then its fields. Types that a reader does not know are
passed over and counted. Payload is in no record.

## JSON lines

`weft trace dump --format json` writes every byte of that as lines, `weft trace import` reads them: the result is the same file. A
line for the head, one for each block (`{{"block":"records","by":2}}`, at last `{{"block":"end"}}`; `{{"block":"lost","blocks":1}}`
where blocks were lost), one for each record: `type`, `by` (the thread), `time_ns`, and the fields below; of a text `text`, of
segments `segments`. A record whose bytes do not follow from its fields has `raw` instead, its bytes behind the head. Numbers
beyond 2^53 are texts.
)";

}  // namespace

std::string trace_page() {
  std::string out = fmt::format(kIntroduction, trace::kMaxBlockBytes >> 10U, trace::kMajorVersion,
                                trace::kMinorVersion, words_text(trace::clock_field()));
  out += sections_text(trace::lines_format(), "present") +
         "\n## Keys of counts\n\n`weft trace info FILE --json FILE` writes one JSON object.\n" +
         sections_text(trace::summary_format(), "present") + "\n## Records\n";
  for (const trace::RecordForm& form : trace::record_forms()) {
    out += fmt::format("\n### `{}`: type {}, {} bytes\n\n{}.{}\n", form.name,
                       static_cast<unsigned>(form.type), form.bytes, form.meaning,
                       tail_text(form.tail));
    if (!form.fields.empty()) out += "\n" + fields_text(form.fields);
    if (form.tail == trace::Tail::kSegments) {
      out += fmt::format("\nA segment, {} bytes:\n\n{}", sizeof(trace::Segment),
                         fields_text(trace::segment_fields()));
    }
  }
  return out;
}

}  // namespace weft
