#include "replay/trace/writer.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "sim/base/error.hpp"

namespace weft::trace {

TraceWriter::TraceWriter(const std::string& path, const FileFacts& facts) : out_{path} {
  if (!encoder_.is_ready()) throw InputError(path + ": no memory to write it with");
  std::vector<std::byte> head(file_head_bytes(facts));
  if (!write_file_head(facts, head)) {
    throw InputError(fmt::format("{}: a trace holds a topology of at most {} MiB", path,
                                 kMaxTopologyBytes >> 20U));
  }
  write(head);
}

void TraceWriter::write(std::span<const std::byte> bytes) {
  const void* const data = bytes.data();
  out_.write({static_cast<const char*>(data), bytes.size()});
}

void TraceWriter::block(std::uint32_t thread, std::span<const std::byte> records) {
  if (records.empty()) return;
  const auto bytes = encoder_.block(thread, records);
  if (bytes.empty()) throw std::logic_error("TraceWriter: records that are no block");
  write(bytes);
}

void TraceWriter::add(std::span<const std::byte> record) {
  RecordHead head{};
  std::memcpy(&head, record.data(), sizeof head);
  std::vector<std::byte>& pending = pending_[head.thread];
  if (pending.size() + record.size() > kMaxBlockBytes) {
    block(head.thread, pending);
    pending.clear();
  }
  pending.insert(pending.end(), record.begin(), record.end());
}

void TraceWriter::lose(std::uint64_t blocks) {
  if (blocks == 0) return;
  flush();
  encoder_.skip(blocks);
}

void TraceWriter::flush() {
  for (const auto& [thread, records] : pending_) block(thread, records);
  pending_.clear();
}

void TraceWriter::end() {
  flush();
  write(encoder_.end());
}

void TraceWriter::commit() {
  flush();
  out_.commit();
}

std::vector<std::byte> whole_record(std::span<const std::byte> fixed,
                                    std::span<const std::byte> tail) {
  const std::size_t bytes = (fixed.size() + tail.size() + 7) / 8 * 8;
  if (bytes > kMaxRecordBytes) {
    throw InputError(fmt::format("a record takes at most {} bytes", kMaxRecordBytes / 8 * 8));
  }
  std::vector<std::byte> record(bytes);
  std::copy(fixed.begin(), fixed.end(), record.begin());
  std::copy(tail.begin(), tail.end(), record.begin() + static_cast<std::ptrdiff_t>(fixed.size()));
  const auto length = static_cast<std::uint16_t>(bytes);
  std::memcpy(record.data() + offsetof(RecordHead, bytes), &length, sizeof length);
  return record;
}

}  // namespace weft::trace
