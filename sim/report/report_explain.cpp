#include "sim/report/report_explain.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/report/report_parts.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostCurves = 3;  // of answers; more of them lie upon each other
constexpr double kEightOfTen = 1.2816;  // standard deviations to either side

/// Calls visit(item, index) for each of a list; what it refuses is refused with its place.
template <class Visit>
void for_each_of(const Json& from, const std::string& key, const Visit& visit) {
  const Json::Array& items = from.at(key).items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    try {
      visit(items[i], i);
    } catch (const InputError& e) {
      throw InputError(fmt::format("{}[{}]: {}", key, i, e.what()));
    }
  }
}

/// Bandwidths of a size, GB/s.
struct PointBandwidths {
  std::string op;
  std::string path;
  std::int64_t bytes{0};
  std::optional<double> slow;
  std::optional<double> healthy;
  std::optional<double> predicted;  ///< where nothing is wrong
  std::optional<double> reference;  ///< what the gap is to: healthy, or predicted
  double sd{0};                     ///< of the gap
};

PointBandwidths bandwidths_of(const Json& point) {
  const std::optional<double> slow = positive_at(point, "busbw_GBps");
  const std::optional<double> time = positive_at(point, "slow_us");
  const Json* const path = point.find("memory_path");
  PointBandwidths out{point.at("op").as_string(),
                      path != nullptr ? path->as_string() : "",
                      point.at("bytes").as_integer(),
                      slow,
                      rescaled(slow, time, positive_at(point, "healthy_us")),
                      rescaled(slow, time, positive_at(point, "predicted_us")),
                      {},
                      point.at("sd").as_number()};
  out.reference = out.healthy ? out.healthy : out.predicted;
  if (!std::isfinite(out.sd) || out.sd < 0) throw InputError("sd: expected 0 or more");
  return out;
}

/// The points whose bandwidths are known, each with its row.
class ExplainCurves {
 public:
  explicit ExplainCurves(const std::vector<PointBandwidths>& points) : points_{points} {}

  /// `of(point, index)`: predicted, low, high and measured; none where it has neither.
  template <class Of>
  void add(const std::string& label, const Of& of) {
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const PointBandwidths& point = points_[i];
      if (point.bytes <= 0 || !point.reference) continue;
      const std::array<std::optional<double>, 4> values = of(point, i);
      if (!values[0] && !values[3]) continue;
      Json cells = Json::array({static_cast<std::int64_t>(i), point.bytes});
      for (const std::optional<double>& value : values) cells.push(number_if_any(value));
      curves_.add(point.op, point.path.empty() ? label : point.path + ", " + label, point.bytes,
                  std::move(cells));
    }
  }

  Json take_json() { return curves_.take_json(); }

 private:
  const std::vector<PointBandwidths>& points_;
  Curves curves_;
};

/// "PCIe links of NICs trained low: nic0 (x4 or Gen3)", of two at once both. `from` has `causes`.
std::string name_of(const Json& from) {
  std::string out;
  for_each_of(from, "causes", [&](const Json& cause, std::size_t) {
    out += fmt::format("{}{}: {} ({})", out.empty() ? "" : "; and ", cause.at("what").as_string(),
                       cause.at("where").as_string(), cause.at("how").as_string());
  });
  return out;
}

/// What an answer makes of the healthy run.
std::vector<std::optional<double>> effects_of(const Json& answer, std::size_t points) {
  std::vector<std::optional<double>> out;
  for (const Json& effect : answer.at("effects").items()) {
    out.push_back(effect.is_null() ? std::nullopt : std::optional(effect.as_number()));
  }
  if (out.size() != points) {
    throw InputError(fmt::format("{} effects of {} points", out.size(), points));
  }
  return out;
}

/// Else answers are the nearest alone.
bool suffices(const Json& result) { return result.at("verdict").as_string() == "explained"; }

