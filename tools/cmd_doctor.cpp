#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "models/doctor/doctor.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/file.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/doctor_report.hpp"
#include "tools/exit_codes.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/stopping.hpp"

namespace weft {
namespace {

struct DoctorArguments {
  std::vector<std::string> evidence;
  std::string op{"allreduce"};
  std::string size{"64K,1M,64M,1G"};
  std::string threshold{"5"};
  std::string gpu;
  std::string json;
  std::string time_limit;
  unsigned nodes{0};
  unsigned threads{0};
};

double threshold_of(const std::string& text) {
  const auto percent = parse_number(text);
  constexpr double kAll = 100;
  if (percent && *percent >= 0 && *percent <= kAll) return *percent / kAll;
  throw InputError("--threshold '" + text + "': write a percentage of bandwidth, from 0 to 100");
}

void examine(const DoctorArguments& arguments) {
  const Stopping stopping(arguments.time_limit);
  const double threshold = threshold_of(arguments.threshold);
  DoctorRequest request;
  request.price.op = op_name(parse_op(arguments.op));
  request.price.sizes = size_list(arguments.size);
  request.price.threads = arguments.threads;
  request.price.stop = stopping.stop();
  request.gpu = arguments.gpu;
  if (arguments.nodes > 0) request.nodes = arguments.nodes;
  const Evidence evidence = read_evidence(arguments.evidence);
  Diagnosis diagnosis;
  try {
    diagnosis = diagnose(evidence, request, make_catalog());
  } catch (const Stopped&) {
    throw Stopped(stopping.by() + " before all findings had a price; nothing is written");
  }
  if (arguments.json != "-") std::cout << doctor_text(diagnosis, threshold) << std::flush;
  if (!arguments.json.empty()) {
    write_text_file(arguments.json, doctor_json(diagnosis, threshold).dump());
  }
  if (diagnosis.is_ill(threshold)) {
    throw FaultFound("a finding is an error or costs over the threshold");
  }
}

}  // namespace

void add_doctor_command(CommandLine& line) {
  const auto arguments = std::make_shared<DoctorArguments>();
  line.add("doctor", "What is wrong with a machine, by what its tools print, and what that costs")
      .argument("evidence", arguments->evidence,
                "lspci, nvidia-smi, NCCL's log, ibstat, ...; a tar or folder of them; HOST=FILE")
      .option("--nodes", arguments->nodes,
              "nodes of the machine that prices are of; unless given the evidence's, and 2 where "
              "there are NICs",
              1U << 16)
      .option("--gpu", arguments->gpu, "the GPUs' part, where the evidence does not say it")
      .option("--op", arguments->op, "the operation that prices are of")
      .option("--size", arguments->size, "its sizes, separated by commas")
      .option("--threshold", arguments->threshold,
              "exit with 6 where a finding costs over so many percent of bandwidth at any size")
      .output("--json", arguments->json, "write the result as JSON; '-' is standard output")
      .option("--threads", arguments->threads, "how many; 0: as many as the machine has", 1024)
      .option("--time-limit", arguments->time_limit, kTimeLimitHelp)
      .example("weft doctor node1.tar node2.tar --json doctor.json")
      .action([arguments] { examine(*arguments); });
}

}  // namespace weft
