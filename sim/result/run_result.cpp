#include "sim/result/run_result.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/result/fields.hpp"

namespace weft {
namespace {

constexpr std::string_view kSchema = "weft.run/1";
constexpr std::string_view kStepSchema = "weft.step/1";
constexpr std::string_view kTrafficSchema = "weft.traffic/1";

using CauseField = JsonField<CauseShare>;
constexpr std::array kCauseFields{
    CauseField{{"cause", "text", "", "the kind of thing: \"PCIe uplink, switch to CPU\""},
               [](const CauseShare& c) -> Json { return c.cause; }},
    CauseField{{"share", "number", "", "of the time along the critical path; a row's sum to 1"},
               [](const CauseShare& c) -> Json { return c.share; }},
    CauseField{{"where", "text", "", "the one of that kind that took most: \"pcisw0 -> cpu0 @0\""},
               [](const CauseShare& c) -> Json { return c.where; }}};

constexpr std::string_view kInterval = "where --params has an interval for its class";

using Extended = ResultRow::Extended;
constexpr std::array kExtendedFields{
    JsonField<Extended>{
        {"by", "text", "",
         "what this one has more of: level of trees, node, byte; chain: nodes that a broadcast or "
         "reduce passes; nearer level: of "
         "all its levels those over shorter hops; switch: nothing, but fewer switches ran "
         "in the place of the network's; ring: nothing, but over an even number of nodes; hash: "
         "nothing, but its fullest link carries what it does on average over all that a hash may "
         "draw, whatever the seed; unlike node: times that a ring passes nodes that are not like "
         "the others, each of which adds so much (negative: fewer than the sample does)"},
        [](const Extended& e) -> Json { return e.by; }},
    JsonField<Extended>{
        {"from", "list", "",
         "by level, nearer level, ring and chain: nodes that were simulated, the most first; by "
         "node: nodes of the clusters that a few simulated ones stand for; by byte: "
         "two sizes"},
        [](const Extended& e) {
          Json out = Json::array();
          for (const std::int64_t from : e.from) out.push(from);
          return out;
        }},
    JsonField<Extended>{{"steps", "whole number", "",
                         "how many it has more than what was simulated; fewer: negative; of nearer "
                         "levels how many there are"},
                        [](const Extended& e) -> Json { return e.steps; }},
    JsonField<Extended>{{"each_us", "number", "",
                         "what each adds, us; of a switch: the slowest way from NIC to NIC"},
                        [](const Extended& e) -> Json { return e.each_us; }}};

constexpr std::string_view kJobs = "where a scenario has jobs";

using LinkField = JsonField<std::pair<std::string, double>>;
constexpr std::array kLinkFields{
    LinkField{{"link", "text", "",
               "its ends, as `weft show` names them: `pcisw0 -> cpu0`; of links between switches "
               "their tiers: `leaf -> spine`; beside a PCIe link of the same ends with its kind: "
               "`gpu0 -> cpu0 (c2c)`"},
              [](const std::pair<std::string, double>& l) -> Json { return l.first; }},
    LinkField{
        {"use", "number", "",
         "share of its capacity, on average over time_us; 1 is all, and launches that overlap may "
         "come to a little more"},
        [](const std::pair<std::string, double>& l) -> Json {
          constexpr double kDigits = 1e4;
          return std::round(l.second * kDigits) / kDigits;
        }}};

/// Those that are worth a line.
Json link_use_json(const ResultRow& row) {
  constexpr double kLeast = 0.01;
  std::vector<std::pair<std::string, double>> used;
  for (const auto& link : row.link_use) {
    if (link.second >= kLeast) used.push_back(link);
  }
  return used.empty() ? Json() : objects_of(used, kLinkFields);
}

using RowField = JsonField<ResultRow>;
constexpr std::array kRowFields{
    RowField{{"job", "text", kJobs, "which of them"},
             [](const ResultRow& r) { return if_any(r.job); }},
    RowField{{"op", "text", "", "the operation, as the scenario names it"},
             [](const ResultRow& r) -> Json { return r.op; }},
    RowField{{"bytes", "whole number", "", "size, as nccl-tests counts it"},
             [](const ResultRow& r) -> Json { return r.bytes; }},
    RowField{{"ranks", "whole number", "", "GPUs that take part"},
             [](const ResultRow& r) -> Json { return r.ranks; }},
    RowField{{"nodes", "whole number", "", "nodes that take part"},
             [](const ResultRow& r) -> Json { return r.nodes; }},
    RowField{{"memory_path", "text", "", "gdr, host-staged or nccl"},
             [](const ResultRow& r) -> Json { return r.memory_path; }},
    RowField{{"algo", "text", "", "the algorithm that ran"},
             [](const ResultRow& r) -> Json { return r.algo; }},
    RowField{{"proto", "text", "", "the protocol that ran"},
             [](const ResultRow& r) -> Json { return r.proto; }},
    RowField{{"channels", "whole number", "", "channels that carried it"},
             [](const ResultRow& r) -> Json { return r.channels; }},
    RowField{
        {"time_us", "number", "",
         "from the first rank's start to the last rank's end; of jobs the mean of their launches"},
        [](const ResultRow& r) -> Json { return r.time_us; }},
    RowField{
        {"low_us", "number", kInterval,
         "below it a row of a further configuration of its class lies in one case of ten at most"},
        [](const ResultRow& r) { return r.interval ? Json(r.time_us * r.interval->low) : Json(); }},
    RowField{{"high_us", "number", kInterval, "likewise above it"},
             [](const ResultRow& r) {
               return r.interval ? Json(r.time_us * r.interval->high) : Json();
             }},
    RowField{{"launches", "whole number", kJobs,
              "how often it was launched, one launch behind the other, beside the longest one's"},
             [](const ResultRow& r) { return r.launches > 0 ? Json(r.launches) : Json(); }},
    RowField{{"alone_us", "number", kJobs,
              "what as many launches take each with the fabric to themselves"},
             [](const ResultRow& r) { return r.alone_us > 0 ? Json(r.alone_us) : Json(); }},
    RowField{
        {"slowdown", "number", kJobs, "time_us / alone_us"},
        [](const ResultRow& r) { return r.alone_us > 0 ? Json(r.time_us / r.alone_us) : Json(); }},
    RowField{{"algbw_GBps", "number", "", "bytes / time; GB/s = 1e9 bytes/s"},
             [](const ResultRow& r) -> Json { return r.algbw_gb_per_s; }},
    RowField{{"busbw_GBps", "number", "",
              "as nccl-tests defines it: algbw x 2(n-1)/n of allreduce, (n-1)/n of allgather, "
              "reducescatter and alltoall, else 1"},
             [](const ResultRow& r) -> Json { return r.busbw_gb_per_s; }},
    RowField{{"nic_GBps", "number", "where NICs are used", "payload that the busiest NIC sends"},
             [](const ResultRow& r) { return r.nic_gb_per_s > 0 ? Json(r.nic_gb_per_s) : Json(); }},
    RowField{{"limited_by", "list", "", "what the time went to, largest first"},
             [](const ResultRow& r) { return objects_of(r.limited_by, kCauseFields); }},
    RowField{{"nccl_choice", "text", "where another ran",
              "what NCCL would run where weft does not execute it, such as CollNetChain"},
             [](const ResultRow& r) { return if_any(r.nccl_choice); }},
    RowField{{"extended", "list",
              "of large clusters, and of trees, broadcasts and reduces that move much",
              "time_us is extended from smaller ones: one entry for each way, and for each latency "
              "of nearer levels"},
             [](const ResultRow& r) {
               return r.extended.empty() ? Json() : objects_of(r.extended, kExtendedFields);
             }},
    RowField{{"link_use", "list", "in fluid runs without jobs, unless idle or extended but by byte",
              "each direction of a node's links, and of links between switches, that is in use by "
              "0.01 or more; of the same link in all nodes the busiest"},
             [](const ResultRow& r) { return link_use_json(r); }},
    RowField{{"probes", "map", "in runs of packets", "what ports and NICs did"},
             [](const ResultRow& r) { return r.probes ? to_json(*r.probes) : Json(); }},
    RowField{{"trajectory", "text", "",
              "a number of what happened and when in what was simulated, for comparisons"},
             [](const ResultRow& r) {
               return r.trajectory == 0 ? Json() : Json(fmt::format("{:016x}", r.trajectory));
             }}};

using ParamField = JsonField<ProvenanceParam>;
constexpr std::array kParamFields{
    ParamField{{"key", "text", "", "as `weft list-params` has it"},
               [](const ProvenanceParam& p) -> Json { return p.key; }},
    ParamField{
        {"device", "text", "", "the first device by name that has this value; empty if none"},
        [](const ProvenanceParam& p) -> Json { return p.device; }},
    ParamField{{"value", "text", "", "with its unit"},
               [](const ProvenanceParam& p) -> Json { return p.value; }},
    ParamField{{"origin", "text", "", "specification, published, measured, fitted or assumed"},
               [](const ProvenanceParam& p) -> Json { return p.origin; }},
    ParamField{{"source", "text", "", "what says so"},
               [](const ProvenanceParam& p) -> Json { return p.source; }}};

using ProvenanceField = JsonField<Provenance>;
constexpr std::array kProvenanceFields{
    ProvenanceField{{"weft", "text", "", "the version that ran"},
                    [](const Provenance& p) -> Json { return p.weft_version; }},
    ProvenanceField{{"commit", "text", "", "what it was built from; `unknown` if not from a clone"},
                    [](const Provenance& p) -> Json { return p.weft_commit; }},
    ProvenanceField{{"scenario", "text", "if there is one", "its file"},
                    [](const Provenance& p) { return if_any(p.scenario); }},
    ProvenanceField{{"scenario_fnv1a", "text", "if there is one", "64-bit FNV-1a of its bytes"},
                    [](const Provenance& p) { return if_any(p.scenario_digest); }},
    ProvenanceField{{"topology", "text", "", "its file"},
                    [](const Provenance& p) -> Json { return p.topology; }},
    ProvenanceField{{"topology_fnv1a", "text", "", "64-bit FNV-1a of its bytes"},
                    [](const Provenance& p) -> Json { return p.topology_digest; }},
    ProvenanceField{
        {"topology_source", "text", "", "what the topology says of where it comes from"},
        [](const Provenance& p) -> Json { return p.topology_source; }},
    ProvenanceField{{"seed", "whole number", "", "--seed"},
                    [](const Provenance& p) -> Json { return static_cast<std::int64_t>(p.seed); }},
    ProvenanceField{{"fidelity", "text", "", "fluid or packet"},
                    [](const Provenance& p) -> Json { return p.fidelity; }},
    ProvenanceField{{"nccl", "text", "", "the NCCL release whose decisions were followed"},
                    [](const Provenance& p) -> Json { return p.nccl_version; }},
    ProvenanceField{{"set", "list of text", "", "KEY=VALUE, in the order given"},
                    [](const Provenance& p) { return texts(p.overrides); }},
    ProvenanceField{{"env", "list of text", "", "NCCL's variables, NAME=VALUE"},
                    [](const Provenance& p) { return texts(p.env); }},
    ProvenanceField{
        {"parameters", "list", "", "every value that the machine was made from, by key"},
        [](const Provenance& p) { return objects_of(p.params, kParamFields); }}};

using NotRunField = JsonField<RowNotRun>;
constexpr std::array kNotRunFields{
    NotRunField{{"op", "text", "", "as in results"},
                [](const RowNotRun& r) -> Json { return r.op; }},
    NotRunField{{"bytes", "whole number", "", "as in results"},
                [](const RowNotRun& r) -> Json { return r.bytes; }},
    NotRunField{{"memory_path", "text", "", "as in results"},
                [](const RowNotRun& r) -> Json { return r.memory_path; }},
    NotRunField{{"job", "text", kJobs, "as in results"},
                [](const RowNotRun& r) { return if_any(r.job); }}};

using ResultField = JsonField<RunResult>;
constexpr std::array kResultFields{
    ResultField{{"schema", "text", "", "the version of this form: weft.run/1"},
                [](const RunResult&) -> Json { return kSchema; }},
    ResultField{{"results", "list", "", "a row for each size and memory path"},
                [](const RunResult& r) { return objects_of(r.rows, kRowFields); }},
    ResultField{{"verdict", "list of text", "", "what the rows come to, for people"},
                [](const RunResult& r) { return texts(r.verdict); }},
    ResultField{{"notes", "list of text", "", "what was not run and why, NCCL's choices, warnings"},
                [](const RunResult& r) { return texts(r.notes); }},
    ResultField{{"incomplete", "list", "if the run was stopped early",
                 "the rows that are missing: Ctrl-C, SIGTERM or --time-limit came before them"},
                [](const RunResult& r) {
                  return r.not_run.empty() ? Json() : objects_of(r.not_run, kNotRunFields);
                }},
    ResultField{{"provenance", "map", "", "what the result was made from"},
                [](const RunResult& r) { return object_of(r.provenance, kProvenanceFields); }}};

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
  if (json.find("job") != nullptr) row.job = text_at(json, "job");
  if (json.find("alone_us") != nullptr) row.alone_us = positive_at(json, "alone_us");
  if (json.find("nccl_choice") != nullptr) row.nccl_choice = text_at(json, "nccl_choice");
  row.time_us = positive_at(json, "time_us");
  row.algbw_gb_per_s = positive_at(json, "algbw_GBps");
  if (json.find("nic_GBps") != nullptr) row.nic_gb_per_s = positive_at(json, "nic_GBps");
  row.busbw_gb_per_s =  // 0 for one rank
      member(json, "busbw_GBps", [](const Json& value) { return value.as_number(); });
  row.limited_by = items_at<CauseShare>(json, "limited_by", cause_from_json);
  return row;
}

/// Of a training step or irregular traffic, which has the name of its time and no bytes.
ResultRow path_from_json(const Json& json, const std::string& op, const std::string& time,
                         const Json& of) {
  ResultRow row;
  row.op = op;
  row.ranks = count_at(of, "ranks");
  row.nodes = count_at(of, "nodes");
  row.memory_path = text_at(json, "memory_path");
  row.time_us = positive_at(json, time);
  row.limited_by = items_at<CauseShare>(json, "limited_by", cause_from_json);
  return row;
}

std::vector<ResultRow> rows_from_json(const Json& json, std::string_view schema) {
  if (schema == kSchema) return items_at<ResultRow>(json, "results", row_from_json);
  const auto paths = [&](const std::string& op, const std::string& time) {
    return items_at<ResultRow>(
        json, "results", [&](const Json& path) { return path_from_json(path, op, time, json); });
  };
  if (schema == kStepSchema) return paths("step", "step_us");
  if (schema == kTrafficSchema) return paths(text_at(json, "op"), "time_us");
  throw InputError(fmt::format("its schema is '{}'; known: {}, {}, {}", schema, kSchema,
                               kStepSchema, kTrafficSchema));
}

Provenance provenance_from_json(const Json& json) {
  Provenance p;
  p.weft_version = text_at(json, "weft");
  if (json.find("commit") != nullptr) p.weft_commit = text_at(json, "commit");
  if (json.find("scenario") != nullptr) p.scenario = text_at(json, "scenario");
  if (json.find("scenario_fnv1a") != nullptr) p.scenario_digest = text_at(json, "scenario_fnv1a");
  p.topology = text_at(json, "topology");
  p.topology_digest = text_at(json, "topology_fnv1a");
  p.topology_source = text_at(json, "topology_source");
  p.seed = static_cast<std::uint64_t>(integer_at(json, "seed"));
  p.fidelity = text_at(json, "fidelity");
  if (json.find("nccl") != nullptr) p.nccl_version = text_at(json, "nccl");
  p.overrides = texts_at(json, "set");
  p.env = texts_at(json, "env");
  p.params = items_at<ProvenanceParam>(json, "parameters", [](const Json& item) {
    return ProvenanceParam{text_at(item, "key"), text_at(item, "device"), text_at(item, "value"),
                           text_at(item, "origin"), text_at(item, "source")};
  });
  return p;
}

}  // namespace

