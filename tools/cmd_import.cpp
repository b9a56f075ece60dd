#include <array>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "models/collective/settings.hpp"
#include "models/machine/machine.hpp"
#include "models/params/device_params.hpp"
#include "models/registry/registry.hpp"
#include "sim/input/evidence/machine.hpp"
#include "sim/input/topology_write.hpp"
#include "sim/input/topology_yaml.hpp"
#include "sim/io/file.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"

namespace weft {
namespace {

/// What a machine's evidence should tell, and what would tell it.
struct Question {
  DeviceKind kind;
  std::string_view parameter;
  std::string_view command;
};
constexpr std::array<Question, 19> kQuestions{
    {{DeviceKind::kCpu, "part", "lscpu"},
     {DeviceKind::kCpu, "iommu", "cat /proc/cmdline; dmesg"},
     {DeviceKind::kCpu, "acs", "sudo lspci -vvv"},
     {DeviceKind::kCpu, "mps", "sudo lspci -vvv"},
     {DeviceKind::kSwitch, "part", "lspci -vvv"},
     {DeviceKind::kSwitch, "pcie_gen", "sudo lspci -vvv"},
     {DeviceKind::kSwitch, "pcie_width", "sudo lspci -vvv"},
     {DeviceKind::kGpu, "part", "nvidia-smi -q"},
     {DeviceKind::kGpu, "pcie_gen", "nvidia-smi -q"},
     {DeviceKind::kGpu, "pcie_width", "nvidia-smi -q"},
     {DeviceKind::kGpu, "bar1_size", "nvidia-smi -q"},
     {DeviceKind::kGpu, "port_acs", "sudo lspci -vvv"},
     {DeviceKind::kGpu, "peer_mapping", "lsmod"},
     {DeviceKind::kNic, "part", "lspci -vvv"},
     {DeviceKind::kNic, "pcie_gen", "sudo lspci -vvv"},
     {DeviceKind::kNic, "pcie_width", "sudo lspci -vvv"},
     {DeviceKind::kNic, "mrrs", "sudo lspci -vvv"},
     {DeviceKind::kNic, "rate", "ibstat"},
     {DeviceKind::kNic, "port_acs", "sudo lspci -vvv"}}};

bool is_known(const DeviceSpec& device, std::string_view parameter) {
  if (parameter == "part") return !device.part.empty() || !device.product.empty();
  return device.settings.find(parameter) != device.settings.end();
}

/// Nothing above a device on the CPU's own ports, and nothing but a first port has a link.
bool is_asked(const DeviceSpec& device, std::string_view parameter) {
  if (parameter == "port_acs")
    return !device.upstream.empty() && !device.upstream.starts_with("cpu");
  return device.port_of.empty() || parameter == "rate" || parameter == "part";
}

/// "gpu.bar1_size of gpu0 and 7 more: assumed 137 GB (...); `nvidia-smi -q` would tell".
std::vector<std::string> missing(const DeviceParams& params) {
  const Fabric& fabric = params.fabric();
  std::vector<std::string> out;
  for (const Question& question : kQuestions) {
    std::map<std::string, std::vector<std::string>> devices;  // by what is assumed
    for (std::size_t i = 0; i < fabric.count(question.kind); ++i) {
      const DeviceId id = fabric.device(0, question.kind, i);
      const DeviceSpec& device = fabric.device(id);
      if (is_known(device, question.parameter) || !is_asked(device, question.parameter)) continue;
      std::string assumed = "the declared defaults stand in";
      if (question.parameter != "part") {
        const std::string key = std::string(device.scope()) + "." + std::string(question.parameter);
        const ParamValue value = params.params().get(key, params.scope(id));
        assumed = ParamCatalog::format(params.params().catalog().require(key), value.number) +
                  " (" + std::string(origin_name(value.origin)) + ")";
      }
      devices[assumed].push_back(device.name);
    }
    for (auto& [assumed, names] : devices) {
      out.push_back(fmt::format("{}.{} of {}: {}; `{}` would tell", device_kind_name(question.kind),
                                question.parameter, known_names(std::move(names), 3), assumed,
                                question.command));
    }
  }
  return out;
}

std::string difference_text(const HostDifference& odd) {
  const std::string place = odd.place.file.empty() ? "" : " (" + odd.place.text() + ")";
  return fmt::format("{}: {} {} is {}{}, elsewhere {} ({})", odd.host, odd.subject, odd.what,
                     odd.value, place, odd.usual, odd.usual_place.text());
}

/// What was found out beside the machine, in lines of one kind each.
std::vector<std::string> remarks(const ImportedMachine& machine,
                                 const std::vector<std::string>& missing) {
  constexpr std::size_t kMost = 40;
  std::vector<std::string> out;
  const auto add = [&](std::string_view word, const auto& list, const auto& text) {
    for (std::size_t i = 0; i < list.size() && i < kMost; ++i) {
      out.push_back(std::string(word) + ": " + text(list[i]));
    }
    if (list.size() > kMost) {
      out.push_back(fmt::format("{}: and {} more", word, list.size() - kMost));
    }
  };
  const auto same = [](const std::string& text) { return text; };
  add("conflict", machine.conflicts, text_of);
  add("odd host", machine.hosts.odd, difference_text);
  add("note", machine.spec.notes, same);
  add("missing", missing, same);
  return out;
}

struct ImportArguments {
  std::vector<std::string> evidence;
  std::string output{"-"};
  bool facts{false};
};

/// HOST, subject, what, value and place of each fact, a line each.
std::string facts_text(const Facts& facts) {
  std::string out;
  for (const Fact& fact : facts.all()) {
    out += fmt::format("{}\t{}\t{}\t{}\t{}\n", one_line(fact.host), one_line(fact.subject),
                       one_line(fact.what), one_line(fact.value), one_line(fact.place.text()));
  }
  return out;
}

void import(const ImportArguments& arguments) {
  const Evidence evidence = read_evidence(arguments.evidence);
  if (arguments.facts) {
    write_text_file(arguments.output, facts_text(evidence.facts));
    for (const std::string& note : evidence.notes) std::cerr << "note: " << one_line(note) << '\n';
    return;
  }
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  ImportedMachine machine = import_machine(evidence, catalog);
  Params params(catalog);
  apply_settings({}, machine.spec, params);
  const Fabric fabric(machine.spec, machine.spec.nodes);
  const DeviceParams devices(fabric, params, parts);
  const std::vector<std::string> lines = remarks(machine, missing(devices));
  std::string head = "Written by `weft import`. Values have their places as source.\n";
  for (const std::string& line : lines) head += line + "\n";
  const std::string text = topology_yaml(machine.spec, catalog, head);
  // What is written is what other commands will read: it has to load.
  const Machine loaded(DeviceParams(fabric, params, parts));
  parse_topology_yaml(text, arguments.output, catalog);
  write_text_file(arguments.output, text);
  for (const std::string& line : lines) std::cerr << one_line(line) << '\n';
}

}  // namespace

void add_import_command(CommandLine& line) {
  const auto arguments = std::make_shared<ImportArguments>();
  line.add("import", "A machine from what its tools print: one topology, each value with its place")
      .argument("evidence", arguments->evidence,
                "lspci, nvidia-smi, NCCL's log, ibstat, ...; a tar or folder of them; HOST=FILE")
      .output("-o,--output", arguments->output, "where the topology goes, - is standard output")
      .flag("--facts", arguments->facts, "write what was read, a fact a line, and merge nothing")
      .example("weft import lspci.txt topo.txt nccl.log -o machine.yaml")
      .action([arguments] { import(*arguments); });
}

}  // namespace weft
