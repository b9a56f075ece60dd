#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/collective/settings.hpp"
#include "models/registry/registry.hpp"

namespace weft {

inline std::string shipped(const std::string& file) {
  return std::string(WEFT_SOURCE_DIR) + "/" + file;
}

/// The names of the files in topologies/, sorted.
inline std::vector<std::string> shipped_topologies() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(shipped("topologies"))) {
    if (entry.path().extension() != ".md") files.push_back(entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// "hgx-h100-8nic.yaml" as GoogleTest takes a parameter's name: "hgx_h100_8nic_yaml".
inline std::string test_name(std::string file) {
  std::replace_if(
      file.begin(), file.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return file;
}

/// A collective of one size over both memory paths, with nothing set.
inline Scenario scenario_of(const std::string& topology, std::uint32_t nodes, const std::string& op,
                            Bytes bytes) {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.set.clear();
  scenario.env.clear();
  scenario.topology = shipped("topologies/" + topology);
  scenario.nodes = nodes;
  scenario.op = op;
  scenario.sizes = {bytes};
  scenario.memory_paths = {"gdr", "host-staged"};
  return scenario;
}

/// The row of a collective of one size over one memory path, as NCCL decides it but for settings
/// "key=value". Not `folds`: of every rank.
inline ResultRow decided_row(const std::string& topology, std::uint32_t nodes,
                             const std::string& op, Bytes bytes,
                             const std::vector<std::string>& settings,
                             Fidelity fidelity = Fidelity::kFluid, bool folds = true,
                             const std::string& memory_path = "gdr") {
  Scenario scenario = scenario_of(topology, nodes, op, bytes);
  scenario.memory_paths = {memory_path};
  PredictOptions options;
  options.threads = 1;
  options.fidelity = fidelity;
  options.folds = folds;
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  return predict(scenario, options, make_catalog()).rows.at(0);
}

/// What is told beforehand of how long a collective of one size takes over GPUDirect RDMA, with
/// settings "key=value".
inline std::vector<std::string> told_beforehand(const std::string& topology, std::uint32_t nodes,
                                                const std::string& op, Bytes bytes,
                                                const std::vector<std::string>& settings) {
  Scenario scenario = scenario_of(topology, nodes, op, bytes);
  scenario.memory_paths = {"gdr"};
  PredictOptions options;
  options.check_only = true;
  std::vector<std::string> out;
  options.on_estimate = [&](const std::string& text, double) { out.push_back(text); };
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  predict(scenario, options, make_catalog());
  return out;
}

/// The rows of the quickstart's scenario, for one size and memory path, with settings "key=value".
/// Rings by weft's simple rule: these tests hold the devices' models to closed forms for a schedule
/// that stays the same, whatever NCCL would decide on the machine they change.
inline ResultRow predict_one(const std::string& memory_path, Bytes bytes,
                             const std::vector<std::string>& settings = {},
                             const std::string& topology = "topologies/hgx-h100-8nic.yaml",
                             std::uint32_t nodes = 2, const std::string& op = "allreduce",
                             Fidelity fidelity = Fidelity::kFluid,
                             std::shared_ptr<SharedRuns> shared = {}) {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.topology = shipped(topology);
  scenario.nodes = nodes;
  scenario.op = op;
  scenario.sizes = {bytes};
  scenario.memory_paths = {memory_path};
  PredictOptions options;
  options.threads = 1;
  options.fidelity = fidelity;
  options.shared = std::move(shared);
  options.set.push_back(parse_setting("nccl.decisions=simple"));
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  return predict(scenario, options, make_catalog()).rows.at(0);
}

/// Kernels that cost nothing but launch and flags: for closed forms of what carries the data.
inline std::vector<std::string> free_kernels() {
  std::vector<std::string> all{"gpu.sm_line_share=1", "gpu.sm_load_latency=0 ns"};
  for (const char* rate : {"load", "store", "peer_store", "poll"}) {
    all.push_back(std::string("gpu.sm_") + rate + "_rate=100000 GB/s");
  }
  for (const char* protocol : {"ll", "ll128", "simple"}) {
    all.push_back(std::string("nccl.work_") + protocol + "=0 ns");
  }
  return all;
}

/// The same as predict_one() with such kernels, of one launch alone.
inline ResultRow predict_carried(const std::string& memory_path, Bytes bytes,
                                 const std::vector<std::string>& settings = {},
                                 const std::string& topology = "topologies/hgx-h100-8nic.yaml",
                                 std::uint32_t nodes = 2, const std::string& op = "allreduce",
                                 Fidelity fidelity = Fidelity::kFluid) {
  std::vector<std::string> all = free_kernels();
  all.insert(all.end(), {"nccl.launch=single", "nccl.host_wait=0 ns"});
  all.insert(all.end(), settings.begin(), settings.end());
  return predict_one(memory_path, bytes, all, topology, nodes, op, fidelity);
}

/// Every rate at `factor` times its default and every time at 1/factor, set by the user for all
/// devices.
inline std::vector<std::string> everything_scaled(double factor) {
  const ParamCatalog catalog = make_catalog();
  std::vector<std::string> out;
  for (const ParamSpec& spec : catalog.specs()) {
    const bool rate = spec.unit == Unit::kGigabytesPerS || spec.unit == Unit::kMegatransfers;
    const bool time =
        spec.unit == Unit::kNanoseconds || spec.unit == Unit::kMetres;  // a cable's length
    if ((!rate && !time) || spec.fallback == spec.max) continue;        // the largest: no limit
    const double value = rate ? spec.fallback * factor : spec.fallback / factor;
    out.push_back(std::string(spec.key) + "=" + format_quantity(value, spec.unit));
  }
  for (const char* kind : {"gpu", "nic", "switch"}) {  // Gen4 to Gen5 doubles a link's rate
    out.push_back(std::string(kind) + ".pcie_gen=" + (factor == 1 ? "4" : "5"));
  }
  return out;
}

}  // namespace weft
