#include "sim/input/scenario.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <set>

#include "sim/base/lower_case.hpp"
#include "sim/base/operation.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/random.hpp"
#include "sim/io/file.hpp"
#include "sim/io/keys.hpp"
#include "sim/io/text_kind.hpp"
#include "sim/io/yaml.hpp"

namespace weft {
namespace {

constexpr std::array<std::string_view, 3> kMemoryPaths{"gdr", "host-staged", "nccl"};
constexpr std::array<std::string_view, 5> kRunAlgos{"Ring", "Tree", "NVLS", "NVLSTree", "PAT"};
constexpr std::string_view kSizeForm = "size, 1 B to 4 TiB";

constexpr std::array kScenarioKeys{
    KeySpec{"scenario", "text", kRequired, "its name"},
    KeySpec{"about", "text", "none", "what it asks, for people"},
    KeySpec{"topology", "path", kRequired,
            "a topology file, weft's YAML or NCCL's XML; relative to the scenario's folder"},
    KeySpec{"gpu", "text", "what the topology says",
            "which GPUs these are (h100-sxm): the same as `set: {gpu.part: ...}`"},
    KeySpec{"nodes", "whole number", "the topology's", "how many nodes take part", {}, 1, 1 << 20},
    KeySpec{"workload", "map", "none; needed unless `jobs` stands", "what runs, on all nodes"},
    KeySpec{"jobs", "list", "none",
            "what runs at once, each on nodes of its own; in place of workload"},
    KeySpec{
        "memory_paths", "list of", "[gdr, host-staged]; of steps, traces and traffic [gdr]",
        "the way through memory: GPUDirect RDMA, pinned host buffers, or either as NCCL decides "
        "for each GPU, NIC and direction",
        kMemoryPaths},
    KeySpec{"env", "map", "none", "NCCL's environment variables: NCCL_...: text"},
    KeySpec{"nccl_version", "text", "2.28.9", "the NCCL release whose decisions are followed"},
    KeySpec{"set", "map", "none", "any key of `weft list-params`, value with its unit"}};
constexpr std::array kWorkloadKeys{
    KeySpec{"op", "one of", "none; needed unless `step` stands",
            "the operation; all_reduce and AllReduce are allreduce", kOpNames},
    KeySpec{"algo", "one of", "NCCL's choice", "the algorithm of all sizes", kRunAlgos},
    KeySpec{"min", kSizeForm, "none; needed unless `sizes` stands", "the smallest size"},
    KeySpec{"max", kSizeForm, "none; needed unless `sizes` stands", "no size is larger"},
    KeySpec{
        "factor", "whole number", "2", "each size is so many times the one before", {}, 2, 1 << 20},
    KeySpec{"sizes", "list of sizes", "none", "ascending; in place of min, max and factor"},
    KeySpec{"step", "map", "none", "a training step, which `weft step` runs; in place of all else"},
    KeySpec{"chakra", "path", "none",
            "traces of MLCommons Chakra, FILE.0.et, FILE.1.et, ..., which `weft step` runs; in "
            "place of all else; relative to the scenario's folder"},
    KeySpec{"groups", "path", "none",
            "with `chakra`: ranks by process group, JSON as ASTRA-sim's comm_group.json"}};

constexpr std::array kJobKeys{
    KeySpec{"job", "text", kRequired, "its name"},
    KeySpec{
        "nodes", "list of nodes", kRequired,
        "which nodes, from 0 on, in the order of their ranks: \"0-3,8\"; none of another job's"},
    KeySpec{"op", "one of", kRequired, "the operation", kOpNames},
    KeySpec{"size", kSizeForm, kRequired, "the size"}};
constexpr std::size_t kMostJobs = 1024;

std::string read_op(const Yaml& yaml) {
  try {
    return std::string(op_name(parse_op(yaml.text())));
  } catch (const InputError& error) {
    yaml.fail(error.what());
  }
}

/// What a scenario says of the algorithm is a setting like any other, but easier to find.
ScenarioSetting read_algo(const Yaml& yaml, const std::string& op) {
  const auto* const known =
      std::find_if(kRunAlgos.begin(), kRunAlgos.end(),
                   [&](std::string_view name) { return is_same_word(name, yaml.text()); });
  if (known == kRunAlgos.end()) {
    yaml.fail("'" + yaml.text() + "' is not an algorithm that weft runs; known: " +
              known_names({kRunAlgos.begin(), kRunAlgos.end()}));
  }
  const std::string algo(*known);
  if (is_point_to_point(parse_op(op))) yaml.fail(op + " has no algorithm");
  if (algo.ends_with("Tree") && op != "allreduce") {
    yaml.fail(algo + " runs allreduce only; write Ring");
  }
  if (algo == "PAT" && op != "allgather" && op != "reducescatter") {
    yaml.fail(algo + " runs allgather and reducescatter only; write Ring");
  }
  return {"nccl.algo", algo, yaml.place()};
}

Bytes read_size(const Yaml& yaml) {
  const Bytes size = yaml.size();
  if (size < Bytes{1} || size > kLargestSize) {
    yaml.fail("'" + yaml.text() + "' is out of range; allowed: 1 B to " +
              format_size(kLargestSize));
  }
  return size;
}

std::vector<Bytes> read_size_list(const Yaml& yaml) {
  std::vector<Bytes> sizes;
  for (const Yaml& item : yaml.items()) {
    sizes.push_back(read_size(item));
    if (sizes.size() > 1 && sizes[sizes.size() - 2] >= sizes.back()) {
      item.fail("sizes must ascend, none given twice");
    }
  }
  if (sizes.empty()) yaml.fail("no size; write one at least, such as [1 MiB]");
  return sizes;
}

/// As nccl-tests' -b, -e and -f: `min`, then times `factor` as long as it is at most `max`.
std::vector<Bytes> read_size_range(const Yaml& yaml) {
  const Bytes min = read_size(yaml.require("min"));
  const Bytes max = read_size(yaml.require("max"));
  if (max < min) yaml.require("max").fail("is smaller than min");
  const Yaml* factor_yaml = yaml.find("factor");
  const std::int64_t factor =
      factor_yaml == nullptr ? 2 : read_integer(*factor_yaml, key_of(kWorkloadKeys, "factor"));
  std::vector<Bytes> sizes;
  for (Bytes size = min; size <= max; size = size * factor) sizes.push_back(size);
  return sizes;
}

/// A path to what is named `what`, from the scenario's folder.
std::string resolve(const Yaml& path, const std::string& scenario_file, const char* what) {
  if (path.text().empty()) path.fail(std::string("expected a path to ") + what);
  const std::filesystem::path folder = std::filesystem::path(scenario_file).parent_path();
  return (folder / path.text()).lexically_normal().string();
}

void read_workload(const Yaml& yaml, Scenario& scenario) {
  if (const Yaml* op = yaml.find("op");
      op != nullptr && op->is_scalar() && traffic_kind(op->text())) {
    const std::string folder = std::filesystem::path(scenario.file).parent_path().string();
    scenario.traffic = read_traffic(yaml, folder);
    return;
  }
  check_keys(yaml, kWorkloadKeys);
  const auto alone = [&](std::string_view key, std::string_view also) {
    for (const auto& [other, value] : yaml.entries()) {
      if (other == key || other == also) continue;
      value.fail("write either this or '" + std::string(key) + "', not both");
    }
  };
  if (const Yaml* step = yaml.find("step")) {
    alone("step", "step");
    scenario.step = read_step(*step);
    return;
  }
  if (const Yaml* chakra = yaml.find("chakra")) {
    alone("chakra", "groups");
    scenario.chakra = {resolve(*chakra, scenario.file, "traces"), "", chakra->place()};
    if (const Yaml* groups = yaml.find("groups")) {
      scenario.chakra->groups = resolve(*groups, scenario.file, "a file of groups");
    }
    return;
  }
  if (const Yaml* groups = yaml.find("groups")) groups->fail("goes with 'chakra' only");
  scenario.op = read_op(yaml.require("op"));
  if (const Yaml* algo = yaml.find("algo")) {
    scenario.set.push_back(read_algo(*algo, scenario.op));
  }
  const Yaml* list = yaml.find("sizes");
  if (list == nullptr) {
    scenario.sizes = read_size_range(yaml);
    return;
  }
  for (const std::string_view key : {"min", "max", "factor"}) {
    if (const Yaml* extra = yaml.find(key)) extra->fail("write either this or 'sizes', not both");
  }
  scenario.sizes = read_size_list(*list);
}

/// "0-3,8": each node from the first to the last, and so on.
std::vector<std::uint32_t> read_job_nodes(const Yaml& yaml) {
  constexpr std::uint32_t kMostNodes = 1U << 20;
  std::vector<std::uint32_t> nodes;
  const auto refuse = [&]() { yaml.fail("'" + yaml.text() + "': write nodes as 0-3,8"); };
  const auto number = [&](const char*& at, const char* end) {
    std::uint32_t out{};
    const auto [rest, error] = std::from_chars(at, end, out);
    if (error != std::errc{} || out >= kMostNodes) refuse();
    at = rest;
    return out;
  };
  for (const std::string& range : comma_separated(yaml.text())) {
    const char* at = range.data();
    const char* const end = at + range.size();
    const std::uint32_t first = number(at, end);
    std::uint32_t last = first;
    if (at != end && *at == '-') last = number(++at, end);
    if (at != end || last < first) refuse();
    for (std::uint32_t node = first; node <= last; ++node) nodes.push_back(node);
    if (nodes.size() > kMostNodes) refuse();
  }
  if (nodes.empty()) refuse();
  return nodes;
}

std::vector<ScenarioJob> read_jobs(const Yaml& yaml) {
  std::vector<ScenarioJob> jobs;
  std::set<std::uint32_t> taken;
  std::set<std::string> names;
  if (yaml.items().size() > kMostJobs) yaml.fail("more than 1024 jobs");
  for (const Yaml& item : yaml.items()) {
    check_keys(item, kJobKeys);
    jobs.push_back({item.require("job").text(), read_job_nodes(item.require("nodes")),
                    read_op(item.require("op")), read_size(item.require("size")), item.place()});
    const std::string& name = jobs.back().name;
    if (name.empty() || one_line(name) != name) {
      item.require("job").fail("write a name without control characters");
    }
    if (!names.insert(name).second) item.require("job").fail("name given twice");
    for (const std::uint32_t node : jobs.back().nodes) {
      if (taken.insert(node).second) continue;
      item.require("nodes").fail("node " + std::to_string(node) + " has a job already");
    }
  }
  if (jobs.empty()) yaml.fail("no job; write one at least, or 'workload'");
  return jobs;
}

std::vector<std::string> read_memory_paths(const Yaml& yaml) {
  std::vector<std::string> paths;
  for (const Yaml& item : yaml.items()) {
    const std::string& path = item.text();
    if (std::find(kMemoryPaths.begin(), kMemoryPaths.end(), path) == kMemoryPaths.end()) {
      item.fail("'" + path + "' is not a memory path; known: " +
                known_names({kMemoryPaths.begin(), kMemoryPaths.end()}));
    }
    if (std::find(paths.begin(), paths.end(), path) != paths.end()) {
      item.fail("'" + path + "' is given twice");
    }
    paths.push_back(path);
  }
  if (paths.empty()) yaml.fail("no memory path; write [gdr, host-staged] or one of them");
  return paths;
}

void read_env(const Yaml& yaml, Scenario& scenario) {
  for (const auto& [name, value] : yaml.entries()) {
    if (!name.starts_with("NCCL_")) value.fail("allowed are NCCL's variables: NCCL_...");
    scenario.env.emplace(name, value.text());
    scenario.env_place.emplace(name, value.place());
  }
}

void add_settings(const Yaml& yaml, std::vector<ScenarioSetting>& settings) {
  for (const auto& [key, value] : yaml.entries()) {
    settings.push_back({key, value.text(), value.place()});
  }
}

}  // namespace

std::vector<FormatSection> scenario_format() {
  std::vector<FormatSection> out{
      {"", "The file.", {kScenarioKeys.begin(), kScenarioKeys.end()}},
      {"workload",
       "What runs; its sizes are given by `min` and `max`, or by `sizes`.",
       {kWorkloadKeys.begin(), kWorkloadKeys.end()}},
      {"jobs[]",
       "A job among others. All begin at once; those that are shorter alone are launched again "
       "and again, 32 times at most, beside the longest; each is held against itself alone.",
       {kJobKeys.begin(), kJobKeys.end()}}};
  for (FormatSection& section : step_format()) out.push_back(std::move(section));
  out.push_back(traffic_format());
  return out;
}

Scenario read_scenario(const std::string& file) {
  return parse_scenario(read_text_file(file), file);
}

std::vector<std::string> files_of(const Scenario& scenario) {
  std::vector<std::string> out{scenario.topology};
  if (scenario.chakra) out.push_back(scenario.chakra->groups);
  if (scenario.traffic) {
    out.push_back(scenario.traffic->matrix);
    out.push_back(scenario.traffic->routing);
  }
  std::erase(out, "");
  return out;
}

Scenario parse_scenario(const std::string& text, const std::string& file) {
  refuse_other_kind(text, file, TextKind::kScenario);
  const Yaml yaml = Yaml::parse(text, file);
  check_keys(yaml, kScenarioKeys);
  Scenario scenario;
  scenario.file = file;
  scenario.digest = fnv1a(text);
  scenario.name = yaml.require("scenario").text();
  if (const Yaml* about = yaml.find("about")) about->text();  // for people; must be text
  scenario.topology = resolve(yaml.require("topology"), file, "a topology file");
  if (const Yaml* nodes = yaml.find("nodes")) {
    scenario.nodes =
        static_cast<std::uint32_t>(read_integer(*nodes, key_of(kScenarioKeys, "nodes")));
  }
  if (const Yaml* jobs = yaml.find("jobs")) {
    if (const Yaml* both = yaml.find("workload"))
      both->fail("write either this or 'jobs', not both");
    scenario.jobs = read_jobs(*jobs);
  } else {
    read_workload(yaml.require("workload"), scenario);
  }
  const Yaml* paths = yaml.find("memory_paths");
  if (paths != nullptr) {
    scenario.memory_paths = read_memory_paths(*paths);
  } else {
    scenario.memory_paths = {"gdr", "host-staged"};
    if (scenario.op.empty()) scenario.memory_paths.resize(1);
  }
  if (const Yaml* env = yaml.find("env")) read_env(*env, scenario);
  if (const Yaml* version = yaml.find("nccl_version")) {
    scenario.nccl_version = version->text();
    scenario.nccl_version_place = version->place();
  }
  if (const Yaml* gpu = yaml.find("gpu")) {
    scenario.set.push_back({"gpu.part", gpu->text(), gpu->place()});
  }
  if (const Yaml* set = yaml.find("set")) add_settings(*set, scenario.set);
  return scenario;
}

}  // namespace weft
