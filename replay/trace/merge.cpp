#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "replay/trace/carried_losses.hpp"
#include "replay/trace/connect.hpp"
#include "replay/trace/fields.hpp"
#include "replay/trace/match.hpp"
#include "replay/trace/transform.hpp"
#include "replay/trace/writer.hpp"
#include "sim/base/error.hpp"
#include "sim/base/version.hpp"

namespace weft::trace {
namespace {

// Of each queue pair: more hardly make the bounds tighter, and memory stays bounded.
constexpr std::size_t kMostMatched = 1U << 14;
constexpr std::uint8_t kReliable = 2;  // IBV_QPT_RC
constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max() / 4;

// The operations of one end of a queue pair, by their number: when a send was posted and known to
// be done, when its receive at the other end. 0: not known.
struct Times {
  std::uint64_t posted{0};
  std::uint64_t done{0};
};
using Operations = std::vector<Times>;

struct RecordedPair {
  std::uint32_t domain{kNone};
  bool is_reliable{false};
  PairEnd end{};
  Operations sends{};
  Operations receives{};
};

struct FileFindings {
  std::string host;
  std::uint32_t hosts{0};
  std::uint32_t most_names{0};  // one above the largest name of an object
  std::map<std::uint32_t, RecordedPair> pairs;
  std::map<std::uint32_t, std::uint32_t> device_of_domain;
  std::map<std::uint32_t, std::vector<std::uint16_t>> lids;           // by device
  std::uint64_t until_ns{std::numeric_limits<std::uint64_t>::max()};  // of the first dropped record

  /// A Drop comes with the last record that was dropped: what others did since the first is
  /// miscounted.
  void forget_dropped() {
    for (auto& [name, pair] : pairs) {
      for (Operations* side : {&pair.sends, &pair.receives}) {
        for (Times& t : *side) t = t.done >= until_ns ? Times{} : t;
      }
    }
  }
};

class Survey {
 public:
  explicit Survey(FileFindings& out) : out_{&out} {}

  void take(RecordView record) {
    note_names(record);
    switch (record.type()) {
      case RecordType::kHost:
        // One that was merged before has several: none of them is its clock's.
        out_->host = out_->hosts++ == 0 ? record.text<Host>() : std::string_view{};
        return;
      case RecordType::kQueuePair: {
        const auto pair = record.as<QueuePair>();
        out_->pairs[pair.pair].domain = pair.domain;
        out_->pairs[pair.pair].end.number = pair.number;
        out_->pairs[pair.pair].is_reliable = pair.type == kReliable;
        matcher_.object(record);
        return;
      }
      case RecordType::kQueuePairState: {
        const auto state = record.as<QueuePairState>();
        if (state.peer_number == 0) return;
        out_->pairs[state.pair].end.peer_number = state.peer_number;
        out_->pairs[state.pair].end.peer_port = state.peer_port;
        return;
      }
      case RecordType::kProtectionDomain:
        out_->device_of_domain[record.as<ProtectionDomain>().domain] =
            record.as<ProtectionDomain>().device;
        return;
      case RecordType::kPort:
        out_->lids[record.as<Port>().device].push_back(record.as<Port>().lid);
        return;
      case RecordType::kDrop:
        out_->until_ns = std::min(out_->until_ns, record.as<Drop>().first_ns);
        return;
      case RecordType::kPost:
        matcher_.post(record);
        return;
      case RecordType::kCompletion:
        completion(record.as<Completion>(), matcher_.completion(record));
        return;
      default:
        return;
    }
  }

 private:
  void note_names(RecordView record) {
    const auto note = [&](std::uint64_t name) {
      if (name != kNone) {
        out_->most_names = std::max(out_->most_names, static_cast<std::uint32_t>(name) + 1);
      }
    };
    note(record.head().thread);
    const RecordForm* const form = find_form(record.type());
    if (form == nullptr) return;
    for (const Field& field : form->fields) {
      if (field.role == Role::kObject) note(field_value(record.bytes(), field));
    }
    for (std::size_t i = 0; form->tail == Tail::kSegments && i < record.as<Post>().segments; ++i) {
      note(record.segment(i).region);
    }
  }

