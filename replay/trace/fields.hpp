#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "replay/trace/record.hpp"

namespace weft::trace {

/// A number and the word for it in texts.
struct Word {
  std::uint64_t value;
  std::string_view word;
};

/// How a field's number is written in texts.
enum class Form : std::uint8_t {
  kNumber,
  kSigned,
  kHex,    ///< "0x1f": what is compared, not counted
  kName,   ///< an object's number; null for kNone
  kWord,   ///< one of the field's words, or a number that has none
  kFlags,  ///< words of its bits, joined by '|'
  kZero,   ///< fills a record up; not written
};

/// What merging and scrubbing have to know of a field.
enum class Role : std::uint8_t {
  kPlain,
  kObject,           ///< names an object of this trace: a merge gives it another number
  kTime,             ///< of the host's clock: a merge shifts it
  kAddress,          ///< of memory: its place in a page is no secret
  kAddressOrOffset,  ///< an address where the region named in the same record or segment is kNone
  kGuid,
  kPort,  ///< a LID, or a GID's pseudonym
  kKey,
  kId,  ///< of a work request: programs put pointers there
  kProcess,
};

struct Field {
  std::string_view name{};
  std::uint16_t offset{0};
  std::uint8_t bytes{8};
  Form form{Form::kNumber};
  Role role{Role::kPlain};
  std::span<const Word> words{};
  std::string_view meaning{};
};

enum class Tail : std::uint8_t { kNothing, kText, kSegments };

/// A type of record: the only place where its fields' names stand. What writes and reads texts,
/// merges, scrubs and documents goes by these tables.
struct RecordForm {
  RecordType type;
  std::string_view name;
  std::size_t bytes;  ///< of the fixed part, head included
  Tail tail;
  std::span<const Field> fields;  ///< behind the head, in order, without a gap
  std::string_view meaning;
};

std::span<const RecordForm> record_forms();
/// nullptr: a type that this version does not know.
const RecordForm* find_form(RecordType type);
const RecordForm* find_form(std::string_view name);

/// The words of a file head's clock.
const Field& clock_field();
/// The fields of a Segment.
std::span<const Field> segment_fields();
/// The field that says whether a kAddressOrOffset field of the same table holds an address: the
/// region's name, kNone where it does.
const Field& region_of(std::span<const Field> fields);

/// A field's number; a signed one as its 64 bits. `record` begins with the table's struct.
std::uint64_t field_value(std::span<const std::byte> record, const Field& field);
/// The lower bytes of `value`, as many as the field has.
void set_field(std::span<std::byte> record, const Field& field, std::uint64_t value);

/// The field's word for a value; empty if it has none.
std::string_view word_of(const Field& field, std::uint64_t value);

std::string_view opcode_name(Opcode opcode);
/// As libibverbs names ibv_wc_status; "" for one that it does not have.
std::string_view status_name(std::uint8_t status);

}  // namespace weft::trace
