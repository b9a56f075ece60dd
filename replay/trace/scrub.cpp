#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "replay/trace/carried_losses.hpp"
#include "replay/trace/fields.hpp"
#include "replay/trace/pseudonym.hpp"
#include "replay/trace/transform.hpp"
#include "replay/trace/writer.hpp"

namespace weft::trace {
namespace {

class Scrubber {
 public:
  Scrubber(const std::string& salt, ScrubResult& result) : salt_{salt_of(salt)}, result_{&result} {}

  // The record with pseudonyms, and nothing in it that its fields do not name.
  std::vector<std::byte> scrubbed(RecordView record, const RecordForm& form) {
    std::vector<std::byte> fixed(form.bytes);
    std::memcpy(fixed.data(), record.bytes().data(), sizeof(RecordHead));
    put_fields(record.bytes(), fixed, form.fields, form.name);
    std::vector<std::byte> tail;
    if (form.tail == Tail::kText) tail = name_pseudonym(record, form);
    for (std::size_t i = 0; form.tail == Tail::kSegments && i < record.as<Post>().segments; ++i) {
      const Segment segment = record.segment(i);
      std::vector<std::byte> put(sizeof segment);
      put_fields(std::as_bytes(std::span(&segment, 1)), put, segment_fields(), "segment");
      tail.insert(tail.end(), put.begin(), put.end());
    }
    return whole_record(fixed, tail);
  }

 private:
  void put_fields(std::span<const std::byte> from, std::span<std::byte> to,
                  std::span<const Field> fields, std::string_view form) {
    for (const Field& field : fields) {
      if (field.form == Form::kZero) continue;
      const std::uint64_t value = field_value(from, field);
      const bool is_secret =
          field.role == Role::kAddressOrOffset
              ? field_value(from, region_of(fields)) == kNone
              : field.role > Role::kAddressOrOffset || field.role == Role::kAddress;
      set_field(to, field, is_secret ? pseudonym(field, value) : value);
      if (is_secret && value != 0) ++result_->replaced[fmt::format("{}.{}", form, field.name)];
    }
  }

  std::uint64_t pseudonym(const Field& field, std::uint64_t value) const {
    const Salt salt{salt_[0], salt_[1] ^ kind_of(field.role) << 32U};
    if (field.role == Role::kAddress || field.role == Role::kAddressOrOffset) {
      return address_pseudonym(salt, value);
    }
    // A LID that one record names as a port's and another one as the peer's stays one.
    if (field.role == Role::kPort) return pseudonym_of(salt, value, value <= 0xffff ? 16 : 64);
    return pseudonym_of(salt, value, 8U * field.bytes);
  }

  // Two fields of a kind have one pseudonym for one number.
  static std::uint64_t kind_of(Role role) {
    return static_cast<std::uint64_t>(role == Role::kAddressOrOffset ? Role::kAddress : role);
  }

  std::vector<std::byte> name_pseudonym(RecordView record, const RecordForm& form) {
    const auto tail = record.bytes().subspan(form.bytes);
    const void* const data = tail.data();
    std::string_view text(static_cast<const char*>(data), tail.size());
    text = text.substr(0, text.find_last_not_of('\0') + 1);
    if (text.empty()) return {};
    ++result_->replaced[fmt::format("{}.text", form.name)];
    const std::string name = fmt::format("{}-{:012x}", form.name, siphash(salt_, text) >> 16U);
    const auto bytes = std::as_bytes(std::span(name));
    return {bytes.begin(), bytes.end()};
  }

  Salt salt_;
  ScrubResult* result_;
};

}  // namespace

ScrubResult scrub_trace(const std::string& path, const std::string& salt,
                        const std::string& output) {
  TraceReader reader(path);
  FileFacts facts = reader.facts();
  ScrubResult result;
  result.had_topology = !facts.topology.empty();
  facts.topology = {};
  facts.is_salted = true;
  TraceWriter writer(output, facts);
  Scrubber scrubber(salt, result);
  CarriedLosses losses(reader);
  while (const auto block = reader.next()) {
    writer.lose(losses.blocks());
    // Texts may become longer: a block can become two.
    std::vector<std::byte> records;
    for_each_record(block->records, [&](RecordView record) {
      const RecordForm* const form = find_form(record.type());
      if (form == nullptr) {
        ++result.source.left_out;
        return;
      }
      const std::vector<std::byte> put = scrubber.scrubbed(record, *form);
      if (records.size() + put.size() > kMaxBlockBytes) {
        writer.block(block->head.thread, records);
        records.clear();
      }
      records.insert(records.end(), put.begin(), put.end());
    });
    writer.block(block->head.thread, records);
  }
  writer.lose(losses.blocks());
  if (reader.is_ended()) writer.end();
  writer.commit();
  result.source.file = path;
  result.source.losses = reader.losses();
  result.source.is_ended = reader.is_ended();
  return result;
}

}  // namespace weft::trace