  void completion(const Completion& completion, const std::optional<Matcher::Match>& match) {
    if (!match || completion.status != 0) return;
    for (const Pending& request : match->before) note(request, completion.head.time_ns);
    note(match->request, completion.head.time_ns);
  }

  void note(const Pending& request, std::uint64_t done_ns) {
    const bool is_receive = trace::is_receive(request.opcode);
    if (!is_receive && !is_received(request.opcode)) return;
    if (request.number >= kMostMatched || done_ns >= out_->until_ns) return;
    RecordedPair& pair = out_->pairs[request.pair];
    Operations& operations = is_receive ? pair.receives : pair.sends;
    if (operations.size() <= request.number) operations.resize(request.number + 1);
    operations[request.number] = {request.time_ns, done_ns};
  }

  FileFindings* out_;
  Matcher matcher_;
};

FileFindings findings_of(const std::string& path, Source& source) {
  FileFindings findings;
  OrderedRecords records(path);
  if (records.reader().facts().is_cut) {
    throw InputError(path +
                     ": is cut out of a longer trace, so its operations cannot be counted "
                     "from their queue pairs' begin: merge before cutting");
  }
  Survey survey(findings);
  while (const auto record = records.next()) survey.take(*record);
  const Losses& lost = records.reader().losses();
  if (lost.blocks > 0 || lost.records > 0) {
    throw InputError(path +
                     ": blocks of it are lost, so its operations cannot be counted and its clock "
                     "cannot be aligned");
  }
  findings.forget_dropped();
  source = {path, records.reader().losses(), records.reader().is_ended(), 0};
  return findings;
}

// Upper bounds of the difference between two clocks' shifts, by [from][to].
class Differences {
 public:
  explicit Differences(std::size_t clocks)
      : most_(clocks, std::vector<std::int64_t>(clocks, kUnbounded)) {
    for (std::size_t i = 0; i < clocks; ++i) most_[i][i] = 0;
  }

  /// shift(to) - shift(from) <= most.
  void bound(std::size_t from, std::size_t to, std::int64_t most) {
    most_[from][to] = std::min(most_[from][to], std::max(most, -kUnbounded));
  }

  /// Shortest paths (Floyd and Warshall).
  void close() {
    for (std::size_t via = 0; via < most_.size(); ++via) {
      for (std::size_t from = 0; from < most_.size(); ++from) {
        for (std::size_t to = 0; to < most_.size(); ++to) {
          if (most_[from][via] == kUnbounded || most_[via][to] == kUnbounded) continue;
          bound(from, to, most_[from][via] + most_[via][to]);
        }
      }
    }
  }

  std::int64_t most(std::size_t from, std::size_t to) const { return most_[from][to]; }

 private:
  std::vector<std::vector<std::int64_t>> most_;
};

class Alignment {
 public:
  Alignment(const std::vector<Source>& sources, const std::vector<FileFindings>& files)
      : sources_{&sources}, files_{&files}, clocks_(files.size()) {
    // Files of one host have one clock: the first of them stands for it.
    for (std::size_t i = 0; i < files.size(); ++i) {
      clocks_[i] = i;
      for (std::size_t k = 0; k < i && clocks_[i] == i; ++k) {
        if (!files[i].host.empty() && files[k].host == files[i].host) clocks_[i] = clocks_[k];
      }
    }
  }

  std::vector<HostClock> align() {
    Differences differences(files_->size());
    std::vector<HostClock> out(files_->size());
    match(differences, out);
    differences.close();
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i].file = (*sources_)[i].file;
      out[i].host = (*files_)[i].host;
      place(differences, i, out[i]);
    }
    return out;
  }

