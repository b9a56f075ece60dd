// weft copies against what was measured on four H200 (tests/data/h200/pcie-copies.csv), row by row,
// and against what others published of other machines.
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/copies/copies.hpp"
#include "models/copies/pairs.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tests/pcie/h200_rows.hpp"

namespace weft::test::models_copies_measured {
namespace {

constexpr const char* kPage = "models/copies/README.md";
constexpr std::int64_t kMostOnPackets = 4 << 20;

/// "gpu0,gpu1" of "0+1".
std::string gpus(const std::string& numbers) {
  std::istringstream in(numbers);
  std::string out;
  for (std::string number; std::getline(in, number, '+');) {
    out += (out.empty() ? "gpu" : ",gpu") + number;
  }
  return out;
}

CopyTask task_of(const Fabric& fabric, const MeasuredCopy& row) {
  CopyTask task;
  if (const std::size_t arrow = row.gpus.find('>'); arrow != std::string::npos) {
    task.pairs =
        copy_pairs(fabric, gpus(row.gpus.substr(0, arrow)), gpus(row.gpus.substr(arrow + 1)));
  } else if (row.direction == "D2H" || row.direction == "write") {
    task.pairs = copy_pairs(fabric, gpus(row.gpus), "");
  } else {
    task.pairs = copy_pairs(fabric, "", gpus(row.gpus));
  }
  task.bidirectional = row.direction == "BIDIR";
  if (row.test.starts_with("zerocopy_")) {
    task.by = CopyBy::kKernel;
    task.blocks = static_cast<std::uint32_t>(std::stoul(row.test.substr(9)));
    task.uses_own_memory = false;
  }
  return task;
}

/// Microseconds until all pairs have ended, as it was measured.
double predicted_us(const Machine& machine, const CopyTask& task, std::int64_t bytes) {
  Duration out;
  for (const CopyRow& row : run_copies(machine, task, Bytes{bytes})) out = std::max(out, row.time);
  return out.as_us();
}

/// Rows that a parameter was made from: gpu.copy_start, gpu.copy_rate, cpu.dram_large_share and
/// _write_cost, gpu.sm_line, gpu.nvlink_overhead.
bool taught(const MeasuredCopy& row) {
  const bool is_one_way_up = row.direction == "D2H";
  return (row.test == "copy_sweep" && is_one_way_up && row.bytes == 64) ||
         (row.test == "copy_single" && is_one_way_up) ||
         (row.gpus == "0+1+2+3" && row.direction != "BIDIR") ||
         (row.test.starts_with("zerocopy_") && row.direction == "write" &&
          row.test != "zerocopy_1blocks") ||
         (row.test == "peer_copy" && row.bytes > 4096);
}

std::string class_of(const MeasuredCopy& row) {
  if (row.test == "peer_copy") return "between GPUs over NVLink";
  if (row.test.starts_with("zerocopy_")) {
    return row.direction == "read" ? "kernels that read" : "kernels that write";
  }
  if (row.gpus.size() > 1) {
    return row.direction == "BIDIR" ? "several GPUs, both ways" : "several GPUs, one way";
  }
  const std::string way = row.direction == "D2H"   ? "to the host"
                          : row.direction == "H2D" ? "from the host"
                                                   : "both ways";
  return "one GPU, " + way + (row.bytes < 65536 ? ", below 64 KiB" : ", 64 KiB and more");
}

/// All rows on one transport: printed, and held against the page's table.
MeasuredErrors held_against_the_page(bool on_packets) {
  const MachineUnderTest m("h200-vm.yaml", {"cpu.dma_buffers=large"}, 1);
  std::map<std::string, MeasuredErrors> classes;
  MeasuredErrors all{"all, kept aside"};
  for (const MeasuredCopy& row : measured_copies()) {
    if (on_packets && (row.bytes > kMostOnPackets || row.test == "peer_copy")) continue;
    CopyTask task = task_of(m.fabric(), row);
    task.on_packets = on_packets;
    const double error = predicted_us(m.machine(), task, row.bytes) / row.us - 1;
    const std::string name = class_of(row) + (taught(row) ? " (fitted)" : "");
    classes.try_emplace(name, MeasuredErrors{name}).first->second.of.push_back(error);
    if (!taught(row)) all.of.push_back(error);
  }
  const std::string page = page_text(kPage);
  const auto hold = [&](const MeasuredErrors& e) {
    e.print();
    const std::string line =
        fmt::format("| {} | {} | {:+.1f} % | {:.1f} % | {:.1f} % | {:.1f} % |", e.what, e.of.size(),
                    100 * e.bias(), 100 * e.median(), 100 * e.p90(), 100 * e.worst());
    EXPECT_NE(page.find(line), std::string::npos) << kPage << " lacks " << line;
  };
  for (const auto& [name, errors] : classes) hold(errors);
  hold(all);
  return all;
}

TEST(CopiesMeasured, OnFourH200BySharedRates) {
  const MeasuredErrors all = held_against_the_page(false);
  EXPECT_NE(page_text("README.md")
                .find(fmt::format("| {} | {:+.1f} % | {:.1f} % | {:.1f} % |", all.of.size(),
                                  100 * all.bias(), 100 * all.median(), 100 * all.worst())),
            std::string::npos);
  EXPECT_NE(page_text("models/README.md")
                .find(fmt::format("{} rows | median abs. {:.1f} %, worst {:.1f} % |", all.of.size(),
                                  100 * all.median(), 100 * all.worst())),
            std::string::npos);
  EXPECT_LE(all.median(), 0.05);
  EXPECT_LE(std::abs(all.bias()), 0.05);
  EXPECT_LE(all.p90(), 0.15);
}

TEST(CopiesMeasured, OnFourH200TlpByTlp) {
  const MeasuredErrors all = held_against_the_page(true);
  EXPECT_LE(all.median(), 0.08);
  EXPECT_LE(all.worst(), 0.25);
}

struct Published {
  const char* what;
  const char* topology;
  const char* from;
  const char* to;
  bool bidirectional;
  double gigabytes_per_s;  ///< by nvbandwidth; of both ways that from `from` to `to`
};

// nvbandwidth with its 512 MiB, one pair at a time. Azure: Azure/AI-benchmarking-guide@8fd0c6e
// (GB200 @2a370be, H200 @7f20e5f), its results by machine; README: NVIDIA/nvbandwidth, whose GPUs
// are not named (Gen4 and NVLink 3: A100). Left out: GH200 (sums over NUMA nodes), sums over GPUs,
// both ways between GPUs, and A100 to the host (Azure: 6.27, a quarter of the other way).
constexpr Published kPublished[] = {
    {"A100 from the host (Azure)", "hgx-a100.yaml", "cpu", "gpu0", false, 26.28},
    {"A100 from the host (README)", "hgx-a100.yaml", "cpu", "gpu0", false, 26.0},
    {"A100 from the host while to it (README)", "hgx-a100.yaml", "cpu", "gpu0", true, 18.7},
    {"A100 to A100 (README)", "hgx-a100.yaml", "gpu0", "gpu1", false, 276.3},
    {"H100 from the host (Azure)", "hgx-h100-8nic.yaml", "cpu", "gpu0", false, 51},
    {"H100 to the host (Azure)", "hgx-h100-8nic.yaml", "gpu0", "cpu", false, 52},
    {"H200 from the host (Azure)", "hgx-h200-8nic.yaml", "cpu", "gpu0", false, 52},
    {"H200 to the host (Azure)", "hgx-h200-8nic.yaml", "gpu0", "cpu", false, 52},
    {"GB200 from the host (Azure)", "gb200-nvl72.yaml", "cpu", "gpu0", false, 201},
    {"GB200 to the host (Azure)", "gb200-nvl72.yaml", "gpu0", "cpu", false, 193},
};

// Reported, fitted to none.
TEST(CopiesMeasured, OnMachinesOfOthers) {
  const std::string page = page_text(kPage);
  for (const Published& p : kPublished) {
    const MachineUnderTest m(p.topology, {"cpu.dma_buffers=large"}, 1);
    CopyTask task;
    task.pairs = copy_pairs(m.fabric(), p.from, p.to);
    task.bidirectional = p.bidirectional;
    const double rate =
        run_copies(m.machine(), task, Bytes::mib(512)).front().forth.as_gigabytes_per_s();
    const double error = rate / p.gigabytes_per_s - 1;
    const std::string line = fmt::format("| {} | {} | {:.1f} | {:+.0f} % |", p.what,
                                         p.gigabytes_per_s, rate, 100 * error);
    std::printf("%s\n", line.c_str());
    EXPECT_NE(page.find(line), std::string::npos) << kPage << " lacks " << line;
    EXPECT_LE(std::abs(error), 0.45);
  }
}

}  // namespace
}  // namespace weft::test::models_copies_measured
