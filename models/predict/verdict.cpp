#include "models/predict/verdict.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "models/nccl/gdr.hpp"
#include "models/nccl/ring.hpp"
#include "models/system/gdr_possible.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

const ResultRow* largest(const std::vector<ResultRow>& rows, std::string_view path) {
  const ResultRow* best = nullptr;
  for (const ResultRow& row : rows) {
    if (row.memory_path == path && (best == nullptr || row.bytes > best->bytes)) best = &row;
  }
  return best;
}

std::string sentence(const ResultRow& row, std::size_t nics) {
  std::string out = fmt::format("{} over {}: busbw {:.1f} GB/s", format_size(Bytes{row.bytes}),
                                row.memory_path == "gdr" ? "GPUDirect RDMA" : "host-staged buffers",
                                row.busbw_gb_per_s);
  if (nics > 0 && row.nodes > 1) {
    out += fmt::format(" ({:.1f} GB/s a NIC)", row.busbw_gb_per_s / static_cast<double>(nics));
  }
  if (row.limited_by.empty()) return out;
  const CauseShare& top = row.limited_by.front();
  out += fmt::format(", limited by {}", top.cause);
  if (!top.where.empty()) out += fmt::format(" ({})", top.where);
  return out + fmt::format(" for {:.0f} % of the time", top.share * 100.0);
}

}  // namespace

std::vector<std::string> verdict(const std::vector<ResultRow>& rows, const Fabric& fabric) {
  const std::size_t nics = fabric.count(DeviceKind::kNic);
  const ResultRow* gdr = largest(rows, "gdr");
  const ResultRow* staged = largest(rows, "host-staged");
  std::vector<std::string> out;
  if (gdr != nullptr) out.push_back(sentence(*gdr, nics));
  if (staged != nullptr) out.push_back(sentence(*staged, nics));
  if (gdr != nullptr && staged != nullptr && gdr->bytes == staged->bytes && gdr->nodes > 1) {
    out.push_back(fmt::format("host-staged reaches {:.2f} of GPUDirect RDMA at {}",
                              staged->busbw_gb_per_s / gdr->busbw_gb_per_s,
                              format_size(Bytes{gdr->bytes})));
  }
  return out;
}

std::vector<std::string> gdr_notes(DeviceParams& devices) {
  const Fabric& fabric = devices.fabric();
  std::vector<std::string> out;
  if (fabric.nodes() < 2) return out;
  const auto nics = static_cast<std::uint32_t>(fabric.count(DeviceKind::kNic));
  for (const Ring& ring : make_rings(fabric, nics)) {
    const std::size_t gpus = fabric.count(DeviceKind::kGpu);
    const auto check = [&](std::uint32_t rank, std::size_t nic_index) {
      const DeviceId gpu = fabric.device(0, DeviceKind::kGpu, rank % gpus);
      const DeviceId nic = fabric.device(0, DeviceKind::kNic, nic_index);
      const std::string pair = fabric.device(gpu).name + "-" + fabric.device(nic).name;
      const GdrPossible possible = gdr_possible(devices, gpu, nic);
      if (!possible.possible) {
        out.push_back(pair + ": GPUDirect RDMA is not possible: " + possible.why);
        return;
      }
      const GdrDecision nccl = default_gdr_decision(fabric.path_label(gpu, nic).path_class);
      if (!nccl.enabled) {
        out.push_back(pair + ": possible, but NCCL leaves GPUDirect RDMA off: " + nccl.why);
      }
    };
    check(ring.order.front(), ring.entry_nic.front());
    check(ring.order[gpus - 1], ring.exit_nic.front());
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace weft
