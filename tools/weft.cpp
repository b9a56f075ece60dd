#include "tools/weft.hpp"

#include <cassert>

#include "models/collective/predict.hpp"
#include "models/collective/settings.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/base/version.hpp"
#include "sim/input/scenario.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "tools/assembled.hpp"
#include "tools/border.hpp"
#include "tools/copies_json.hpp"
#include "tools/not_run.hpp"
#include "tools/perftest_json.hpp"
#include "tools/show_text.hpp"

namespace weft::api {
namespace {

/// As run_asking(), of what is given whole or not at all.
template <class Work>
auto run_whole(const std::function<bool()>& asked, Work work) {
  try {
    return run_asking(asked, work);
  } catch (const Stopped&) {
    throw Stopped("stopped before all sizes were run");
  }
}

Row row_of(ResultRow&& row) {
  Row out{std::move(row.op),
          row.bytes,
          row.ranks,
          row.nodes,
          std::move(row.memory_path),
          std::move(row.algo),
          std::move(row.proto),
          row.channels,
          std::move(row.nccl_choice),
          row.time_us,
          row.algbw_gb_per_s,
          row.busbw_gb_per_s,
          {},
          row.extended_from_nodes(),
          std::move(row.job),
          row.alone_us};
  for (CauseShare& cause : row.limited_by) out.limited_by.push_back(cause_of(std::move(cause)));
  return out;
}

std::vector<NotRun> not_run_of(const weft::Scenario& scenario, const RunResult& result) {
  assert(!result.rows.empty() && "else predict() throws");
  std::vector<NotRun> out;
  for (const PathNotRun& path : paths_not_run(scenario, result)) {
    out.push_back({result.rows.front().op, 0, path.memory_path, "", path.why});
  }
  for (const RowNotRun& row : result.not_run) {
    out.push_back({row.op, row.bytes, row.memory_path, row.job, kStoppedBefore});
  }
  return out;
}

PerftestRequest request_of(const PerftestOptions& options) {
  PerftestRequest request;
  request.op = options.op;
  request.memory = options.memory;
  request.post = options.post;
  request.options.from = options.from;
  request.options.to = options.to;
  request.options.from_nic = options.from_nic;
  request.options.to_nic = options.to_nic;
  request.options.bidirectional = options.bidirectional;
  request.iterations = options.iterations;
  request.tx_depth = options.tx_depth;
  request.qps = options.qps;
  request.cq_moderation = options.cq_moderation;
  request.rx_depth = options.rx_depth;
  request.post_list = options.post_list;
  request.all = options.all;
  request.gpu = options.gpu;
  request.seed = options.seed;
  return request;
}

PerftestRow row_of(weft::PerftestRow&& row) {
  return {row.bytes.count(),
          row.iterations,
          row.average.as_gigabits_per_s(),
          row.peak.as_gigabits_per_s(),
          row.messages_per_s,
          row.latency.as_us(),
          std::move(row.limited_by)};
}

CopyRow row_of(weft::CopyRow row, const std::string& by) {
  CopyRow out{std::move(row.test),
              std::move(row.from),
              std::move(row.to),
              std::move(row.kind),
              by,
              row.bytes.count(),
              row.copies,
              row.time.as_us(),
              row.rate.as_gigabytes_per_s(),
              row.forth.as_gigabytes_per_s(),
              {},
              {}};
  if (row.back) out.back_gb_per_s = row.back->as_gigabytes_per_s();
  for (CauseShare& cause : row.limited_by) out.limited_by.push_back(cause_of(std::move(cause)));
  return out;
}

}  // namespace

std::string version() { return std::string(weft_version()); }
std::string commit() { return std::string(weft_commit()); }

std::vector<Parameter> parameters() {
  return at_the_border([] {
    std::vector<Parameter> out;
    for (SettingKey& key : setting_keys(make_catalog())) {
      out.push_back({std::move(key.key), std::move(key.unit), std::move(key.range),
                     std::move(key.fallback), std::move(key.origin), std::move(key.source),
                     std::move(key.meaning), std::move(key.also)});
    }
    return out;
  });
}

Scenario::Scenario(std::string text, std::string name)
    : text_{std::move(text)}, name_{std::move(name)} {}

Scenario Scenario::load(const std::string& file) {
  return parse(at_the_border([&] { return read_text_file(file); }), file);
}

Scenario Scenario::parse(const std::string& text, const std::string& name) {
  return at_the_border([&] {
    Scenario scenario(text, name);
    scenario.check();
    return scenario;
  });
}

/// Finds out whether text, settings and variables hold.
void Scenario::check() const {
  const weft::Scenario scenario = parse_scenario(text_, name_);
  const ParamCatalog catalog = make_catalog();
  Params params(catalog);
  std::map<std::string, std::string> env = scenario.env;
  std::map<std::string, Place> places = scenario.env_place;
  for (const auto& [name, value] : env_) {
    env[name] = value;
    places.erase(name);
  }
  apply_nccl_env(env, params, places, scenario_nccl_version(scenario));
  TopologySpec spec = read_topology(scenario.topology, catalog);
  spec.nodes = scenario.nodes.value_or(spec.nodes);
  std::vector<ScenarioSetting> settings = scenario.set;
  for (ScenarioSetting& setting : settings_of(set_)) settings.push_back(std::move(setting));
  apply_settings(settings, spec, params);
}

Scenario& Scenario::set(const std::string& key, const std::string& value) {
  return at_the_border([&]() -> Scenario& {
    Scenario changed = *this;
    changed.set_.emplace_back(key, value);
    changed.check();
    return *this = std::move(changed);
  });
}

Scenario& Scenario::env(const std::string& name, const std::string& value) {
  return at_the_border([&]() -> Scenario& {
    Scenario changed = *this;
    changed.env_[name] = value;
    changed.check();
    return *this = std::move(changed);
  });
}

Prediction Scenario::predict(const RunOptions& options) const {
  return at_the_border([&] {
    PredictOptions how = predict_options(
        {.env = env_, .seed = options.seed, .threads = options.threads}, settings_of(set_));
    how.fidelity = parse_fidelity(options.fidelity);
    how.force = options.force;
    how.link_use = true;
    const weft::Scenario scenario = parse_scenario(text_, name_);
    const auto run = [&](const Stop* stop) {
      how.stop = stop;
      return weft::predict(scenario, how, make_catalog());
    };
    RunResult result = run_asking(options.stop, run);
    Prediction out;
    out.json = to_json(result).dump();
    out.not_run = not_run_of(scenario, result);
    for (ResultRow& row : result.rows) out.rows.push_back(row_of(std::move(row)));
    out.verdict = std::move(result.verdict);
    out.notes = std::move(result.notes);
    return out;
  });
}

Topology::Topology(std::string text, std::string name)
    : text_{std::move(text)}, name_{std::move(name)} {}

Topology Topology::load(const std::string& file) {
  return parse(at_the_border([&] { return read_text_file(file); }), file);
}

Topology Topology::parse(const std::string& text, const std::string& name) {
  return at_the_border([&] {
    Topology topology(text, name);
    topology.check();
    return topology;
  });
}

void Topology::check() const {
  const ParamCatalog catalog = make_catalog();
  Params params(catalog);
  TopologySpec spec = parse_topology(text_, name_, catalog);
  apply_settings(settings_of(set_), spec, params);
}

Topology& Topology::set(const std::string& key, const std::string& value) {
  return at_the_border([&]() -> Topology& {
    Topology changed = *this;
    changed.set_.emplace_back(key, value);
    changed.check();
    return *this = std::move(changed);
  });
}

Perftest Topology::perftest(const PerftestOptions& options) const {
  return at_the_border([&] {
    const PerftestRequest request = request_of(options);
    const std::vector<Bytes> sizes = options.all ? all_perftest_sizes() : sizes_of(options.bytes);
    weft::PerftestOptions checked = perftest_options(request, sizes);
    const Assembled on(parse_topology(text_, name_, make_catalog()),
                       perftest_settings(request, settings_of(set_)), perftest_nodes(checked));
    const PerftestEnds ends = perftest_ends(on.machine, checked);
    const auto name = [&](DeviceId device) { return on.fabric.full_name(device); };
    PerftestReport report{
        request,           checked, name(ends.from), name(ends.to), name(ends.from_nic),
        name(ends.to_nic), {}};
    report.rows = run_whole(options.stop, [&](const Stop* stop) {
      checked.stop = stop;
      std::vector<weft::PerftestRow> rows;
      for (const Bytes size : sizes) {
        if (stop != nullptr) stop->check();
        rows.push_back(weft::perftest(on.machine, checked, size));
      }
      return rows;
    });
    Perftest out{report.from,           report.to, report.from_nic,
                 report.to_nic,         {},        on.fabric.spec().notes,
                 to_json(report).dump()};
    for (const std::string& note :
         {no_effect_on_perftest(settings_of(set_), on.machine), without_effect(request, checked),
          seed_note(request, report.rows), outage_before_rates(on.machine, ends, report.rows)}) {
      if (!note.empty()) out.notes.push_back(note);
    }
    for (weft::PerftestRow& row : report.rows) out.rows.push_back(row_of(std::move(row)));
    return out;
  });
}

Copies Topology::copies(const CopiesOptions& options) const {
  return at_the_border([&] {
    CopiesRequest request{options.from,          options.to,     options.by, options.fidelity,
                          options.bidirectional, options.blocks, options.all};
    std::vector<ScenarioSetting> settings = settings_of(set_);
    if (!options.gpu.empty()) settings.push_back({"gpu.part", options.gpu, {}});
    const ParamCatalog catalog = make_catalog();
    const Assembled on(with_large_buffers(parse_topology(text_, name_, catalog), catalog), settings,
                       1);
    const std::vector<Bytes> sizes = sizes_of(options.bytes);
    return run_whole(options.stop, [&](const Stop* stop) {
      request.stop = stop;
      CopiesRun run(on, request, sizes);
      Copies out;
      out.text = run.head();
      for (const Bytes size : run.sizes()) {
        if (stop != nullptr) stop->check();
        out.text += run.run(size);
      }
      for (const weft::CopyRow& row : run.report().rows) {
        out.rows.push_back(row_of(row, options.by));
      }
      out.notes = on.fabric.spec().notes;
      for (const std::string& note :
           {no_effect_on_copies(settings_of(set_), on.machine), run.note()}) {
        if (!note.empty()) out.notes.push_back(note);
      }
      out.json = to_json(run.report()).dump();
      return out;
    });
  });
}

Shown Topology::show() const {
  return at_the_border([&] {
    const Assembled on(parse_topology(text_, name_, make_catalog()), settings_of(set_), 1);
    Shown out;
    const NodeView node = node_view(on.machine);
    for (const PairView& pair : node.pairs) {
      out.pairs.push_back({on.fabric.device(pair.gpu).name, on.fabric.device(pair.nic).name,
                           pair.label.text(), pair.gdr_possible, pair.nccl_default, pair.why,
                           pair.write_gb_per_s, pair.read_gb_per_s});
    }
    out.notes = on.fabric.spec().notes;
    out.text = show_text(on.machine, node);
    out.json = show_json(on.machine, node).dump();
    return out;
  });
}

}  // namespace weft::api