 private:
  void match(Differences& differences, std::vector<HostClock>& out) const {
    std::vector<PairEnd> ends;
    std::vector<std::pair<std::size_t, const RecordedPair*>> pairs;  // with their files
    for (std::size_t i = 0; i < files_->size(); ++i) {
      const FileFindings& file = (*files_)[i];
      for (const auto& [name, pair] : file.pairs) {
        if (!pair.is_reliable) continue;
        ends.push_back(pair.end);
        ends.back().lids = lids_of(file, pair);
        pairs.emplace_back(i, &pair);
      }
    }
    const std::vector<std::uint32_t> peers = connect(ends);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (peers[i] == kNone) continue;
      const auto [a, sender] = pairs[i];
      const auto [b, receiver] = pairs[peers[i]];
      if (a == b) continue;
      const std::uint64_t n = bound(differences, *sender, *receiver, clocks_[a], clocks_[b]);
      out[a].matched += n;
      out[b].matched += n;
    }
  }

  static std::vector<std::uint16_t> lids_of(const FileFindings& file, const RecordedPair& pair) {
    const auto device = file.device_of_domain.find(pair.domain);
    if (device == file.device_of_domain.end()) return {};
    const auto lids = file.lids.find(device->second);
    return lids == file.lids.end() ? std::vector<std::uint16_t>{} : lids->second;
  }

  // Of any times that a file may have, without overflow.
  static std::int64_t less(std::uint64_t a, std::uint64_t b) {
    const auto most = static_cast<std::uint64_t>(kUnbounded);
    return a >= b ? static_cast<std::int64_t>(std::min(a - b, most))
                  : -static_cast<std::int64_t>(std::min(b - a, most));
  }

  static std::uint64_t bound(Differences& differences, const RecordedPair& sender,
                             const RecordedPair& receiver, std::size_t from, std::size_t to) {
    const std::size_t n = std::min(sender.sends.size(), receiver.receives.size());
    std::uint64_t matched = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const Times& send = sender.sends[i];
      const Times& receive = receiver.receives[i];
      if (send.done == 0 || receive.done == 0) continue;
      ++matched;
      // receive.done + shift(to) >= send.posted + shift(from), and
      // send.done + shift(from) >= receive.posted + shift(to)
      differences.bound(to, from, less(receive.done, send.posted));
      differences.bound(from, to, less(send.done, receive.posted));
    }
    return matched;
  }

  void place(const Differences& differences, std::size_t file, HostClock& out) const {
    const std::size_t clock = clocks_[file];
    const std::size_t first = clocks_[0];
    const std::string& name = (*sources_)[file].file;
    if (differences.most(clock, clock) < 0) {
      throw InputError(name + ": no shift of its clock fits: what was matched contradicts itself");
    }
    if (clock == first) return;
    const std::int64_t most = differences.most(first, clock);
    const std::int64_t back = differences.most(clock, first);
    if (most == kUnbounded || back == kUnbounded) {
      throw InputError(fmt::format(
          "{}: its clock cannot be brought to that of {}: {}", name, sources_->front().file,
          out.matched == 0
              ? "no send of one is received in the other (both ends' traces are needed)"
              : "what was matched bounds it from one side only"));
    }
    if (most + back < 0) {
      throw InputError(
          fmt::format("{}: no shift of its clock fits: a send would be {} ns later than what "
                      "received it (clocks of different speed, or a trace that lost records)",
                      name, -(most + back)));
    }
    out.shift_ns = (most - back) / 2;
    out.error_ns = static_cast<std::uint64_t>((most + back + 1) / 2);
  }

  const std::vector<Source>* sources_;
  const std::vector<FileFindings>* files_;
  std::vector<std::size_t> clocks_;
};

// A file's records as they stand in the merged trace.
class Renumbering {
 public:
  Renumbering(std::uint32_t base, const HostClock& clock) : base_{base}, clock_{&clock} {}

  std::uint32_t name(std::uint32_t name) const { return name == kNone ? kNone : base_ + name; }

  /// Precondition: of a known type.
  void change(std::span<std::byte> record) const {
    RecordHead head{};
    std::memcpy(&head, record.data(), sizeof head);
    head.thread = name(head.thread);
    head.time_ns = time(head.time_ns);
    std::memcpy(record.data(), &head, sizeof head);
    const RecordForm* const form = find_form(head.type);
    change_fields(record, form->fields);
    if (form->tail == Tail::kSegments) {
      const std::size_t segments = RecordView(record).as<Post>().segments;
      for (std::size_t i = 0; i < segments; ++i) {
        change_fields(record.subspan(form->bytes + i * sizeof(Segment)), segment_fields());
      }
    }
    if (head.type == RecordType::kHost) note_clock(record);
  }

