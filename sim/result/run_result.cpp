#include "sim/result/run_result.hpp"

#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/error.hpp"

namespace weft {
namespace {

constexpr std::string_view kSchema = "weft.run/1";

Json strings(const std::vector<std::string>& items) {
  Json out = Json::array();
  for (const std::string& item : items) out.push(item);
  return out;
}

Json to_json(const ResultRow& row) {
  Json causes = Json::array();
  for (const CauseShare& c : row.limited_by) {
    causes.push(Json::object({{"cause", c.cause}, {"share", c.share}, {"where", c.where}}));
  }
  Json out = Json::object({{"op", row.op},
                           {"bytes", row.bytes},
                           {"ranks", row.ranks},
                           {"nodes", row.nodes},
                           {"memory_path", row.memory_path},
                           {"algo", row.algo},
                           {"proto", row.proto},
                           {"channels", row.channels},
                           {"time_us", row.time_us},
                           {"algbw_GBps", row.algbw_gb_per_s},
                           {"busbw_GBps", row.busbw_gb_per_s},
                           {"limited_by", causes}});
  if (!row.nccl_choice.empty()) out.set("nccl_choice", row.nccl_choice);
  if (row.probes) out.set("probes", to_json(*row.probes));
  if (row.trajectory != 0) out.set("trajectory", fmt::format("{:016x}", row.trajectory));
  return out;
}

Json to_json(const Provenance& p) {
  Json params = Json::array();
  for (const ProvenanceParam& param : p.params) {
    params.push(Json::object({{"key", param.key},
                              {"device", param.device},
                              {"value", param.value},
                              {"origin", param.origin},
                              {"source", param.source}}));
  }
  return Json::object({{"weft", p.weft_version},
                       {"scenario", p.scenario},
                       {"scenario_fnv1a", p.scenario_digest},
                       {"topology", p.topology},
                       {"topology_fnv1a", p.topology_digest},
                       {"topology_source", p.topology_source},
                       {"seed", static_cast<std::int64_t>(p.seed)},
                       {"fidelity", p.fidelity},
                       {"set", strings(p.overrides)},
                       {"env", strings(p.env)},
                       {"parameters", params}});
}

/// Puts `where` before the message of what `read` throws.
template <class Read>
auto within(const std::string& where, Read read) {
  try {
    return read();
  } catch (const InputError& e) {
    throw InputError(where + ": " + e.what());
  }
}

/// The member `key`, as `read` takes it.
template <class Read>
auto member(const Json& json, const std::string& key, Read read) {
  const Json& value = json.at(key);
  return within(key, [&] { return read(value); });
}

std::string as_plain_text(const Json& json) {
  const std::string& text = json.as_string();
  if (one_line(text) != text) throw InputError("control characters are not accepted");
  return text;
}

std::string text_at(const Json& json, const std::string& key) {
  return member(json, key, as_plain_text);
}

std::int64_t integer_at(const Json& json, const std::string& key) {
  return member(json, key, [](const Json& value) { return value.as_integer(); });
}

std::uint32_t count_at(const Json& json, const std::string& key) {
  const std::int64_t n = integer_at(json, key);
  if (n < 0 || n > std::numeric_limits<std::uint32_t>::max()) {
    throw InputError(key + ": out of range");
  }
  return static_cast<std::uint32_t>(n);
}

double positive_at(const Json& json, const std::string& key) {
  const double x = member(json, key, [](const Json& value) { return value.as_number(); });
  if (!(x > 0.0) || !std::isfinite(x)) throw InputError(key + ": must be positive");
  return x;
}

double fraction_at(const Json& json, const std::string& key) {
  const double x = member(json, key, [](const Json& value) { return value.as_number(); });
  if (!(x >= 0.0 && x <= 1.0)) throw InputError(key + ": must be from 0 to 1");
  return x;
}

/// `read` of each item of a list, named "results[3]" in errors.
template <class Item, class Read>
std::vector<Item> items_at(const Json& json, const std::string& key, Read read) {
  const Json::Array& items = *member(json, key, [](const Json& value) { return &value.items(); });
  std::vector<Item> out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    out.push_back(within(key + '[' + std::to_string(i) + ']', [&] { return read(items[i]); }));
  }
  return out;
}

std::vector<std::string> texts_at(const Json& json, const std::string& key) {
  return items_at<std::string>(json, key, as_plain_text);
}

CauseShare cause_from_json(const Json& json) {
  return {text_at(json, "cause"), text_at(json, "where"), fraction_at(json, "share")};
}

ResultRow row_from_json(const Json& json) {
  ResultRow row;
  row.op = text_at(json, "op");
  row.bytes = integer_at(json, "bytes");
  row.ranks = count_at(json, "ranks");
  row.nodes = count_at(json, "nodes");
  row.memory_path = text_at(json, "memory_path");
  row.algo = text_at(json, "algo");
  row.proto = text_at(json, "proto");
  row.channels = count_at(json, "channels");
  if (json.find("nccl_choice") != nullptr) row.nccl_choice = text_at(json, "nccl_choice");
  row.time_us = positive_at(json, "time_us");
  row.algbw_gb_per_s = positive_at(json, "algbw_GBps");
  row.busbw_gb_per_s =  // 0 for one rank
      member(json, "busbw_GBps", [](const Json& value) { return value.as_number(); });
  row.limited_by = items_at<CauseShare>(json, "limited_by", cause_from_json);
  return row;
}

Provenance provenance_from_json(const Json& json) {
  Provenance p;
  p.weft_version = text_at(json, "weft");
  p.scenario = text_at(json, "scenario");
  p.scenario_digest = text_at(json, "scenario_fnv1a");
  p.topology = text_at(json, "topology");
  p.topology_digest = text_at(json, "topology_fnv1a");
  p.topology_source = text_at(json, "topology_source");
  p.seed = static_cast<std::uint64_t>(integer_at(json, "seed"));
  p.fidelity = text_at(json, "fidelity");
  p.overrides = texts_at(json, "set");
  p.env = texts_at(json, "env");
  p.params = items_at<ProvenanceParam>(json, "parameters", [](const Json& item) {
    return ProvenanceParam{text_at(item, "key"), text_at(item, "device"), text_at(item, "value"),
                           text_at(item, "origin"), text_at(item, "source")};
  });
  return p;
}

}  // namespace

