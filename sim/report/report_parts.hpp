#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/io/json.hpp"

namespace weft {

/// What the forms of results that a report shows share (report_file.hpp).

/// A positive number of a row; none where it is missing, null or not positive.
std::optional<double> positive_at(const Json& row, std::string_view key);
/// What `at_time` gives in another time; none if either is unknown.
std::optional<double> rescaled(std::optional<double> bandwidth, std::optional<double> at_time,
                               std::optional<double> time);
Json number_if_any(const std::optional<double>& value);

bool is_scalar(const Json& value);
/// A scalar for people.
std::string text_of(const Json& value);

/// "time_us" is "time" in us; what has no unit in its name is as it is.
Json column_json(const std::string& key);
/// A table of more columns is refused.
inline constexpr std::size_t kMostColumns = 1000;
/// Throws InputError where a report could not hold so many cells, whatever they are.
void check_cells(std::size_t rows, std::size_t columns);

/// Keys of scalars, in the order in which rows bring them. Throws InputError if they are too many.
std::vector<std::string> scalar_keys(const Json::Array& rows);
/// A row's values of these keys, null where it has none.
Json cells_json(const Json& row, const std::vector<std::string>& keys);

/// A list of texts; empty where there is none.
Json texts_json(const Json& result, std::string_view key);
/// Scalars of the result itself but these, and of its provenance.
Json provenance_json(const Json& result, std::string_view but = "");
Json parameters_json(const Json& result);

/// A result as the page takes it, null where it has none of it (report_file.hpp).
struct ReportForm {
  Json columns = Json::array();
  Json rows = Json::array();
  Json causes = Json::array();
  Json curves = Json::array();
  Json timeline = Json::array();
  Json links;
  Json explained;
  Json sweep;
  Json verdict = Json::array();
  Json notes = Json::array();
  Json provenance = Json::array();
  Json parameters = Json::array();
};
Json file_json(const std::string& name, std::string_view schema, ReportForm form);

/// Rows of one operation and label, by size. Of curves the first `most` are kept.
class Curves {
 public:
  explicit Curves(std::size_t most = std::numeric_limits<std::size_t>::max()) : most_{most} {}

  /// O(log n). A size that the label has already goes to a curve "LABEL (2)".
  void add(const std::string& op, const std::string& label, std::int64_t bytes, Json point);
  Json take_json();
  std::size_t left_out() const { return index_.size() - curves_.size(); }

 private:
  struct Curve {
    std::string op;
    std::string label;
    std::map<std::int64_t, Json> points;
  };
  std::vector<Curve> curves_;
  std::size_t most_;
  std::map<std::pair<std::string, std::string>, std::size_t> index_;  // in curves_, or beyond most_
  // By operation and label: how often a size came.
  std::map<std::pair<std::string, std::string>, std::map<std::int64_t, std::uint32_t>> times_;
};

}  // namespace weft
