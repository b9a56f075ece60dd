#include "replay/trace/reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "replay/trace/fields.hpp"
#include "sim/base/error.hpp"

namespace weft::trace {
namespace {

// More than a block of the largest size: most blocks are read with one call.
constexpr std::size_t kWindow = 2U << 20;
constexpr std::size_t kMostStreams = 4096;  // each holds a block
static_assert(kWindow > sizeof(BlockHead) + kMaxCompressedBytes);

int open_for_reading(const std::string& path, std::uint64_t& bytes) {
  const auto fail = [&](const char* what) {
    throw InputError(path + ": cannot be " + what + ": " + std::strerror(errno));
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0 && errno == ENOENT) throw InputError(path + ": no such file");
  if (file < 0) fail("opened");
  struct stat status {};
  if (::fstat(file, &status) != 0) fail("read");
  if (!S_ISREG(status.st_mode)) {
    ::close(file);
    throw InputError(path + ": a trace is read from a file, not from a folder, pipe or device");
  }
  bytes = static_cast<std::uint64_t>(status.st_size);
  return file;
}

}  // namespace

Segment RecordView::segment(std::size_t index) const {
  return read<Segment>(sizeof(Post) + index * sizeof(Segment));
}

bool is_sound(std::span<const std::byte> record) {
  const RecordHead head = RecordView(record).head();
  const RecordForm* const form = find_form(head.type);
  if (form == nullptr) return true;
  if (record.size() < form->bytes) return false;
  if (form->tail != Tail::kSegments) return true;
  const Post post = RecordView(record).as<Post>();
  return record.size() >= sizeof(Post) + post.segments * sizeof(Segment);
}

TraceReader::TraceReader(const std::string& path)
    : path_{path}, file_{open_for_reading(path, file_bytes_)} {
  if (!decoder_.is_ready()) throw InputError(path_ + ": no memory to read it with");
  try {
    read_head();
  } catch (...) {
    ::close(file_);
    throw;
  }
}

TraceReader::~TraceReader() { ::close(file_); }

std::span<const std::byte> TraceReader::bytes_at(std::uint64_t offset, std::size_t most) {
  const std::uint64_t left = file_bytes_ - std::min(offset, file_bytes_);
  const std::size_t wanted = std::min<std::uint64_t>(most, left);
  const bool is_there =
      offset >= window_at_ && offset - window_at_ + wanted <= window_.size() && !window_.empty();
  if (!is_there) {
    window_.resize(std::min<std::uint64_t>(std::max(most, kWindow), left));
    window_at_ = offset;
    std::size_t got = 0;
    while (got < window_.size()) {
      const ssize_t n = ::pread(file_, window_.data() + got, window_.size() - got,
                                static_cast<off_t>(offset + got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw InputError(path_ + ": cannot be read: " + std::strerror(errno));
      if (n == 0) break;
      got += static_cast<std::size_t>(n);
    }
    window_.resize(got);
  }
  const std::span<const std::byte> there = std::span(window_).subspan(offset - window_at_);
  return there.first(std::min(wanted, there.size()));
}

void TraceReader::read_head() {
  FileHead head{};
  const std::string too_short = fmt::format(
      "{}: ends within its head, after {} bytes: nothing was recorded", path_, file_bytes_);
  HeadFault fault = read_file_head(bytes_at(0, sizeof head), head);
  if (fault == HeadFault::kSound) {
    const auto bytes = bytes_at(0, head.head_bytes);
    head_bytes_.assign(bytes.begin(), bytes.end());
    fault = read_file_facts(head, head_bytes_, facts_);
  }
  switch (fault) {
    case HeadFault::kSound:
      minor_ = head.minor;
      at_ = head.head_bytes;
      return;
    case HeadFault::kNoTrace:
      throw InputError(path_ + ": is no verbs trace");
    case HeadFault::kForeignByteOrder:
      throw InputError(path_ + ": a trace is little-endian; this one is not, or is damaged");
    case HeadFault::kVersion:
      throw InputError(fmt::format("{}: version {}.{} of the format; this weft reads version {}",
                                   path_, head.major, head.minor, kMajorVersion));
    case HeadFault::kTooShort:
      throw InputError(too_short);
    case HeadFault::kDamaged:
      facts_ = {.tool = {}, .topology = {}, .clock = ClockKind::kUnknown, .is_salted = false};
      damage_ = Loss{.what = "the file's head is damaged"};
      at_ = next_block_head(kFileMagic.size());
  }
}

std::uint64_t TraceReader::next_block_head(std::uint64_t from) {
  BlockHead head{};
  while (from + sizeof head <= file_bytes_) {
    // What is at hand first, or each false magic would read a window anew.
    const bool is_at_hand = from >= window_at_ && from - window_at_ + sizeof head <= window_.size();
    const auto bytes = bytes_at(from, is_at_hand ? window_.size() - (from - window_at_) : kWindow);
    if (bytes.empty()) break;  // the file became shorter
    const auto magic = std::as_bytes(std::span(kBlockMagic));
    const auto found = std::search(bytes.begin(), bytes.end(), magic.begin(), magic.end());
    const auto skipped = static_cast<std::uint64_t>(found - bytes.begin());
    if (found == bytes.end()) {
      // A magic may begin in the last bytes.
      from += std::max<std::uint64_t>(bytes.size(), magic.size()) - magic.size() + 1;
      continue;
    }
    from += skipped;
    if (read_block_head(bytes_at(from, sizeof head), head)) return from;
    ++from;
  }
  return file_bytes_;
}

void TraceReader::lose(Loss loss) {
  ++losses_.places;
  losses_.blocks += loss.blocks;
  losses_.records += loss.records;
  losses_.bytes += loss.bytes;
  if (losses_.first.size() < kMostLosses) losses_.first.push_back(std::move(loss));
}

// What was damaged before this point ends here; `blocks` that should have stood there do not.
void TraceReader::close_damage(std::uint64_t blocks) {
  if (damage_) {
    damage_->bytes = at_ - damage_->offset;
    damage_->blocks = std::max(damage_->blocks, blocks);
    lose(*std::exchange(damage_, std::nullopt));
  } else if (blocks > 0) {
    lose({.offset = at_, .blocks = blocks, .what = "blocks are missing"});
  }
}

void TraceReader::begin_damage(std::uint64_t blocks, std::uint64_t records, const char* what) {
  if (!damage_) damage_ = Loss{.offset = at_, .what = what};
  damage_->blocks += blocks;
  damage_->records += records;
}

// The block whose head stands here, with its records; nothing where it is damaged.
std::optional<Block> TraceReader::block_here(const BlockHead& head) {
  const auto data = bytes_at(at_ + sizeof head, head.compressed_bytes);
  if (data.size() < head.compressed_bytes) {
    begin_damage(1, head.records, "the file ends within a block");
    return std::nullopt;
  }
  Block block{.head = head, .offset = at_, .records = decoder_.records(head, data)};
  if (!block.records.empty()) return block;
  begin_damage(1, head.records, "damaged");
  return std::nullopt;
}

void TraceReader::read_end(const BlockHead& head) {
  close_damage(head.sequence > sequence_ ? head.sequence - sequence_ : 0);
  at_ += sizeof head;
  is_ended_ = true;
  if (at_ < file_bytes_) {
    lose({.offset = at_, .bytes = file_bytes_ - at_, .what = "bytes behind the last block"});
    at_ = file_bytes_;
  }
}

std::optional<Block> TraceReader::next() {
  while (at_ < file_bytes_) {
    BlockHead head{};
    if (!read_block_head(bytes_at(at_, sizeof head), head)) {
      const bool is_rest = file_bytes_ - at_ < sizeof head;
      begin_damage(0, 0, is_rest ? "the file ends within a block" : "damaged");
      at_ = next_block_head(at_ + 1);
      continue;
    }
    if (head.kind == BlockKind::kEnd) {
      read_end(head);
      return std::nullopt;
    }
    const bool is_known = head.kind == BlockKind::kRecords;
    const bool is_in_order = head.sequence >= sequence_;
    std::optional<Block> block = is_known && is_in_order ? block_here(head) : std::nullopt;
    if (!block) {
      if (!is_known) begin_damage(0, head.records, "a block of a kind that this weft doesn't know");
      if (is_known && !is_in_order) begin_damage(0, 0, "a block that was read before");
      at_ = next_block_head(at_ + sizeof head);
      continue;
    }
    close_damage(head.sequence - sequence_);
    sequence_ = head.sequence + 1;
    at_ += sizeof head + head.compressed_bytes;
    check_records(*block);
    return block;
  }
  close_damage(0);
  return std::nullopt;
}

Block TraceReader::block_at(std::uint64_t offset) {
  BlockHead head{};
  if (read_block_head(bytes_at(offset, sizeof head), head)) {
    const auto data = bytes_at(offset + sizeof head, head.compressed_bytes);
    const Block block{.head = head, .offset = offset, .records = decoder_.records(head, data)};
    if (!block.records.empty()) return block;
  }
  throw InputError(
      fmt::format("{}: the block at byte {} changed while it was read", path_, offset));
}

void TraceReader::check_records(const Block& block) {
  std::uint64_t unsound = 0;
  for (auto left = block.records; !left.empty(); left = left.subspan(record_bytes(left))) {
    unsound += is_sound(left.first(record_bytes(left))) ? 0U : 1U;
  }
  if (unsound == 0) return;
  lose({.offset = block.offset, .records = unsound, .what = "records shorter than their type"});
}

OrderedRecords::OrderedRecords(const std::string& path) : reader_{path} {
  std::map<std::uint32_t, std::size_t> stream_of;
  while (const std::optional<Block> block = reader_.next()) {
    const std::uint32_t thread = block->head.thread;
    const auto [at, is_new] = stream_of.try_emplace(thread, streams_.size());
    if (streams_.size() >= kMostStreams) {
      throw InputError(fmt::format("{}: blocks of more than {} threads", path, kMostStreams));
    }
    if (is_new || thread == kNone) {  // a mixed block is not in one order with the next one
      at->second = streams_.size();
      streams_.emplace_back();
      turns_.push({block->head.first_ns, at->second});
    }
    streams_[at->second].blocks.push_back(block->offset);
  }
}

// To the next sound record of a stream, in this block or a later one.
bool OrderedRecords::find_record(Stream& stream) {
  for (;;) {
    while (stream.at < stream.records.size()) {
      const auto rest = std::span<const std::byte>(stream.records).subspan(stream.at);
      if (is_sound(rest.first(record_bytes(rest)))) return true;
      stream.at += record_bytes(rest);
    }
    stream.records.clear();
    stream.at = 0;
    if (stream.next_block == stream.blocks.size()) {
      stream.records.shrink_to_fit();
      return false;
    }
    const Block block = reader_.block_at(stream.blocks[stream.next_block++]);
    stream.records.assign(block.records.begin(), block.records.end());
  }
}

std::optional<RecordView> OrderedRecords::next() {
  const auto record_of = [](const Stream& stream) {
    const auto rest = std::span<const std::byte>(stream.records).subspan(stream.at);
    return RecordView(rest.first(record_bytes(rest)));
  };
  if (current_) {
    Stream& stream = streams_[*current_];
    stream.at += record_of(stream).bytes().size();
    if (find_record(stream)) turns_.push({record_of(stream).head().time_ns, *current_});
    current_.reset();
  }
  while (!turns_.empty()) {
    const Turn turn = turns_.top();
    turns_.pop();
    Stream& stream = streams_[turn.stream];
    if (stream.records.empty()) {
      // Its first block opens only now, at the earliest time of its records.
      if (find_record(stream)) turns_.push({record_of(stream).head().time_ns, turn.stream});
      continue;
    }
    current_ = turn.stream;
    return record_of(stream);
  }
  return std::nullopt;
}

}  // namespace weft::trace