double busbw_factor(const std::string& op, std::uint32_t ranks) {
  const double n = ranks;
  if (op == "allreduce") return 2.0 * (n - 1.0) / n;
  if (op == "allgather" || op == "reducescatter" || op == "alltoall") return (n - 1.0) / n;
  if (op == "broadcast" || op == "reduce" || op == "sendrecv") return 1.0;
  throw std::logic_error("busbw_factor: unknown operation " + op);
}

std::vector<ProvenanceParam> provenance_of(const Params& params) {
  std::vector<ProvenanceParam> out;
  for (const UsedParam& used : params.used()) {
    const ParamSpec& spec = *params.catalog().find(used.key);
    out.push_back({used.key, used.device, ParamCatalog::format(spec, used.value.number),
                   std::string(origin_name(used.value.origin)), used.value.source});
  }
  return out;
}

Json to_json(const RunResult& result) {
  Json rows = Json::array();
  for (const ResultRow& row : result.rows) rows.push(to_json(row));
  return Json::object({{"schema", kSchema},
                       {"results", rows},
                       {"verdict", strings(result.verdict)},
                       {"notes", strings(result.notes)},
                       {"provenance", to_json(result.provenance)}});
}

RunResult run_result_from_json(const Json& json) {
  const Json* schema = json.is_object() ? json.find("schema") : nullptr;
  if (schema == nullptr || !schema->is_string()) {
    throw InputError("has no \"schema\": not a result of weft run --json");
  }
  if (schema->as_string() != kSchema) {
    throw InputError("its schema is '" + schema->as_string() + "'; known: " + std::string(kSchema));
  }
  RunResult result;
  result.rows = items_at<ResultRow>(json, "results", row_from_json);
  result.verdict = texts_at(json, "verdict");
  result.notes = texts_at(json, "notes");
  result.provenance = member(json, "provenance", provenance_from_json);
  std::set<std::tuple<std::string, std::int64_t, std::string>> seen;
  for (const ResultRow& row : result.rows) {
    if (!seen.emplace(row.op, row.bytes, row.memory_path).second) {
      throw InputError("results: " + row.op + " of " + std::to_string(row.bytes) + " B over " +
                       row.memory_path + " is given twice");
    }
  }
  return result;
}

}  // namespace weft