Json curves_json(const Json& result, const std::vector<PointBandwidths>& points) {
  using Values = std::array<std::optional<double>, 4>;
  ExplainCurves curves(points);
  curves.add("slow", [](const PointBandwidths& p, std::size_t) -> Values {
    return {std::nullopt, std::nullopt, std::nullopt, p.slow};
  });
  /// Where eight of ten runs would be in which nothing is wrong, around what the gap is to.
  const auto band_of = [](const PointBandwidths& p) -> std::array<std::optional<double>, 2> {
    const double error = std::exp(kEightOfTen * p.sd);
    const double low = *p.reference / error;
    const double high = *p.reference * error;
    // Of an error beyond all numbers nothing can be drawn.
    if (!(low > 0) || !std::isfinite(high)) return {};
    return {low, high};
  };
  curves.add("healthy", [&](const PointBandwidths& p, std::size_t) -> Values {
    if (!p.healthy) return {};
    const auto [low, high] = band_of(p);
    return {std::nullopt, low, high, p.healthy};
  });
  curves.add("nothing wrong", [&](const PointBandwidths& p, std::size_t) -> Values {
    if (p.healthy) return {p.predicted, {}, {}, {}};
    const auto [low, high] = band_of(p);
    return {p.predicted, low, high, std::nullopt};
  });
  const char* const what = suffices(result) ? "answer" : "nearest";
  for_each_of(result, "answers", [&](const Json& answer, std::size_t at) {
    const std::vector<std::optional<double>> effects = effects_of(answer, points.size());
    if (at >= kMostCurves) return;
    const std::string label = fmt::format("{} {}: {}", what, at + 1, name_of(answer));
    curves.add(label, [&](const PointBandwidths& p, std::size_t i) -> Values {
      if (!effects[i]) return {};
      return {*p.reference * std::exp(-*effects[i]), std::nullopt, std::nullopt, std::nullopt};
    });
  });
  return curves.take_json();
}

Json evidence_json(const Json& cause) {
  Json out = Json::array();
  if (const Json* const said = cause.find("said")) out.push(said->as_string());
  for_each_of(cause, "evidence", [&](const Json& quote, std::size_t) {
    const Json* const place = quote.find("place");
    const std::string text = quote.at("text").as_string();
    out.push(place != nullptr ? place->as_string() + ": " + text : text);
  });
  return out;
}

Json causes_json(const Json& from) {
  Json out = Json::array();
  for_each_of(from, "causes", [&](const Json& cause, std::size_t) {
    out.push(Json::object({{"what", cause.at("what").as_string()},
                           {"where", cause.at("where").as_string()},
                           {"how", cause.at("how").as_string()},
                           {"verify", cause.at("verify").as_string()},
                           {"evidence", evidence_json(cause)}}));
  });
  return out;
}

Json answers_json(const Json& result) {
  Json out = Json::array();
  for_each_of(result, "answers", [&](const Json& answer, std::size_t) {
    Json others = Json::array();
    for_each_of(answer, "or", [&](const Json& other, std::size_t) { others.push(name_of(other)); });
    Json line = Json::object({{"causes", causes_json(answer)},
                              {"or", std::move(others)},
                              {"alike", answer.at("alike").as_bool()},
                              {"times_less", answer.at("times_less").as_number()},
                              {"chance", answer.at("chance").as_number()}});
    for (const char* key : {"explains", "low", "high"}) {
      const Json* const share = answer.find(key);
      line.set(key, share != nullptr && !share->is_null() ? Json(share->as_number()) : Json());
    }
    out.push(std::move(line));
  });
  return out;
}

