#include "replay/trace/summary.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "replay/trace/fields.hpp"
#include "replay/trace/host_numbers.hpp"
#include "replay/trace/match.hpp"
#include "sim/base/error.hpp"

namespace weft::trace {

std::string opcode_text(Opcode opcode) {
  const std::string_view name = opcode_name(opcode);
  return name.empty() ? fmt::format("opcode {}", static_cast<unsigned>(opcode)) : std::string(name);
}

std::string status_text(std::uint8_t status) {
  const std::string_view name = status_name(status);
  return name.empty() ? fmt::format("status {}", status) : std::string(name);
}

std::string named(const std::map<std::uint32_t, std::string>& names, std::uint32_t name) {
  const auto found = names.find(name);
  return found == names.end() ? fmt::format("#{}", name) : one_line(found->second);
}

namespace {

class Counter {
 public:
  explicit Counter(TraceSummary& summary) : sum_{&summary} {}

  void take(RecordView record) {
    ++sum_->records;
    switch (record.type()) {
      case RecordType::kHost:
        sum_->hosts[record.as<Host>().host] = record.as<Host>();
        sum_->host_names[record.as<Host>().host] = record.text<Host>();
        hosts_.of(record.as<Host>().host, std::string(record.text<Host>()));
        return;
      case RecordType::kThread:
        ++sum_->threads;
        return;
      case RecordType::kDevice:
        sum_->devices[record.as<Device>().device] = record.as<Device>();
        sum_->device_names[record.as<Device>().device] = record.text<Device>();
        sum_->host_numbers[record.as<Device>().device] = hosts_.of(record.as<Device>().host);
        return;
      case RecordType::kProtectionDomain:
        domain_device_[record.as<ProtectionDomain>().domain] = record.as<ProtectionDomain>().device;
        return;
      case RecordType::kQueuePair:
        pair(record.as<QueuePair>());
        matcher_.object(record);
        return;
      case RecordType::kQueuePairState:
        state(record.as<QueuePairState>());
        return;
      case RecordType::kPost:
        post(record);
        return;
      case RecordType::kCompletion:
        completion(record);
        return;
      case RecordType::kDrop:
        drop(record.as<Drop>());
        return;
      default:
        if (find_form(record.type()) == nullptr) {
          ++sum_->unknown[static_cast<std::uint16_t>(record.type())];
        }
    }
  }

  void finish() {
    for (const Pending& request : matcher_.waiting()) note_waiting(request);
    sum_->forgotten = matcher_.forgotten();
    if (!has_span_) sum_->first_ns = sum_->last_ns = 0;
  }

 private:
  void note_waiting(const Pending& request) {
    const bool is_signaled = is_receive(request.opcode) || (request.flags & kSignaled) != 0;
    ++(is_signaled ? sum_->waiting : sum_->unsignaled);
  }

  void span(const RecordHead& head) {
    if (!has_span_) sum_->first_ns = head.time_ns;
    has_span_ = true;
    sum_->first_ns = std::min(sum_->first_ns, head.time_ns);
    sum_->last_ns = std::max(sum_->last_ns, head.time_ns);
  }

  void pair(const QueuePair& made) {
    PairSummary& pair = sum_->pairs[made.pair];
    const auto device = domain_device_.find(made.domain);
    pair.device = device == domain_device_.end() ? kNone : device->second;
    pair.number = made.number;
    pair.type = made.type;
    pair.is_unseen = made.is_unseen != 0;
  }

  void state(const QueuePairState& state) {
    if (state.peer_number != 0) sum_->pairs[state.pair].peer_number = state.peer_number;
  }

  void post(RecordView record) {
    const auto post = record.as<Post>();
    span(post.head);
    const auto pending = matcher_.post(record);
    if (!pending) {
      ++sum_->refused;
      return;
    }
    count_post(sum_->operations[post.opcode], post);
    if (pending->pair == kNone) {
      ++sum_->shared_posts;
    } else {
      count_post(sum_->pairs[pending->pair].operations[post.opcode], post);
    }
  }

  static void count_post(OperationCount& count, const Post& post) {
    ++count.posts;
    count.bytes += post.bytes;
  }

  void completion(RecordView record) {
    const auto completion = record.as<Completion>();
    span(completion.head);
    if (completion.status != 0) ++sum_->errors[completion.status];
    const auto match = matcher_.completion(record);
    if (!match) {
      ++sum_->unmatched;
      return;
    }
    const Opcode opcode = match->request.opcode;
    ++sum_->operations[opcode].completions;
    ++sum_->pairs[match->request.pair].operations[opcode].completions;
    sum_->waiting += match->lost.size();
  }

  void drop(const Drop& drop) {
    sum_->dropped.records += drop.records;
    sum_->dropped.posts += drop.posts;
    sum_->dropped.completions += drop.completions;
    sum_->dropped.posted_bytes += drop.posted_bytes;
  }

