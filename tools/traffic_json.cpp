#include "tools/traffic_json.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/result/fields.hpp"

namespace weft {
namespace {

using RankField = JsonField<TrafficRank>;
constexpr std::array kRankFields{
    RankField{{"rank", "whole number", "", "from 0"},
              [](const TrafficRank& r) -> Json { return r.rank; }},
    RankField{{"gpu", "text", "", "with its node"},
              [](const TrafficRank& r) -> Json { return r.gpu; }},
    RankField{{"sent", "whole number", "", "bytes, to itself left out"},
              [](const TrafficRank& r) -> Json { return r.sent; }},
    RankField{{"received", "whole number", "", "likewise"},
              [](const TrafficRank& r) -> Json { return r.received; }},
    RankField{{"end_us", "number", "",
               "when its kernel has ended; 0: it has none, or the row is an estimate"},
              [](const TrafficRank& r) -> Json { return r.end_us; }}};

using LinkField = JsonField<TrafficLink>;
constexpr std::array kLinkFields{
    LinkField{{"kind", "text", "", "a direction of a link, or a memory"},
              [](const TrafficLink& l) -> Json { return l.cause; }},
    LinkField{{"where", "text", "", "which one"},
              [](const TrafficLink& l) -> Json { return l.where; }},
    LinkField{{"busy_us", "number", "",
               "what it is given to carry, headers too, at its capacity: no run is shorter"},
              [](const TrafficLink& l) -> Json { return l.busy_us; }}};

using CauseField = JsonField<CauseShare>;
constexpr std::array kCauseFields{CauseField{{"cause", "text", "", "a kind of server or wait"},
                                             [](const CauseShare& c) -> Json { return c.cause; }},
                                  CauseField{{"where", "text", "", "the one that took most of it"},
                                             [](const CauseShare& c) -> Json { return c.where; }},
                                  CauseField{{"share", "number", "", "of the time; they sum to 1"},
                                             [](const CauseShare& c) -> Json { return c.share; }}};

using RowField = JsonField<TrafficRow>;
constexpr std::array kRowFields{
    RowField{{"memory_path", "text", "", "gdr, host-staged or nccl"},
             [](const TrafficRow& r) -> Json { return r.memory_path; }},
    RowField{{"proto", "text", "", "NCCL's protocol of the largest send"},
             [](const TrafficRow& r) -> Json { return r.proto; }},
    RowField{{"channels", "whole number", "", "that the largest send is split over"},
             [](const TrafficRow& r) -> Json { return r.channels; }},
    RowField{{"time_us", "number", "", "until the last rank's end"},
             [](const TrafficRow& r) -> Json { return r.time_us; }},
    RowField{
        {"estimate", "true or false", "if it is true",
         "not run whole: as its most loaded link is busy, and the rest of an even all-to-all, or "
         "as long as the ranks with most to do take without the others"},
        [](const TrafficRow& r) { return r.is_estimate ? Json(true) : Json(); }},
    RowField{{"ranks", "list", "", "by rank"},
             [](const TrafficRow& r) { return objects_of(r.ranks, kRankFields); }},
    RowField{{"links", "list", "", "most loaded first; those that carry nothing are left out"},
             [](const TrafficRow& r) { return objects_of(r.links, kLinkFields); }},
    RowField{{"limited_by", "list", "", "the critical path, largest first"},
             [](const TrafficRow& r) { return objects_of(r.limited_by, kCauseFields); }},
    RowField{{"trajectory", "text", "", "a number of what happened and when, for comparisons"},
             [](const TrafficRow& r) -> Json { return fmt::format("{:016x}", r.trajectory); }}};

using ResultField = JsonField<TrafficResult>;
constexpr std::array kResultFields{
    ResultField{{"schema", "text", "", "the version of this form: weft.traffic/1"},
                [](const TrafficResult&) -> Json { return "weft.traffic/1"; }},
    ResultField{{"op", "text", "", "the traffic, as the scenario names it"},
                [](const TrafficResult& r) -> Json { return r.op; }},
    ResultField{{"ranks", "whole number", "", "GPUs that there are"},
                [](const TrafficResult& r) -> Json { return r.ranks; }},
    ResultField{{"nodes", "whole number", "", "nodes that there are"},
                [](const TrafficResult& r) -> Json { return r.nodes; }},
    ResultField{{"results", "list", "", "the traffic over each memory path"},
                [](const TrafficResult& r) { return objects_of(r.rows, kRowFields); }},
    ResultField{{"verdict", "list of text", "", "what they come to, for people"},
                [](const TrafficResult& r) { return texts(r.verdict); }},
    ResultField{{"notes", "list of text", "", "what is left out, warnings"},
                [](const TrafficResult& r) { return texts(r.notes); }},
    ResultField{
        {"incomplete", "list of text", "if it was stopped early",
         "the memory paths that are missing: Ctrl-C, SIGTERM or --time-limit came first"},
        [](const TrafficResult& r) { return r.not_run.empty() ? Json() : texts(r.not_run); }},
    ResultField{{"provenance", "map", "", "what the result was made from, as weft.run/1 has it"},
                [](const TrafficResult& r) { return to_json(r.provenance); }}};

std::string row_text(const TrafficRow& row) {
  constexpr std::size_t kMostRanks = 32;
  constexpr std::size_t kMostLinks = 12;
  std::vector<TrafficRank> ranks = row.ranks;
  const bool some = ranks.size() > kMostRanks;
  if (some) {
    std::stable_sort(ranks.begin(), ranks.end(), [](const TrafficRank& a, const TrafficRank& b) {
      return a.received > b.received;
    });
    ranks.resize(kMostRanks);
  }
  std::string out = fmt::format("# {}: {:.3f} us, {} x{}{}\n", row.memory_path, row.time_us,
                                row.proto, row.channels, row.is_estimate ? ", estimated" : "");
  out += fmt::format("#{:>5} {:<10} {:>14} {:>14} {:>12} {:>12}{}\n", "rank", " GPU", "sent (B)",
                     "received (B)", "end (us)", "in (GB/s)",
                     some ? "   those that receive most" : "");
  for (const TrafficRank& r : ranks) {
    out += fmt::format(" {:>5}  {:<9} {:>14} {:>14}", r.rank, r.gpu, r.sent, r.received);
    if (row.is_estimate) {
      out += fmt::format(" {:>12} {:>12}\n", "-", "-");
      continue;
    }
    const double rate = r.end_us > 0 ? static_cast<double>(r.received) / r.end_us / 1e3 : 0;
    out += fmt::format(" {:>12.3f} {:>12.3f}\n", r.end_us, rate);
  }
  out += fmt::format("#\n#{:>11} {:>7}  most loaded links\n", "busy (us)", "(%)");
  for (std::size_t i = 0; i < std::min(kMostLinks, row.links.size()); ++i) {
    const TrafficLink& link = row.links[i];
    out += fmt::format(" {:>11.3f} {:>7.1f}  {} ({})\n", link.busy_us,
                       100 * link.busy_us / row.time_us, link.cause, link.where);
  }
  out += "#\n# critical path by cause\n";
  for (const CauseShare& cause : row.limited_by) {
    if (cause.share < 0.001) continue;
    out += fmt::format(" {:>5.1f} % {}{}\n", 100 * cause.share, cause.cause,
                       cause.where.empty() ? "" : " (" + cause.where + ")");
  }
  return out + "#\n";
}

}  // namespace

Json to_json(const TrafficResult& result) { return object_of(result, kResultFields); }

std::vector<FormatSection> traffic_result_format() {
  return {{"", "The file.", keys_of(kResultFields)},
          {"results[]", "One memory path.", keys_of(kRowFields)},
          {"results[].ranks[]", "A rank.", keys_of(kRankFields)},
          {"results[].links[]", "A link or memory.", keys_of(kLinkFields)},
          {"results[].limited_by[]", "A cause.", keys_of(kCauseFields)}};
}

std::string traffic_text(const TrafficResult& result) {
  std::string out = fmt::format("# weft traffic: {}, {} GPUs on {} nodes\n#\n", result.op,
                                result.ranks, result.nodes);
  for (const TrafficRow& row : result.rows) out += row_text(row);
  if (!result.not_run.empty()) {
    out += fmt::format("# incomplete: {} missing, as it was stopped\n#\n",
                       fmt::join(result.not_run, ", "));
  }
  for (const std::string& sentence : result.verdict) out += "# " + sentence + '\n';
  for (const std::string& note : result.notes) out += "# note: " + note + '\n';
  return out;
}

}  // namespace weft
