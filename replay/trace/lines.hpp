#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "replay/trace/reader.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

// The JSON-lines form of a trace, without loss: a line for the file's head, one for each block, one
// for each record, each an object.
//
//   {"format":"weft.trace/1","clock":"monotonic_raw","salted":true,...,"tool":"weft 0.1.0"}
//   {"block":"records","by":1}
//   {"type":"mark","by":1,"time_ns":1234,"text":"warm-up ends"}
//   {"block":"end"}
//
// Where blocks of the file were lost stands {"block":"lost","blocks":1}.
// A record whose bytes do not follow from its fields (of an unknown type, shorter or longer than
// its fields are, with text that is not UTF-8) has "raw": its bytes behind the head, in
// hexadecimal. Numbers beyond 2^53 are texts: not every reader of JSON keeps them.
namespace weft::trace {

inline constexpr const char* kLinesFormat = "weft.trace/1";

/// Each appends one line with its end.
void append_head_line(std::string& out, const FileFacts& facts);
void append_block_line(std::string& out, BlockKind kind, std::uint32_t thread);
void append_lost_line(std::string& out, std::uint64_t blocks);
void append_record_line(std::string& out, std::span<const std::byte> record);

/// The same for people: "12.345678901 s  by 1  post  id=0x1 bytes=64 ...".
void append_record_text(std::string& out, std::span<const std::byte> record);

/// The keys of each kind of line; a record has its fields' beside (fields.hpp).
std::vector<FormatSection> lines_format();

/// Writes the trace that a JSON-lines file is; "-" is no file here. Throws InputError with file and
/// line.
void trace_of_lines(const std::string& lines, const std::string& path);

}  // namespace weft::trace