  TraceSummary* sum_;
  HostNumbers hosts_;
  Matcher matcher_;
  std::map<std::uint32_t, std::uint32_t> domain_device_;
  bool has_span_{false};
};

std::string seconds_text(std::uint64_t ns) {
  return fmt::format("{}.{:09} s", ns / 1'000'000'000, ns % 1'000'000'000);
}

std::string losses_text(const TraceSummary& s) {
  std::string out;
  for (const Loss& loss : s.losses.first) {
    out += fmt::format("  lost: {} bytes at byte {}: {}", loss.bytes, loss.offset, loss.what);
    if (loss.blocks > 0) out += fmt::format("; blocks: {}", loss.blocks);
    if (loss.records > 0) out += fmt::format("; records: {}", loss.records);
    out += '\n';
  }
  if (s.losses.places > s.losses.first.size()) {
    out += fmt::format("  and {} more such places\n", s.losses.places - s.losses.first.size());
  }
  if (!s.is_ended) out += "  the file has no end: its writer was stopped, or it is cut off\n";
  if (s.dropped.records > 0) {
    out += fmt::format(
        "  dropped while recording: {} records ({} posts with {} bytes, {} completions)\n",
        s.dropped.records, s.dropped.posts, s.dropped.posted_bytes, s.dropped.completions);
  }
  for (const auto& [type, n] : s.unknown) {
    out += fmt::format("  {} records of type {}, which this weft doesn't know\n", n, type);
  }
  return out.empty() ? "" : "\nincomplete\n" + out;
}

std::string head_text(const TraceSummary& s) {
  std::string out = fmt::format("{}: {} bytes, {} records, by {}\n", s.file, s.file_bytes,
                                s.records, s.tool.empty() ? "?" : one_line(s.tool));
  out += fmt::format("  clock {}, {}, {} topology\n",
                     word_of(clock_field(), static_cast<std::uint64_t>(s.clock)),
                     s.is_salted ? "pseudonyms for addresses and names of ports"
                                 : "addresses and names of ports as they were",
                     s.has_topology ? "with a" : "without a");
  if (s.post_ns > 0 || s.poll_ns > 0) {
    out +=
        fmt::format("  recording added {} ns to a post, {} ns to a poll\n", s.post_ns, s.poll_ns);
  }
  return out + fmt::format("  span {}\n", seconds_text(s.last_ns - s.first_ns));
}

std::string devices_text(const TraceSummary& s) {
  std::string out = "\ndevices\n";
  for (const auto& [name, device] : s.devices) {
    out += fmt::format("  {}@{} of {} (vendor 0x{:x}, part {})\n", named(s.device_names, name),
                       s.host_numbers.at(name), named(s.host_names, device.host), device.vendor,
                       device.part);
  }
  for (const auto& [name, host] : s.hosts) {
    if (host.clock_error_ns == 0 && host.clock_shift_ns == 0) continue;
    out += fmt::format("  clock of {}: shifted by {} ns, known to {} ns\n",
                       named(s.host_names, name), host.clock_shift_ns, host.clock_error_ns);
  }
  return out;
}

std::string row_text(std::string_view where, std::string_view what, std::string_view posts,
                     std::string_view bytes, std::string_view completions) {
  return fmt::format("  {:<20} {:<22} {:>10} {:>15} {:>12}\n", where, what, posts, bytes,
                     completions);
}

std::string rows_text(const std::string& where,
                      const std::map<Opcode, OperationCount>& operations) {
  std::string out;
  for (const auto& [opcode, count] : operations) {
    out += row_text(where, opcode_text(opcode), std::to_string(count.posts),
                    std::to_string(count.bytes), std::to_string(count.completions));
  }
  return out;
}

std::string operations_text(const TraceSummary& s) {
  std::string out = "\n" + row_text("queue pair", "operation", "posts", "bytes", "completions");
  for (const auto& [name, pair] : s.pairs) {
    const std::string where = fmt::format("{} ({})", name, named(s.device_names, pair.device));
    if (pair.is_unseen) out += row_text(where, "posted past libibverbs", "?", "?", "?");
    out += rows_text(where, pair.operations);
  }
  return out + rows_text("all", s.operations);
}

std::string notes_text(const TraceSummary& s) {
  std::string out;
  const auto note = [&](std::uint64_t n, const std::string& what) {
    if (n > 0) out += fmt::format("  {} {}\n", n, what);
  };
  for (const auto& [status, n] : s.errors) note(n, "completions with " + status_text(status));
  note(s.refused, "posts that were refused");
  note(s.waiting, "posts without their completion");
  note(s.unsignaled, "unsignaled posts that nothing shows to be done");
  note(s.unmatched, "completions without their post");
  note(s.forgotten,
       "posts ahead of more than any queue holds: whether they were done is not known");
  return out.empty() ? "" : "\nnotes\n" + out;
}

}  // namespace

TraceSummary summarize(const std::string& path) {
  OrderedRecords records(path);
  const TraceReader& reader = records.reader();
  TraceSummary sum{.file = path,
                   .file_bytes = reader.file_bytes(),
                   .tool = std::string(reader.facts().tool),
                   .clock = reader.facts().clock,
                   .is_salted = reader.facts().is_salted,
                   .has_topology = !reader.facts().topology.empty(),
                   .post_ns = reader.facts().post_ns,
                   .poll_ns = reader.facts().poll_ns};
  Counter counter(sum);
  while (const auto record = records.next()) counter.take(*record);
  counter.finish();
  sum.losses = reader.losses();
  sum.is_ended = reader.is_ended();
  return sum;
}

std::string summary_text(const TraceSummary& s) {
  return head_text(s) + devices_text(s) + operations_text(s) + notes_text(s) + losses_text(s);
}

}  // namespace weft::trace