std::uint32_t ResultRow::extended_from_nodes() const {
  const auto fewer = std::ranges::find_if(extended, [](const auto& e) { return e.by != "byte"; });
  return fewer == extended.end() ? 0 : static_cast<std::uint32_t>(fewer->from.front());
}

std::vector<ProvenanceParam> provenance_of(const UsedParams& used, const ParamCatalog& catalog) {
  std::vector<ProvenanceParam> out;
  for (const UsedParam& param : used.all()) {
    const ParamSpec& spec = *catalog.find(param.key);
    out.push_back({param.key, param.device, ParamCatalog::format(spec, param.value.number),
                   std::string(origin_name(param.value.origin)), param.value.source});
  }
  return out;
}

Json to_json(const Provenance& provenance) { return object_of(provenance, kProvenanceFields); }

Json to_json(const RunResult& result) { return object_of(result, kResultFields); }

std::vector<FormatSection> run_result_format() {
  std::vector<FormatSection> sections{
      {"", "The file.", keys_of(kResultFields)},
      {"results[]", "One operation of one size over one memory path.", keys_of(kRowFields)},
      {"results[].limited_by[]", "A share of a row's time.", keys_of(kCauseFields)},
      {"results[].extended[]", "How a row's time is extended.", keys_of(kExtendedFields)},
      {"results[].link_use[]", "One direction of a link.", keys_of(kLinkFields)}};
  for (FormatSection& section : probes_format()) sections.push_back(std::move(section));
  sections.push_back({"incomplete[]", "A row that is missing.", keys_of(kNotRunFields)});
  sections.push_back({"provenance", "What the result was made from: enough to make it again.",
                      keys_of(kProvenanceFields)});
  sections.push_back(
      {"provenance.parameters[]", "A parameter as the run used it.", keys_of(kParamFields)});
  return sections;
}

RunResult run_result_from_json(const Json& json) {
  const Json* schema = json.is_object() ? json.find("schema") : nullptr;
  if (schema == nullptr || !schema->is_string()) {
    throw InputError("has no \"schema\": not a result of weft run --json");
  }
  RunResult result;
  result.rows = rows_from_json(json, schema->as_string());
  result.verdict = texts_at(json, "verdict");
  result.notes = texts_at(json, "notes");
  result.provenance = member(json, "provenance", provenance_from_json);
  std::set<std::tuple<std::string, std::string, std::int64_t, std::string>> seen;
  for (const ResultRow& row : result.rows) {
    if (!seen.emplace(row.job, row.op, row.bytes, row.memory_path).second) {
      throw InputError("results: " + row.op + " of " + std::to_string(row.bytes) + " B over " +
                       row.memory_path + " is given twice");
    }
  }
  return result;
}

}  // namespace weft
