#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/lower_case.hpp"
#include "sim/input/evidence/readers.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostDevices = 128;

/// The cells of a row, by its layout. An empty cell between tabs is none: nvidia-smi puts two tabs
/// where a head is wide.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> out;
  const bool bars = holds(line, "|");
  const bool tabs = !bars && holds(line, "\t");
  while (!line.empty()) {
    std::size_t end = line.size();
    if (bars) {
      end = line.find('|');
    } else if (tabs) {
      end = line.find('\t');
    } else {
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      end = line.find("  ");
      // "GPU0 GPU1" of copied text: names and classes hold no blank, other heads do.
      const std::size_t one = line.find(' ');
      const std::string_view word = line.substr(0, one);
      if (word != "CPU" && word != "NUMA" && word != "GPU") end = one;
    }
    const std::string_view cell = without_blanks(line.substr(0, end));
    if (!cell.empty()) out.push_back(cell);
    line.remove_prefix(end == std::string_view::npos ? line.size()
                                                     : std::min(end + 1, line.size()));
  }
  return out;
}

bool is_class(std::string_view cell) {
  constexpr std::array<std::string_view, 7> kClasses{"SYS", "NODE", "PHB", "PXB",
                                                     "PIX", "PSB",  "SOC"};
  if (std::find(kClasses.begin(), kClasses.end(), cell) != kClasses.end()) return true;
  return cell.size() > 2 && cell.starts_with("NV") &&
         cell.find_first_not_of("0123456789", 2) == std::string_view::npos;
}

bool is_cell(std::string_view cell) { return is_class(cell) || cell == "X" || cell == "?"; }

/// A row of `nvidia-smi topo -p2p r`, whose head is the same: which pairs may, not how near they
/// are.
bool is_status_row(const std::vector<std::string_view>& cells) {
  constexpr std::array<std::string_view, 7> kStatuses{"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"};
  return std::any_of(cells.begin(), cells.end(), [&](std::string_view cell) {
    return std::find(kStatuses.begin(), kStatuses.end(), cell) != kStatuses.end();
  });
}

/// "GPU0" is gpu0, "NIC3" nic3, "mlx5_0" and names by place, "ibP2p3s0", themselves, and
/// rdma-core's by slot, "ibs3f1"; nullopt for other heads.
std::optional<std::string> device_of(std::string_view head) {
  const auto numbered = [&](std::string_view word) {
    return head.starts_with(word) && head.size() > word.size() &&
           head.find_first_not_of("0123456789", word.size()) == std::string_view::npos;
  };
  if (numbered("GPU") || numbered("NIC")) return lower_case(head);
  const bool plain =
      head.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-.P") == std::string_view::npos;
  const bool by_place =
      !bus_id_of_name(head).empty() || head.starts_with("ibs") || head.starts_with("roces");
  if (plain && (holds(head, "_") || by_place)) return std::string(head);
  return std::nullopt;
}

class MatrixReader {
 public:
  MatrixReader(const EvidenceSection& section, Facts& facts) : section_{section}, facts_{facts} {}
  void read();

 private:
  void read_head(const std::vector<std::string_view>& cells);
  void read_row(const EvidenceLine& line, const std::vector<std::string_view>& cells);
  void read_affinity(const EvidenceLine& line, const std::string& device,
                     std::vector<std::string_view> cells);
  void read_legend(const EvidenceLine& line);

  const EvidenceSection& section_;
  Facts& facts_;
  std::vector<std::string> columns_;  // "" of a head that is no device weft knows
  std::size_t more_heads_{0};         // behind them: CPU Affinity, NUMA Affinity, GPU NUMA ID
  bool has_numa_{false};
};

void MatrixReader::read() {
  for (const EvidenceLine& line : section_.lines) {
    const std::vector<std::string_view> cells = cells_of(line.text);
    if (cells.empty()) continue;
    const EvidenceKindText* const begun = evidence_begun_by(without_blanks(line.text));
    if (begun != nullptr && begun->kind == EvidenceKind::kTopoMatrix) {
      read_head(cells);
    } else if (device_of(cells[0]) && cells.size() > 1) {
      read_row(line, cells);
    } else {
      read_legend(line);
    }
  }
}

