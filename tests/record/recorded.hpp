// What a recording holds, for tests that look at all of it.
#pragma once

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "replay/trace/block.hpp"

namespace weft::test {

struct Recorded {
  std::vector<std::vector<std::byte>> records;
  bool is_sound{false};  ///< every byte of the file belongs to a whole block
  bool is_ended{false};
  trace::FileHead head{};

  template <typename T>
  std::vector<T> all(trace::RecordType type) const {
    std::vector<T> out;
    for (const std::vector<std::byte>& record : records) {
      trace::RecordHead at{};
      std::memcpy(&at, record.data(), sizeof at);
      if (at.type != type) continue;
      T one{};
      std::memcpy(&one, record.data(), sizeof one);
      out.push_back(one);
    }
    return out;
  }
  std::vector<trace::Post> posts() const { return all<trace::Post>(trace::RecordType::kPost); }
  std::vector<trace::Completion> completions() const {
    return all<trace::Completion>(trace::RecordType::kCompletion);
  }
  /// How many of an operation were posted.
  std::size_t count(trace::Opcode opcode) const {
    std::size_t out = 0;
    for (const trace::Post& post : posts()) out += post.opcode == opcode ? 1 : 0;
    return out;
  }
};

inline Recorded read_recorded(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  std::span<const std::byte> rest = std::as_bytes(std::span(text));
  Recorded out;
  trace::FileFacts facts;
  if (trace::read_file_head(rest, out.head) != trace::HeadFault::kSound) return out;
  if (trace::read_file_facts(out.head, rest, facts) != trace::HeadFault::kSound) return out;
  rest = rest.subspan(out.head.head_bytes);
  trace::BlockDecoder decoder;
  trace::BlockHead head{};
  while (trace::read_block_head(rest, head)) {
    rest = rest.subspan(sizeof head);
    if (head.kind == trace::BlockKind::kEnd) {
      out.is_ended = true;
      break;
    }
    std::span<const std::byte> records = decoder.records(head, rest.first(head.compressed_bytes));
    if (records.empty()) return out;
    while (!records.empty()) {
      const std::span<const std::byte> one = records.first(trace::record_bytes(records));
      out.records.emplace_back(one.begin(), one.end());
      records = records.subspan(one.size());
    }
    rest = rest.subspan(head.compressed_bytes);
  }
  out.is_sound = rest.empty();
  return out;
}

}  // namespace weft::test