/// Causes that are no answer, and why.
Json set_aside_json(const Json& result) {
  Json out = Json::array();
  const auto add = [&](const char* why, std::string what, std::string details) {
    out.push(Json::array({why, std::move(what), std::move(details)}));
  };
  const auto place_of = [](const Json& cause) {
    return fmt::format("{} ({})", cause.at("where").as_string(), cause.at("how").as_string());
  };
  for_each_of(result, "ruled_out", [&](const Json& cause, std::size_t) {
    std::string details = place_of(cause);
    const Json said = evidence_json(cause);
    for (const Json& line : said.items()) details += "; " + line.as_string();
    add("ruled out by evidence", cause.at("what").as_string(), std::move(details));
  });
  for_each_of(result, "no_effect", [&](const Json& cause, std::size_t) {
    add("changes no time by 1 %", cause.at("what").as_string(), place_of(cause));
  });
  for_each_of(result, "refused", [&](const Json& cause, std::size_t) {
    add("cannot be predicted here", cause.at("id").as_string(),
        place_of(cause) + ": " + cause.at("why").as_string());
  });
  for_each_of(result, "not_here", [&](const Json& entry, std::size_t) {
    add("cannot be on this machine", entry.at("id").as_string(),
        "needs " + entry.at("needs").as_string());
  });
  for_each_of(result, "not_looked_at", [&](const Json& each, std::size_t) {
    add("not looked at", each.at("what").as_string(), each.at("why").as_string());
  });
  return out;
}

/// A point's key with its unit.
Json heading_json(const std::string& key) {
  if (key != "gap" && key != "sd") return column_json(key);
  return Json::object({{"name", key}, {"unit", "natural logarithm"}});
}

Json notes_json(const Json& result, const std::vector<PointBandwidths>& points) {
  Json out = texts_json(result, "notes");
  const auto is_known = [](const PointBandwidths& point) { return point.slow.has_value(); };
  if (!points.empty() && std::none_of(points.begin(), points.end(), is_known)) {
    out.push(
        "no point has busbw_GBps, as an older weft wrote it: no curve is drawn until the run is "
        "explained again");
  }
  return out;
}

Json verdict_json(const Json& result) {
  const std::string& verdict = result.at("verdict").as_string();
  const Json::Array& answers = result.at("answers").items();
  Json out = Json::array();
  if (verdict == "explained") {
    const auto alike = std::count_if(answers.begin(), answers.end(),
                                     [](const Json& a) { return a.at("alike").as_bool(); });
    std::string text =
        fmt::format("slower than it should be, explained by {}",
                    result.at("two_at_once").as_bool() ? "two causes at once" : "one cause");
    if (alike > 1) {
      text += fmt::format(": the first {} of {} cannot be told apart", alike, answers.size());
    }
    out.push(std::move(text));
  } else if (verdict == "none") {
    out.push("slower than it should be, and no cause of the catalogue explains it");
  } else {
    out.push(verdict + " than it should be, as far as the errors tell");
  }
  const double of_100 = 100 * result.at("chance_if_healthy").as_number();
  out.push(fmt::format("{} of 100 runs where nothing is wrong would be further off",
                       of_100 < 1 ? fmt::format("{:.2g}", of_100) : fmt::format("{:.0f}", of_100)));
  return out;
}

}  // namespace

Json explain_report_file(const Json& result, const std::string& name) {
  const Json::Array& rows = result.at("points").items();
  const std::vector<std::string> keys = scalar_keys(rows);
  ReportForm form;
  std::vector<PointBandwidths> points;
  for (const std::string& key : keys) form.columns.push(heading_json(key));
  for_each_of(result, "points", [&](const Json& row, std::size_t) {
    points.push_back(bandwidths_of(row));
    form.rows.push(cells_json(row, keys));
    form.causes.push(Json::array());
  });
  form.curves = curves_json(result, points);
  form.explained = Json::object({{"suffices", suffices(result)},
                                 {"answers", answers_json(result)},
                                 {"set_aside", set_aside_json(result)}});
  form.verdict = verdict_json(result);
  form.notes = notes_json(result, points);
  form.provenance = provenance_json(result, "verdict");
  form.parameters = parameters_json(result);
  return file_json(name, kExplainSchema, std::move(form));
}

}  // namespace weft