void MatrixReader::read_head(const std::vector<std::string_view>& cells) {
  columns_.clear();
  for (const std::string_view cell : cells) {
    if (cell.starts_with("CPU") || cell.starts_with("NUMA") || cell.starts_with("GPU NUMA")) break;
    columns_.push_back(device_of(cell).value_or(""));
  }
  more_heads_ = cells.size() - columns_.size();
  has_numa_ = std::any_of(cells.begin(), cells.end(),
                          [](std::string_view cell) { return cell.starts_with("NUMA"); });
}

void MatrixReader::read_row(const EvidenceLine& line, const std::vector<std::string_view>& cells) {
  const std::string device = *device_of(cells[0]);
  if (is_status_row(cells)) return;
  if (std::none_of(cells.begin() + 1, cells.end(), is_cell)) return;
  if (std::find(columns_.begin(), columns_.end(), device) == columns_.end()) {
    throw InputError(section_.place(line), "no column for row '" + std::string(cells[0]) + "'");
  }
  if (columns_.size() > kMostDevices) {
    throw InputError(section_.place(line), fmt::format("more than {} columns", kMostDevices));
  }
  if (cells.size() - 1 < columns_.size()) {
    throw InputError(section_.place(line),
                     fmt::format("cut off: {} cells, not {}", cells.size() - 1, columns_.size()));
  }
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const std::string_view cell = cells[c + 1];
    if (cell == "?" || cell == "X" || columns_[c].empty() || columns_[c] == device) continue;
    if (!is_class(cell)) {
      throw InputError(
          section_.place(line),
          "'" + one_line(cell) + "' is no path class; known: X, NV#, PIX, PXB, PHB, NODE, SYS");
    }
    std::string value(cell);
    if (value == "SOC") value = "SYS";  // drivers before 2017
    if (value == "PSB") value = "PIX";  // on one board, behind one switch
    facts_.add(section_.fact(line, device, std::string(fact::kPath) + columns_[c], value));
  }
  read_affinity(line, device,
                {cells.begin() + 1 + static_cast<std::ptrdiff_t>(columns_.size()), cells.end()});
}

/// "0-47,96-143  0  N/A": processors, and the NUMA node where there is such a column. Some drivers
/// write a list of nodes, which says nothing of one. In a container the processors may be missing.
void MatrixReader::read_affinity(const EvidenceLine& line, const std::string& device,
                                 std::vector<std::string_view> cells) {
  const auto is_number = [](std::string_view cell) {
    return cell.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (has_numa_ && cells.size() > 1 && cells.size() + 1 == more_heads_ && is_number(cells[0])) {
    cells.insert(cells.begin(), "");
  }
  constexpr std::size_t kLongest = 256;
  const bool has_processors = !cells.empty() && !cells[0].empty() && cells[0] != "N/A" &&
                              cells[0].size() <= kLongest &&
                              cells[0].find_first_not_of("0123456789,-") == std::string_view::npos;
  if (has_processors) {
    facts_.add(section_.fact(line, device, fact::kProcessors, std::string(cells[0])));
  }
  if (!has_numa_ || cells.size() < 2) return;
  const std::string_view node = cells[1];
  if (node.find_first_not_of("0123456789") != std::string_view::npos || node.size() > 4) return;
  facts_.add(section_.fact(line, device, fact::kNuma, std::string(node)));
}

/// "NIC0: mlx5_0" below the matrix.
void MatrixReader::read_legend(const EvidenceLine& line) {
  const std::optional<KeyAndValue> entry = key_and_value(line.text);
  if (!entry || entry->value.empty() || holds(entry->value, " ")) return;
  const std::optional<std::string> device = device_of(entry->key);
  if (!device || !device->starts_with("nic")) return;
  facts_.add(section_.fact(line, *device, fact::kName, std::string(entry->value)));
}

}  // namespace

void read_topo_matrix(const EvidenceSection& section, Facts& facts) {
  MatrixReader(section, facts).read();
}

}  // namespace weft
