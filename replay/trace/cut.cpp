#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "replay/trace/carried_losses.hpp"
#include "replay/trace/host_numbers.hpp"
#include "replay/trace/transform.hpp"
#include "replay/trace/writer.hpp"
#include "sim/base/error.hpp"

namespace weft::trace {
namespace {

// What a first reading of a trace has to find out.
struct Objects {
  std::uint64_t first_ns{std::numeric_limits<std::uint64_t>::max()};
  std::map<std::uint32_t, std::uint32_t> device_of_domain;
  std::map<std::uint32_t, std::string> device_names;  // "mlx5_0@1"
  std::map<std::uint32_t, QueuePair> pairs;
};

Objects objects_of(const std::string& path) {
  Objects objects;
  HostNumbers hosts;
  TraceReader reader(path);
  while (const auto block = reader.next()) {
    objects.first_ns = std::min(objects.first_ns, block->head.first_ns);
    for_each_record(block->records, [&](RecordView record) {
      if (record.type() == RecordType::kHost) {
        hosts.of(record.as<Host>().host, std::string(record.text<Host>()));
      } else if (record.type() == RecordType::kDevice) {
        const auto device = record.as<Device>();
        objects.device_names[device.device] =
            fmt::format("{}@{}", record.text<Device>(), hosts.of(device.host));
      } else if (record.type() == RecordType::kProtectionDomain) {
        const auto domain = record.as<ProtectionDomain>();
        objects.device_of_domain[domain.domain] = domain.device;
      } else if (record.type() == RecordType::kQueuePair) {
        const auto pair = record.as<QueuePair>();
        objects.pairs[pair.pair] = pair;
      }
    });
  }
  return objects;
}

bool is_meant(const std::string& wanted, const std::string& device) {
  return wanted == device || wanted == device.substr(0, device.rfind('@'));
}

std::set<std::uint32_t> devices_meant(const Objects& objects, const CutRequest& request) {
  std::set<std::uint32_t> out;
  for (const std::string& wanted : request.devices) {
    const std::size_t before = out.size();
    for (const auto& [name, device] : objects.device_names) {
      if (is_meant(wanted, device)) out.insert(name);
    }
    if (out.size() > before) continue;
    std::vector<std::string> known;
    for (const auto& [name, device] : objects.device_names) known.push_back(device);
    throw InputError("no device '" + wanted + "' in the trace; there are: " + known_names(known));
  }
  return out;
}

// The queue pairs to keep.
std::set<std::uint32_t> pairs_meant(const Objects& objects, const CutRequest& request) {
  const std::set<std::uint32_t> devices = devices_meant(objects, request);
  for (const std::uint32_t pair : request.pairs) {
    if (objects.pairs.contains(pair)) continue;
    std::vector<std::string> known;
    for (const auto& [name, made] : objects.pairs) known.push_back(std::to_string(name));
    throw InputError(
        fmt::format("no queue pair {} in the trace; there are: {}", pair, known_names(known)));
  }
  std::set<std::uint32_t> out;
  for (const auto& [name, pair] : objects.pairs) {
    const auto device = objects.device_of_domain.find(pair.domain);
    const bool is_of_device = devices.empty() || (device != objects.device_of_domain.end() &&
                                                  devices.contains(device->second));
    const bool is_named =
        request.pairs.empty() ||
        std::find(request.pairs.begin(), request.pairs.end(), name) != request.pairs.end();
    if (is_of_device && is_named) out.insert(name);
  }
  if (out.empty()) throw InputError("none of these queue pairs is of these devices");
  return out;
}

class Cut {
 public:
  Cut(const Objects& objects, const CutRequest& request)
      : from_ns_{objects.first_ns + request.from_ns},
        to_ns_{request.to_ns ? objects.first_ns + *request.to_ns
                             : std::numeric_limits<std::uint64_t>::max()},
        has_all_pairs_{request.pairs.empty() && request.devices.empty()} {
    if (has_all_pairs_) return;
    pairs_ = pairs_meant(objects, request);
    for (const std::uint32_t pair : pairs_) shared_.insert(objects.pairs.at(pair).shared_receives);
  }

  bool keeps(RecordView record, CutResult& result) const {
    const std::uint64_t time = record.head().time_ns;
    const bool is_in_time = time >= from_ns_ && time < to_ns_;
    const RecordType type = record.type();
    const bool is_operation = type == RecordType::kPost || type == RecordType::kCompletion;
    if (is_operation) {
      const bool is_kept = is_in_time && is_of_pairs(record);
      ++(is_kept ? result.kept : result.left_out);
      return is_kept;
    }
    const bool is_event =
        type == RecordType::kEnd || type == RecordType::kDrop || type == RecordType::kMark;
    return is_event ? is_in_time : time < to_ns_;
  }

 private:
  bool is_of_pairs(RecordView record) const {
    if (has_all_pairs_) return true;
    if (record.type() == RecordType::kCompletion) {
      return pairs_.contains(record.as<Completion>().pair);
    }
    const auto post = record.as<Post>();
    return (post.flags & kShared) != 0 ? shared_.contains(post.queue) : pairs_.contains(post.queue);
  }

  std::uint64_t from_ns_;
  std::uint64_t to_ns_;
  bool has_all_pairs_;
  std::set<std::uint32_t> pairs_;
  std::set<std::uint32_t> shared_;
};

}  // namespace

CutResult cut_trace(const std::string& path, const CutRequest& request, const std::string& output) {
  const Cut cut(objects_of(path), request);
  TraceReader reader(path);
  FileFacts facts = reader.facts();
  facts.is_cut = facts.is_cut || request.from_ns > 0;
  TraceWriter writer(output, facts);
  CutResult result;
  CarriedLosses losses(reader);
  std::vector<std::byte> kept;
  while (const auto block = reader.next()) {
    writer.lose(losses.blocks());
    kept.clear();
    for_each_record(block->records, [&](RecordView record) {
      if (!cut.keeps(record, result)) return;
      kept.insert(kept.end(), record.bytes().begin(), record.bytes().end());
    });
    writer.block(block->head.thread, kept);
  }
  writer.lose(losses.blocks());
  if (reader.is_ended()) writer.end();
  writer.commit();
  result.source = {path, reader.losses(), reader.is_ended(), 0};
  return result;
}

}  // namespace weft::trace
