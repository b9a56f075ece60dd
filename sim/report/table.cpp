#include "sim/report/table.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/report/text.hpp"

namespace weft {
namespace {

constexpr int kGroupWidth = 78;

std::string_view path_title(std::string_view memory_path) {
  if (memory_path == "gdr") return "GPUDirect RDMA";
  if (memory_path == "host-staged") return "host-staged";
  return memory_path;
}

std::string limit_text(const ResultRow& row) {
  if (row.limited_by.empty()) return "";
  const CauseShare& top = row.limited_by.front();
  return fmt::format("{:3.0f} % {}", top.share * 100.0, top.cause);
}

std::string group_text(const ResultRow* row) {
  if (row == nullptr) return std::string(kGroupWidth, ' ');
  return fmt::format("{:>5} {:>6} {:>3} {:>10} {:>8} {:>8}  {:<32.32}", row->algo, row->proto,
                     row->channels, short_number(row->time_us), short_number(row->algbw_gb_per_s),
                     short_number(row->busbw_gb_per_s), limit_text(*row));
}

}  // namespace

std::string table_text(const RunResult& result) {
  std::vector<std::string> paths;
  std::map<std::int64_t, std::map<std::string, const ResultRow*>> by_size;
  for (const ResultRow& row : result.rows) {
    if (std::find(paths.begin(), paths.end(), row.memory_path) == paths.end()) {
      paths.push_back(row.memory_path);
    }
    by_size[row.bytes][row.memory_path] = &row;
  }
  std::string out;
  std::string titles = "#             ";
  std::string names = "#        size ";
  std::string units = "#         (B) ";
  for (const std::string& path : paths) {
    titles += fmt::format(" {:^{}}", path_title(path), kGroupWidth);
    names += fmt::format(" {:>5} {:>6} {:>3} {:>10} {:>8} {:>8}  {:<32}", "algo", "proto", "nch",
                         "time", "algbw", "busbw", "limited by");
    units += fmt::format(" {:>5} {:>6} {:>3} {:>10} {:>8} {:>8}  {:<32}", "", "", "", "(us)",
                         "(GB/s)", "(GB/s)", "(share of the time)");
  }
  const auto line = [&](std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  };
  line(titles);
  line(names);
  line(units);
  for (const auto& [bytes, rows] : by_size) {
    std::string text = fmt::format("{:>13} ", bytes);
    for (const std::string& path : paths) {
      const auto at = rows.find(path);
      text += " " + group_text(at == rows.end() ? nullptr : at->second);
    }
    line(text);
  }
  if (!result.verdict.empty()) out += "#\n";
  for (const std::string& sentence : result.verdict) out += "# " + sentence + '\n';
  for (const std::string& note : result.notes) out += "# note: " + note + '\n';
  return out;
}

}  // namespace weft
