#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace weft {

/// The rows of a table of measurements, without its head, cell by cell.
inline std::vector<std::vector<std::string>> measured_cells(const std::string& path) {
  std::ifstream in(std::string(WEFT_SOURCE_DIR) + '/' + path);
  std::vector<std::vector<std::string>> out;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream row(line);
    out.emplace_back();
    for (std::string cell; std::getline(row, cell, ',');) out.back().push_back(cell);
  }
  return out;
}

/// One row of tests/data/h200/pcie-copies.csv.
struct MeasuredCopy {
  std::string test;
  std::string gpus;  ///< "0+1"; "0>1" between GPUs
  std::string direction;
  std::int64_t bytes{0};
  double us{0};
  double gigabytes_per_s{0};
};

inline std::vector<MeasuredCopy> measured_copies() {
  std::vector<MeasuredCopy> out;
  for (const auto& row : measured_cells("tests/data/h200/pcie-copies.csv")) {
    out.push_back({row.at(0), row.at(1), row.at(2), std::stoll(row.at(3)), std::stod(row.at(4)),
                   std::stod(row.at(5))});
  }
  return out;
}

/// Relative errors of one kind of row, of times: above 0 is too slow.
struct MeasuredErrors {
  std::string what;
  std::vector<double> of{};

  double bias() const {
    double sum = 0;
    for (const double e : of) sum += e;
    return sum / static_cast<double>(of.size());
  }
  /// Of their sizes.
  double at(double share) const {
    std::vector<double> sorted;
    for (const double e : of) sorted.push_back(std::abs(e));
    std::sort(sorted.begin(), sorted.end());
    const auto place = static_cast<std::size_t>(share * static_cast<double>(of.size()));
    return sorted[std::min(place, of.size() - 1)];
  }
  double median() const { return at(0.5); }
  double p90() const { return at(0.9); }
  double worst() const { return at(1); }
  void print() const {
    std::printf("%-40s n %3zu  bias %+5.1f %%  median %4.1f %%  p90 %4.1f %%  worst %4.1f %%\n",
                what.c_str(), of.size(), 100 * bias(), 100 * median(), 100 * p90(), 100 * worst());
  }
};

/// What a page of the project says.
inline std::string page_text(const std::string& page) {
  std::ostringstream out;
  out << std::ifstream(std::string(WEFT_SOURCE_DIR) + '/' + page).rdbuf();
  return out.str();
}

}  // namespace weft
