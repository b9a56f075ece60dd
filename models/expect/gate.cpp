#include "models/expect/gate.hpp"

#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/io/text_kind.hpp"
#include "sim/result/fields.hpp"

namespace weft {
namespace {

constexpr const char* kSchema = "weft.gate/1";
constexpr const char* kInsideNode = "nvlink";  // nothing else inside a node has a floor
constexpr std::size_t kMostBytes = std::size_t{16} << 20;

using RowField = JsonField<ExpectedRow>;
constexpr std::array kFloorFields{
    RowField{{"op", "text", "", "of nccl-tests or perftest"},
             [](const ExpectedRow& e) -> Json { return e.row.op; }},
    RowField{{"bytes", "whole number", "", "size, as the tool counts it"},
             [](const ExpectedRow& e) -> Json { return e.row.bytes; }},
    RowField{{"ranks", "whole number", "", "GPUs of all nodes together"},
             [](const ExpectedRow& e) -> Json { return e.row.ranks; }},
    RowField{{"nodes", "whole number", "", "nodes that take part"},
             [](const ExpectedRow& e) -> Json { return e.row.nodes; }},
    RowField{{"memory_path", "text", "", "gdr, host-staged, nccl (GPUDirect RDMA in part); host"},
             [](const ExpectedRow& e) -> Json { return e.row.memory_path; }},
    RowField{{"qps", "whole number", "of perftest", "queue pairs (-q)"},
             [](const ExpectedRow& e) -> Json {
               return are_perftest({e.row.op}) ? Json(e.qps) : Json();
             }},
    RowField{{"tx_depth", "whole number", "of perftest", "requests under way (-t)"},
             [](const ExpectedRow& e) -> Json {
               return are_perftest({e.row.op}) ? Json(e.tx_depth) : Json();
             }},
    RowField{{"floor_GBps", "number", "in `floors`",
              "bus bandwidth that nine healthy sites of ten reach at this one size; of a run over "
              "several sizes more have one below; rounded down"},
             [](const ExpectedRow& e) -> Json {
               const std::optional<double> floor = e.floor();
               return floor ? Json(*floor) : Json();
             }},
    RowField{{"expected_GBps", "number", "", "what weft predicts"},
             [](const ExpectedRow& e) -> Json { return e.row.busbw_gb_per_s; }},
    RowField{{"low_GBps", "number", "", "the interval's lower end"},
             [](const ExpectedRow& e) -> Json { return e.low(); }},
    RowField{{"high_GBps", "number", "", "its upper end"},
             [](const ExpectedRow& e) -> Json { return e.high(); }},
    RowField{{"basis", "text", "", "what the interval comes from, as in weft.expect/1"},
             [](const ExpectedRow& e) -> Json { return e.basis(); }}};

Json rows_json(const Expected& expected, bool with_floor) {
  Json out = Json::array();
  for (const ExpectedRow& row : expected.healthy.rows) {
    if (row.floor().has_value() != with_floor) continue;
    out.push(object_of(row, kFloorFields));
  }
  return out;
}

using FileField = JsonField<Expected>;
constexpr std::array kFileFields{
    FileField{{"schema", "text", "", "the version of this form: weft.gate/1"},
              [](const Expected&) -> Json { return kSchema; }},
    FileField{{"unit", "text", "", "of what ends in _GBps"},
              [](const Expected&) -> Json { return "GB/s = 1e9 bytes/s of bus bandwidth"; }},
    FileField{{"machine", "text", "", "its file"},
              [](const Expected& e) -> Json { return e.provenance.topology; }},
    FileField{{"gpus", "list", "", "the parts of its GPUs (h100-sxm): floors are of no others"},
              [](const Expected& e) {
                Json out = Json::array();
                for (const std::string& gpu : e.gpus) out.push(gpu);
                return out;
              }},
    FileField{{"floors", "list", "", "what a measurement is held against"},
              [](const Expected& e) { return rows_json(e, true); }},
    FileField{{"without_floor", "list", "", "what nothing validates: an interval and no floor"},
              [](const Expected& e) { return rows_json(e, false); }},
    FileField{{"provenance", "object", "", "as in a result"},
              [](const Expected& e) { return to_json(e.provenance); }}};

/// Throws InputError, without a place.
std::int64_t whole_of(const Json& row, const char* key, std::int64_t fallback) {
  const Json* const value = row.find(key);
  if (value == nullptr && fallback > 0) return fallback;
  const std::int64_t number = row.at(key).as_integer();
  if (number < 1) throw InputError(fmt::format("{}: {}: write a number from 1 on", key, number));
  return number;
}

double bandwidth_of(const Json& row, const char* key) {
  const double number = row.at(key).as_number();
  if (!(number >= 0) || std::isinf(number)) {
    throw InputError(fmt::format("{}: write a bandwidth in GB/s", key));
  }
  return number;
}

GateFloor floor_of(const Json& row) {
  GateFloor out;
  out.key.op = row.at("op").as_string();
  out.key.bytes = whole_of(row, "bytes", 0);
  out.key.ranks = whole_of(row, "ranks", 0);
  out.key.nodes = whole_of(row, "nodes", 0);
  const std::string& path = row.at("memory_path").as_string();
  out.key.memory_path = out.key.nodes > 1 ? path : kInsideNode;
  out.key.qps = whole_of(row, "qps", GateKey{}.qps);
  out.key.tx_depth = whole_of(row, "tx_depth", GateKey{}.tx_depth);
  out.floor = bandwidth_of(row, "floor_GBps");
  out.expected = bandwidth_of(row, "expected_GBps");
  out.low = bandwidth_of(row, "low_GBps");
  out.high = bandwidth_of(row, "high_GBps");
  out.basis = row.at("basis").as_string();
  if (out.floor > out.low || out.low > out.expected || out.expected > out.high) {
    throw InputError("floor, low, expected and high must ascend");
  }
  return out;
}

std::vector<KeyDifference> differences(const GateKey& floor, const GateKey& measured) {
  std::vector<KeyDifference> out;
  const auto add = [&out](const char* field, std::string of_floor, std::string of_measured) {
    if (of_floor == of_measured) return;
    out.push_back({field, std::move(of_floor), std::move(of_measured)});
  };
  add("op", floor.op, measured.op);
  add("memory_path", floor.memory_path, measured.memory_path);
  add("nodes", std::to_string(floor.nodes), std::to_string(measured.nodes));
  add("ranks", std::to_string(floor.ranks), std::to_string(measured.ranks));
  add("qps", std::to_string(floor.qps), std::to_string(measured.qps));
  add("tx_depth", std::to_string(floor.tx_depth), std::to_string(measured.tx_depth));
  add("post_list", std::to_string(floor.post_list), std::to_string(measured.post_list));
  add("bytes", format_size(Bytes{floor.bytes}), format_size(Bytes{measured.bytes}));
  return out;
}

}  // namespace

GateKey key_of(const MeasuredRow& row) {
  GateKey out{row.op, row.bytes, row.ranks, row.hosts, row.memory_path};
  if (row.transport != "net") out.memory_path = row.transport;
  if (is_perftest(row)) {
    out.qps = row.qps;
    out.tx_depth = row.tx_depth;
    out.post_list = row.post_list;
  }
  return out;
}

std::string key_text(const GateKey& key) {
  std::string out = fmt::format("{} of {}, {} GPUs of {} {}, memory_path {}", key.op,
                                format_size(Bytes{key.bytes}), key.ranks, key.nodes,
                                key.nodes == 1 ? "node" : "nodes", key.memory_path);
  if (!are_perftest({key.op})) return out;
  out += fmt::format(", qps {}, tx_depth {}", key.qps, key.tx_depth);
  if (key.post_list > 1) out += fmt::format(", post_list {}", key.post_list);
  return out;
}

std::vector<KeyDifference> Gate::missing(const MeasuredRow& row) const {
  const GateKey measured = key_of(row);
  std::vector<KeyDifference> least = differences(floors.front().key, measured);
  for (const GateFloor& floor : floors) {
    std::vector<KeyDifference> each = differences(floor.key, measured);
    if (each.size() < least.size()) least = std::move(each);
  }
  return least;
}

const GateFloor* Gate::find(const MeasuredRow& row) const {
  const auto at = index.find(key_of(row));
  return at == index.end() ? nullptr : &floors[at->second];
}

Json gate_json(const Expected& expected) { return object_of(expected, kFileFields); }

std::vector<FormatSection> gate_format() {
  return {{"", "The file.", keys_of(kFileFields)},
          {"floors[], without_floor[]", "One operation of one size.", keys_of(kFloorFields)}};
}

bool is_gate(std::string_view text) { return kind_of(text) == TextKind::kGate; }

Gate parse_gate(std::string_view text, const std::string& file) {
  refuse_other_kind(text, file, TextKind::kGate);
  if (text.size() > kMostBytes) {
    throw InputError(Place{file, 0, 0}, "a gate has 16 MiB at most");
  }
  const Json json = Json::parse(text, file);
  Gate out;
  out.file = file;
  std::size_t number = 0;
  try {
    if (json.at("schema").as_string() != kSchema) {
      throw InputError("schema: '" + json.at("schema").as_string() + "', not " + kSchema);
    }
    out.machine = json.at("machine").as_string();
    if (const Json* const gpus = json.find("gpus")) {  // as of 0.1.0 gates may have none
      for (const Json& gpu : gpus->items()) out.gpus.insert(gpu.as_string());
    }
    for (const Json& row : json.at("floors").items()) {
      ++number;
      out.floors.push_back(floor_of(row));
      if (!out.index.emplace(out.floors.back().key, out.floors.size() - 1).second) {
        throw InputError("a floor for the same stands before it: " +
                         key_text(out.floors.back().key));
      }
    }
  } catch (const InputError& e) {
    const std::string at = number == 0 ? "" : fmt::format("floors, entry {}: ", number);
    throw InputError(Place{file, 0, 0}, at + e.what());
  }
  if (out.floors.empty()) throw InputError(Place{file, 0, 0}, "has no floors");
  return out;
}

}  // namespace weft
