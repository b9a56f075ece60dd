#include "sim/report/perfetto.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// A message in protobuf's wire format, field by field. No library: these few messages are all that
/// weft writes, and it is built without protobuf too.
class Message {
 public:
  void number(std::uint32_t field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3U);
    varint(value);
  }
  void real(std::uint32_t field, double value) {
    varint(std::uint64_t{field} << 3U | 1U);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (unsigned byte = 0; byte < sizeof bits; ++byte) {
      bytes_ += static_cast<char>(bits >> (8 * byte) & 0xffU);
    }
  }
  void text(std::uint32_t field, std::string_view value) {
    varint(std::uint64_t{field} << 3U | 2U);
    varint(value.size());
    bytes_ += value;
  }
  void message(std::uint32_t field, const Message& value) { text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>(value | 0x80U);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// Numbers of fields and values, by message (protos/perfetto/trace, google/perfetto).
namespace trace {
constexpr std::uint32_t kPacket = 1;
}
namespace packet {
constexpr std::uint32_t kTimestamp = 8;
constexpr std::uint32_t kSequence = 10;
constexpr std::uint32_t kTrackEvent = 11;
constexpr std::uint32_t kInternedData = 12;
constexpr std::uint32_t kSequenceFlags = 13;
constexpr std::uint32_t kTrackDescriptor = 60;
constexpr std::uint64_t kStateCleared = 1;
constexpr std::uint64_t kNeedsState = 2;
}  // namespace packet
namespace event {
constexpr std::uint32_t kAnnotation = 4;
constexpr std::uint32_t kType = 9;
constexpr std::uint32_t kNameIid = 10;
constexpr std::uint32_t kTrack = 11;
constexpr std::uint32_t kCounterValue = 44;  // a double
constexpr std::uint64_t kBegin = 1;
constexpr std::uint64_t kEnd = 2;
constexpr std::uint64_t kCounter = 4;
}  // namespace event
namespace annotation {
constexpr std::uint32_t kUint = 3;
constexpr std::uint32_t kName = 10;
}  // namespace annotation
namespace descriptor {
constexpr std::uint32_t kUuid = 1;
constexpr std::uint32_t kName = 2;
constexpr std::uint32_t kParent = 5;
constexpr std::uint32_t kCounter = 8;
}  // namespace descriptor
namespace counter {
constexpr std::uint32_t kUnitName = 6;
}
namespace interned {
constexpr std::uint32_t kEventName = 2;
constexpr std::uint32_t kIid = 1;
constexpr std::uint32_t kName = 2;
}  // namespace interned

std::int64_t ps(Time time) { return time.since_start().count_ps(); }

Message annotated(std::string_view name, std::int64_t value) {
  Message out;
  out.text(annotation::kName, name);
  out.number(annotation::kUint, static_cast<std::uint64_t>(value));
  return out;
}

/// "allreduce, 64 MiB, gdr, Ring Simple"; and if it has no end, that.
std::string name_of(const ResultRow& row) {
  std::string out = fmt::format("{}, {}, {}, {} {}", row.op, format_size(Bytes{row.bytes}),
                                row.memory_path, row.algo, row.proto);
  if (row.timeline->left_out > 0) {
    out += fmt::format(" (its first {} slices; {} are left out)", row.timeline->slices.size(),
                       row.timeline->left_out);
  }
  return out;
}

/// Writes the packets of one trace.
class Writer {
 public:
  void add(const ResultRow& row) {
    const Timeline& timeline = *row.timeline;
    const std::uint64_t root = uuids_++;
    add_track(root, 0, name_of(row));
    first_track_ = uuids_;
    uuids_ += timeline.tracks.size();
    for (std::size_t t = 0; t < timeline.tracks.size(); ++t) {
      const Timeline::Track& track = timeline.tracks[t];
      add_track(first_track_ + t,
                track.parent == Timeline::kNone ? root : first_track_ + track.parent, track.name);
    }
    add_names(timeline.names);
    add_slices(timeline.slices);
    if (!timeline.series.empty()) add_series(root, timeline);
  }
  const std::string& text() const { return out_.bytes(); }

 private:
  /// Each server's use, in percent, below a group of them all.
  void add_series(std::uint64_t root, const Timeline& timeline) {
    const std::uint64_t group = uuids_++;
    std::string name = fmt::format("in use, means over {:.6g} ns", timeline.step.as_ns());
    if (timeline.series_left_out > 0) {
      name += fmt::format(" (the {} used most; {} are left out)", timeline.series.size(),
                          timeline.series_left_out);
    }
    add_track(group, root, name);
    Message unit;
    unit.text(counter::kUnitName, "%");
    for (const Timeline::Series& series : timeline.series) {
      const std::uint64_t track = uuids_++;
      add_track(track, group, series.server, &unit);
      Time at{};
      for (const double use : series.use) {
        Message e;
        e.number(event::kType, event::kCounter);
        e.number(event::kTrack, track);
        e.real(event::kCounterValue, 100 * use);
        add_packet(at, e);
        at = at + timeline.step;
      }
    }
  }

  /// Of tracks of one name below one the second and all others are numbered: viewers would take
  /// them for one.
  void add_track(std::uint64_t uuid, std::uint64_t parent, const std::string& name,
                 const Message* of_counter = nullptr) {
    Message d;
    if (of_counter != nullptr) d.message(descriptor::kCounter, *of_counter);
    d.number(descriptor::kUuid, uuid);
    if (parent != 0) d.number(descriptor::kParent, parent);
    const unsigned alike = ++alike_[{parent, name}];
    d.text(descriptor::kName, alike == 1 ? name : fmt::format("{} ({})", name, alike));
    Message p = a_packet(0);
    p.message(packet::kTrackDescriptor, d);
    out_.message(trace::kPacket, p);
  }

  /// Every name once, from number 1 on; slices name its number. What was told before is forgotten.
  void add_names(const std::vector<std::string>& all) {
    Message names;
    for (std::size_t i = 0; i < all.size(); ++i) {
      Message name;
      name.number(interned::kIid, i + 1);
      name.text(interned::kName, all[i]);
      names.message(interned::kEventName, name);
    }
    Message p = a_packet(packet::kStateCleared);
    p.message(packet::kInternedData, names);
    out_.message(trace::kPacket, p);
  }

  /// Begins and ends in the order of time; of one instant ends first, as slices do not overlap.
  void add_slices(const std::vector<Timeline::Slice>& slices) {
    struct End {
      Time at;
      bool begins;
      std::size_t slice;
    };
    std::vector<End> ends;
    ends.reserve(2 * slices.size());
    for (std::size_t i = 0; i < slices.size(); ++i) {
      ends.push_back({slices[i].begin, true, i});
      ends.push_back({slices[i].end, false, i});
    }
    std::ranges::stable_sort(ends, {}, [](const End& e) { return std::tuple{e.at, e.begins}; });
    for (const End& e : ends) add_event(slices[e.slice], e.at, e.begins);
  }

  void add_event(const Timeline::Slice& slice, Time at, bool begins) {
    Message e;
    e.number(event::kType, begins ? event::kBegin : event::kEnd);
    e.number(event::kTrack, first_track_ + slice.track);
    if (begins) {
      e.number(event::kNameIid, std::uint64_t{slice.name} + 1);
      e.message(event::kAnnotation, annotated("picoseconds", ps(slice.end) - ps(slice.begin)));
      if (slice.bytes > 0) e.message(event::kAnnotation, annotated("bytes", slice.bytes));
    }
    add_packet(at, e);
  }

  void add_packet(Time at, const Message& an_event) {
    constexpr std::int64_t kPsPerNs = 1000;
    Message p = a_packet(packet::kNeedsState);
    p.number(packet::kTimestamp, static_cast<std::uint64_t>(ps(at) / kPsPerNs));
    p.message(packet::kTrackEvent, an_event);
    out_.message(trace::kPacket, p);
  }

  /// Readers pass over a packet that needs state before one that clears it.
  static Message a_packet(std::uint64_t flags) {
    Message p;
    p.number(packet::kSequence, 1);
    if (flags != 0) p.number(packet::kSequenceFlags, flags);
    return p;
  }

  Message out_;
  std::map<std::pair<std::uint64_t, std::string>, unsigned> alike_;  // tracks, by parent and name
  std::uint64_t uuids_{1};  // the next; 0 is Perfetto's own
  std::uint64_t first_track_{0};
};

}  // namespace

std::string perfetto_trace(const RunResult& result) {
  Writer writer;
  for (const ResultRow& row : result.rows) {
    if (row.timeline) writer.add(row);
  }
  return writer.text();
}

}  // namespace weft
