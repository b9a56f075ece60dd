#include "sim/result/run_result.hpp"

#include <stdexcept>

namespace weft {
namespace {

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
  return Json::object({{"op", row.op},
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
  return Json::object({{"schema", "weft.run/1"},
                       {"results", rows},
                       {"verdict", strings(result.verdict)},
                       {"notes", strings(result.notes)},
                       {"provenance", to_json(result.provenance)}});
}

}  // namespace weft