 private:
  std::uint64_t time(std::uint64_t ns) const {
    if (ns > static_cast<std::uint64_t>(kUnbounded)) {
      throw InputError(
          fmt::format("{}: holds a time of {} ns: no clock has run for so long", clock_->file, ns));
    }
    const auto shifted = static_cast<std::int64_t>(ns) + clock_->shift_ns;
    if (shifted < 0) {
      throw InputError(clock_->file + ": holds times before the first host's clock began");
    }
    return static_cast<std::uint64_t>(shifted);
  }

  void change_fields(std::span<std::byte> record, std::span<const Field> fields) const {
    for (const Field& field : fields) {
      const std::uint64_t value = field_value(record, field);
      if (field.role == Role::kObject) {
        set_field(record, field, name(static_cast<std::uint32_t>(value)));
      } else if (field.role == Role::kTime) {
        set_field(record, field, time(value));
      }
    }
  }

  void note_clock(std::span<std::byte> record) const {
    auto host = RecordView(record).as<Host>();
    host.clock_shift_ns =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(host.clock_shift_ns) +
                                  static_cast<std::uint64_t>(clock_->shift_ns));
    host.clock_error_ns += clock_->error_ns;
    std::memcpy(record.data(), &host, sizeof host);
  }

  std::uint32_t base_;
  const HostClock* clock_;
};

/// How many records are left out: which names of objects stand in those of an unknown type is not
/// known, so they cannot be numbered anew.
std::uint64_t copy_file(const std::string& path, const Renumbering& renumbering,
                        TraceWriter& writer) {
  TraceReader reader(path);
  CarriedLosses losses(reader);
  std::uint64_t left_out = 0;
  while (const auto block = reader.next()) {
    writer.lose(losses.blocks());
    std::vector<std::byte> records;
    for_each_record(block->records, [&](RecordView record) {
      if (find_form(record.type()) == nullptr) {
        ++left_out;
        return;
      }
      const std::size_t at = records.size();
      records.insert(records.end(), record.bytes().begin(), record.bytes().end());
      renumbering.change(std::span(records).subspan(at));
    });
    writer.block(renumbering.name(block->head.thread), records);
  }
  writer.lose(losses.blocks());
  return left_out;
}

// What the merged file's head says: the first topology, a clock and pseudonyms that all have.
FileFacts merged_facts(const std::vector<std::string>& paths, std::string& tool,
                       std::string& topology) {
  tool = "weft " + std::string(weft_version());
  FileFacts facts{.tool = tool, .topology = {}};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const TraceReader reader(paths[i]);
    const FileFacts& one = reader.facts();
    if (topology.empty()) topology = one.topology;
    if (i == 0) facts.clock = one.clock;
    if (one.clock != facts.clock) {
      throw InputError(fmt::format("{}: was recorded with another kind of clock than {}", paths[i],
                                   paths.front()));
    }
    facts.is_salted = facts.is_salted && one.is_salted;
    facts.post_ns = std::max(facts.post_ns, one.post_ns);
    facts.poll_ns = std::max(facts.poll_ns, one.poll_ns);
  }
  facts.topology = topology;
  return facts;
}

}  // namespace

std::vector<HostClock> merge_traces(const std::vector<std::string>& paths,
                                    const std::string& output, std::vector<Source>& sources) {
  std::string tool;
  std::string topology;
  const FileFacts facts = merged_facts(paths, tool, topology);
  std::vector<FileFindings> files;
  sources.assign(paths.size(), {});
  for (std::size_t i = 0; i < paths.size(); ++i) {
    files.push_back(findings_of(paths[i], sources[i]));
  }
  std::vector<HostClock> clocks = Alignment(sources, files).align();
  TraceWriter writer(output, facts);
  std::uint64_t base = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (base + files[i].most_names >= kNone) {
      throw InputError("these traces together name too many objects for one");
    }
    const Renumbering renumbering(static_cast<std::uint32_t>(base), clocks[i]);
    sources[i].left_out = copy_file(paths[i], renumbering, writer);
    base += files[i].most_names;
  }
  const bool is_ended =
      std::all_of(sources.begin(), sources.end(), [](const Source& s) { return s.is_ended; });
  if (is_ended) writer.end();
  writer.commit();
  return clocks;
}

}  // namespace weft::trace
