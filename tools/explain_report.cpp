#include "tools/explain_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/units.hpp"
#include "sim/base/version.hpp"
#include "sim/result/fields.hpp"
#include "tools/quote_fields.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostAnswers = 5;
constexpr std::size_t kMostSame = 4;
constexpr std::size_t kMostQuotes = 3;

Json lines_json(const std::vector<std::string>& lines) {
  Json out = Json::array();
  for (const std::string& line : lines) out.push(line);
  return out;
}

const Suspect& suspect_of(const ExplainView& view, std::size_t i) {
  return view.effects.suspects()[i];
}

double reference_us(const ExplainView& view, std::size_t i) {
  const Point& point = view.effects.points()[i];
  return point.healthy_us > 0 ? point.healthy_us : view.effects.healthy_us()[i];
}

/// Whether there is a gap over all sizes of which a share can be explained.
bool has_share(const ExplainView& view) { return view.explanation.healthy.has_share; }

// JSON.

struct PointOf {
  const ExplainView* view;
  std::size_t at;
};
using PointField = JsonField<PointOf>;
const Point& point_of(const PointOf& of) { return of.view->effects.points()[of.at]; }

constexpr std::array kPointFields{
    PointField{{"op", "text", "", "operation"},
               [](const PointOf& of) -> Json { return point_of(of).op; }},
    PointField{{"memory_path", "text", "where it was forced", "host-staged"},
               [](const PointOf& of) { return if_any(point_of(of).path); }},
    PointField{{"bytes", "whole number", "", "size, as nccl-tests counts it"},
               [](const PointOf& of) -> Json { return point_of(of).bytes; }},
    PointField{{"slow_us", "number", "", "measured, us"},
               [](const PointOf& of) -> Json { return point_of(of).slow_us; }},
    PointField{
        {"busbw_GBps", "number", "", "of the slow run, as nccl-tests defines it"},
        [](const PointOf& of) -> Json { return slow_busbw_gb_per_s(*of.view, point_of(of)); }},
    PointField{{"healthy_us", "number", "with a healthy run", "measured, us"},
               [](const PointOf& of) -> Json {
                 return point_of(of).healthy_us > 0 ? Json(point_of(of).healthy_us) : Json();
               }},
    PointField{{"predicted_us", "number", "", "predicted where nothing is wrong, us"},
               [](const PointOf& of) -> Json { return of.view->effects.healthy_us()[of.at]; }},
    PointField{{"gap", "number", "", "ln(slow / healthy, or predicted where there is none)"},
               [](const PointOf& of) -> Json { return of.view->explanation.gaps[of.at]; }},
    PointField{{"sd", "number", "", "standard deviation of a gap where nothing is wrong"},
               [](const PointOf& of) -> Json { return of.view->explanation.sd[of.at]; }}};

using SuspectField = JsonField<const Suspect*>;
using SuspectPointer = const Suspect*;
constexpr std::array kCauseFields{
    SuspectField{{"id", "text", "", "entry of the catalogue"},
                 [](const SuspectPointer& s) -> Json { return s->entry->id; }},
    SuspectField{{"what", "text", "", "the cause"},
                 [](const SuspectPointer& s) -> Json { return s->entry->title; }},
    SuspectField{{"where", "text", "", "of the machine"},
                 [](const SuspectPointer& s) -> Json { return s->variant.where; }},
    SuspectField{{"how", "text", "", "how much, or to which value"},
                 [](const SuspectPointer& s) -> Json { return s->variant.how; }},
    SuspectField{{"changes", "list", "", "what is otherwise than on the healthy machine"},
                 [](const SuspectPointer& s) { return lines_json(s->variant.change.lines()); }},
    SuspectField{{"verify", "text", "", "what to run or to change"},
                 [](const SuspectPointer& s) -> Json { return s->entry->verify; }},
    SuspectField{{"weight", "number", "", "by which evidence makes it more likely, or less"},
                 [](const SuspectPointer& s) -> Json { return s->weight; }},
    SuspectField{{"said", "text", "where evidence says something of it", "what its check came to"},
                 [](const SuspectPointer& s) { return if_any(s->said); }},
    SuspectField{{"evidence", "list", "", "what says so"},
                 [](const SuspectPointer& s) { return objects_of(s->quotes, kQuoteFields); }}};

struct AnswerOf {
  const ExplainView* view;
  std::size_t at;
};
const Answer& answer_of(const AnswerOf& of) { return of.view->explanation.answers[of.at]; }

Json causes_json(const ExplainView& view, const Combination& combination) {
  std::vector<SuspectPointer> causes;
  for (const std::size_t i : combination.suspects) causes.push_back(&suspect_of(view, i));
  return objects_of(causes, kCauseFields);
}

Json numbers_json(const std::vector<double>& numbers) {
  Json out = Json::array();
  for (const double number : numbers) out.push(number);
  return out;
}

using AnswerField = JsonField<AnswerOf>;
constexpr std::array kAnswerFields{
    AnswerField{{"causes", "list", "", "one cause, or two at once"},
                [](const AnswerOf& of) { return causes_json(*of.view, answer_of(of).best()); }},
    AnswerField{{"or", "list", "", "others that predict the same: lists of one cause or two"},
                [](const AnswerOf& of) {
                  Json out = Json::array();
                  for (std::size_t i = 1; i < answer_of(of).same.size(); ++i) {
                    Json one = Json::object();
                    one.set("causes", causes_json(*of.view, answer_of(of).same[i]));
                    out.push(std::move(one));
                  }
                  return out;
                }},
    AnswerField{{"alike", "true or false", "", "cannot be told from the first answer"},
                [](const AnswerOf& of) -> Json { return of.at < of.view->explanation.alike; }},
    AnswerField{{"times_less", "number", "", "likely than the first answer; 1e12: or more"},
                [](const AnswerOf& of) -> Json { return answer_of(of).times_less; }},
    AnswerField{{"explains", "number", "where gaps add up to more than their error",
                 "share of the gap, over all sizes"},
                [](const AnswerOf& of) {
                  return has_share(*of.view) ? Json(answer_of(of).best().match.share) : Json();
                }},
    AnswerField{{"low", "number", "likewise", "of 80 % of its likely values"},
                [](const AnswerOf& of) {
                  return has_share(*of.view) ? Json(answer_of(of).best().match.low) : Json();
                }},
    AnswerField{{"high", "number", "likewise", "likewise"},
                [](const AnswerOf& of) {
                  return has_share(*of.view) ? Json(answer_of(of).best().match.high) : Json();
                }},
    AnswerField{{"chance", "number", "", "of numbers that fit worse if it is the cause"},
                [](const AnswerOf& of) -> Json { return answer_of(of).best().match.tail; }},
    AnswerField{{"effects", "list", "", "ln(with it / healthy) by point, predicted"},
                [](const AnswerOf& of) { return numbers_json(answer_of(of).best().effect); }}};

using LookedField = JsonField<NotLookedAt>;
constexpr std::array kLookedFields{
    LookedField{{"what", "text", "", "what can make a run slow, too"},
                [](const NotLookedAt& n) -> Json { return n.what; }},
    LookedField{{"why", "text", "", "why it was not looked at"},
                [](const NotLookedAt& n) -> Json { return n.why; }}};

using EntryPointer = const CauseEntry*;
using EntryField = JsonField<EntryPointer>;
constexpr std::array kEntryFields{
    EntryField{{"id", "text", "", "entry of the catalogue"},
               [](const EntryPointer& e) -> Json { return e->id; }},
    EntryField{{"needs", "text", "", "what a machine must have for it"},
               [](const EntryPointer& e) -> Json { return e->needs; }}};

using RefusedField = JsonField<RefusedSuspect>;
constexpr std::array kRefusedFields{
    RefusedField{{"id", "text", "", "entry of the catalogue"},
                 [](const RefusedSuspect& r) -> Json { return r.suspect->entry->id; }},
    RefusedField{{"where", "text", "", "of the machine"},
                 [](const RefusedSuspect& r) -> Json { return r.suspect->variant.where; }},
    RefusedField{{"how", "text", "", "how much, or to which value"},
                 [](const RefusedSuspect& r) -> Json { return r.suspect->variant.how; }},
    RefusedField{{"why", "text", "", "why weft cannot predict it"},
                 [](const RefusedSuspect& r) -> Json { return r.why; }}};

using FileField = JsonField<ExplainView>;
constexpr std::array kFileFields{
    FileField{{"schema", "text", "", "the version of this form: weft.explain/1"},
              [](const ExplainView&) -> Json { return "weft.explain/1"; }},
    FileField{{"weft", "text", "", "version"},
              [](const ExplainView&) -> Json { return std::string(weft_version()); }},
    FileField{{"verdict", "text", "",
               "not slower (than it should be, as far as the errors tell), explained, none (of the "
               "catalogue's causes)"},
              [](const ExplainView& v) -> Json { return explained_name(v.explanation.verdict); }},
    FileField{{"slow", "text", "", "its file"},
              [](const ExplainView& v) -> Json { return v.slow; }},
    FileField{{"healthy", "text", "with a healthy run", "its file"},
              [](const ExplainView& v) { return if_any(v.healthy); }},
    FileField{{"machine", "text", "", "its file, or: the evidence's machine, mended"},
              [](const ExplainView& v) -> Json { return v.machine; }},
    FileField{{"nodes", "whole number", "", "hosts of the run"},
              [](const ExplainView& v) -> Json { return v.measurement.hosts; }},
    FileField{{"ranks", "whole number", "", "GPUs of all hosts together"},
              [](const ExplainView& v) -> Json { return v.measurement.ranks; }},
    FileField{{"nccl_version", "text", "", "whose decisions were followed"},
              [](const ExplainView& v) -> Json { return v.nccl_version; }},
    FileField{{"chance_if_healthy", "number", "",
               "of numbers that are off as far where nothing is wrong"},
              [](const ExplainView& v) -> Json { return v.explanation.healthy.tail; }},
    FileField{{"two_at_once", "true or false", "", "the first answer is two causes"},
              [](const ExplainView& v) -> Json { return v.explanation.two_at_once; }},
    FileField{{"pairs", "whole number", "", "pairs of causes that were looked for"},
              [](const ExplainView& v) -> Json {
                return static_cast<std::int64_t>(v.explanation.pairs);
              }},
    FileField{{"pairs_left_out", "whole number", "",
               "of these, not predicted at all sizes, for the time that they take"},
              [](const ExplainView& v) -> Json {
                return static_cast<std::int64_t>(v.explanation.pairs_left);
              }},
    FileField{{"stopped", "true or false", "",
               "by a time limit or Ctrl-C, before pairs of causes were predicted"},
              [](const ExplainView& v) -> Json { return v.explanation.was_stopped; }},
    FileField{{"points", "list", "", "the sizes that were looked at"},
              [](const ExplainView& v) {
                std::vector<PointOf> points;
                for (std::size_t i = 0; i < v.effects.points().size(); ++i) {
                  points.push_back({&v, i});
                }
                return objects_of(points, kPointFields);
              }},
    FileField{{"answers", "list", "", "the likeliest first; of none the nearest"},
              [](const ExplainView& v) {
                std::vector<AnswerOf> answers;
                for (std::size_t i = 0; i < v.explanation.answers.size(); ++i) {
                  answers.push_back({&v, i});
                }
                return objects_of(answers, kAnswerFields);
              }},
    FileField{{"ruled_out", "list", "", "causes that evidence rules out"},
              [](const ExplainView& v) { return objects_of(ruled_out(v), kCauseFields); }},
    FileField{{"no_effect", "list", "",
               "causes that change no time by 1 % at the sizes where they were predicted"},
              [](const ExplainView& v) { return objects_of(without_effect(v), kCauseFields); }},
    FileField{{"refused", "list", "", "causes that weft cannot predict here"},
              [](const ExplainView& v) { return objects_of(refused(v), kRefusedFields); }},
    FileField{{"not_here", "list", "", "entries that cannot be on this machine"},
              [](const ExplainView& v) { return objects_of(not_here(v), kEntryFields); }},
    FileField{{"not_looked_at", "list", "", "what has no entry"},
              [](const ExplainView&) {
                const auto all = not_looked_at();
                return objects_of(std::vector<NotLookedAt>(all.begin(), all.end()), kLookedFields);
              }},
    FileField{{"notes", "list", "", "what had to be assumed, and what the rate is a sign of"},
              [](const ExplainView& v) { return lines_json(all_notes(v)); }}};

// Text.

std::string name_of(const Suspect& suspect) {
  return fmt::format("{}: {} ({})", suspect.entry->title, one_line(suspect.variant.where),
                     one_line(suspect.variant.how));
}

std::string name_of(const ExplainView& view, const Combination& combination) {
  std::string out;
  for (const std::size_t i : combination.suspects) {
    out += (out.empty() ? "" : ", and ") + name_of(suspect_of(view, i));
  }
  return out;
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// The share of bandwidth that a factor of time costs.
double lost(double log_ratio) { return 1 - std::exp(-log_ratio); }

/// "at 1 GiB 51 % of bandwidth lost, measured 53 %"
std::string at_worst(const ExplainView& view, const std::vector<double>& effect) {
  const std::vector<double>& gaps = view.explanation.gaps;
  const auto worst =
      static_cast<std::size_t>(std::max_element(gaps.begin(), gaps.end()) - gaps.begin());
  const Point& point = view.effects.points()[worst];
  return fmt::format("at {} {} of bandwidth lost, measured {}", format_size(Bytes{point.bytes}),
                     percent(lost(effect[worst])), percent(lost(gaps[worst])));
}

std::string quotes_text(const Suspect& suspect, const char* indent) {
  std::string out;
  if (!suspect.said.empty()) {
    out += fmt::format("{}evidence: {}\n", indent, one_line(suspect.said));
  }
  for (std::size_t i = 0; i < suspect.quotes.size() && i < kMostQuotes; ++i) {
    const Quote& quote = suspect.quotes[i];
    out += indent + one_line((quote.place.empty() ? "" : quote.place + ": ") + quote.text) + "\n";
  }
  if (suspect.quotes.size() > kMostQuotes) {
    out += fmt::format("{}and {} more (--json)\n", indent, suspect.quotes.size() - kMostQuotes);
  }
  return out;
}

/// What else predicts the same, entry by entry.
std::string same_text(const ExplainView& view, const Answer& answer) {
  std::string out;
  std::size_t shown = 0;
  for (std::size_t i = 1; i < answer.same.size(); ++i) {
    if (shown++ == kMostSame) {
      return out + fmt::format("   or {} more (--json)\n", answer.same.size() - i);
    }
    out += "   or " + name_of(view, answer.same[i]) + "\n";
  }
  return out;
}

std::string answer_text(const ExplainView& view, std::size_t at) {
  const Answer& answer = view.explanation.answers[at];
  const Combination& best = answer.best();
  std::string out = fmt::format("{}. {}\n", at + 1, name_of(view, best));
  out += same_text(view, answer);
  if (has_share(view)) {
    out += fmt::format("   explains {} of the gap ({} to {}): ", percent(best.match.share),
                       percent(best.match.low), percent(best.match.high));
    if (best.match.high < 1) out += "not all of it; ";
  } else {
    out += "   no share of the gap, which over all sizes is within its error: ";
  }
  out += at_worst(view, best.effect);
  if (at >= view.explanation.alike) {
    out += fmt::format("; {:.2g} times less likely", answer.times_less);
  }
  out += "\n";
  for (const std::size_t i : best.suspects) {
    const Suspect& suspect = suspect_of(view, i);
    out += quotes_text(suspect, "   ");
    out += fmt::format("   verify: {}\n", suspect.entry->verify);
  }
  return out;
}

/// Operation and path.
std::string series_of(const Point& point) {
  return point.op + (point.path.empty() ? "" : " " + point.path);
}

/// Each once.
std::vector<std::string> all_series(const std::vector<Point>& points) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i == 0 || !points[i].is_of(points[i - 1])) out.push_back(series_of(points[i]));
  }
  return out;
}

std::string head_text(const ExplainView& view) {
  const Measurement& measured = view.measurement;
  const std::string ops = fmt::format("{}", fmt::join(all_series(measured.points), ", "));
  return fmt::format("{}: {} of {} GPUs on {} {}, against {}; {} of {} sizes\n",
                     one_line(view.slow), ops, measured.ranks, measured.hosts,
                     measured.hosts == 1 ? "host" : "hosts",
                     view.healthy.empty() ? "the prediction for " + one_line(view.machine)
                                          : one_line(view.healthy),
                     measured.points.size(), measured.sizes);
}

std::string points_text(const ExplainView& view) {
  std::string out = "#     size  measured us  reference us   slower  expected error\n";
  const bool is_one = all_series(view.effects.points()).size() == 1;
  for (std::size_t i = 0; i < view.effects.points().size(); ++i) {
    const Point& point = view.effects.points()[i];
    out += fmt::format("{:>10} {:>12.1f} {:>13.1f} {:>7.2f}x  +-{}{}\n",
                       format_size(Bytes{point.bytes}), point.slow_us, reference_us(view, i),
                       std::exp(view.explanation.gaps[i]), percent(view.explanation.sd[i]),
                       is_one ? "" : "  " + series_of(point));
  }
  return out;
}

/// Whether what each of the first answers explains is too much or too little.
bool fits_badly(const ExplainView& view) {
  const std::vector<Answer>& answers = view.explanation.answers;
  const auto alike = static_cast<std::ptrdiff_t>(view.explanation.alike);
  return std::none_of(answers.begin(), answers.begin() + alike, [](const Answer& answer) {
    const Match& match = answer.best().match;
    return match.low <= 1 && 1 <= match.high;
  });
}

std::string answers_text(const ExplainView& view) {
  const Explanation& explanation = view.explanation;
  std::string out;
  if (explanation.verdict == Explained::kNone && !explanation.answers.empty()) {
    out += "The nearest, which do not suffice:\n";
  }
  const std::size_t shown = std::min(explanation.answers.size(), kMostAnswers);
  for (std::size_t i = 0; i < shown; ++i) out += answer_text(view, i);
  if (explanation.answers.size() > shown) {
    out += fmt::format("and {} more answers (--json), {:.2g} times less likely and beyond\n",
                       explanation.answers.size() - shown, explanation.answers[shown].times_less);
  }
  if (explanation.verdict == Explained::kExplained && explanation.alike > 1) {
    out += fmt::format(
        "1 to {} are alike in these numbers. To tell: what stands behind `verify`, evidence of the "
        "machine (--evidence),\nmore sizes, another operation, or a run over the other memory "
        "path\n",
        explanation.alike);
  }
  if (explanation.verdict == Explained::kExplained && has_share(view) && fits_badly(view)) {
    out +=
        "Of none of them is the whole gap within the interval: it is another amount, or another "
        "cause\n";
  }
  return out;
}

std::string ruled_out_text(const ExplainView& view) {
  std::map<std::string_view, const Suspect*> by_entry;
  for (const Suspect* suspect : ruled_out(view)) {
    by_entry.emplace(suspect->entry->id, suspect);
  }
  for (const Suspect& suspect : view.effects.suspects()) {  // one that is out in part is not
    if (suspect.weight > 0) by_entry.erase(suspect.entry->id);
  }
  std::string out;
  for (const auto& [id, suspect] : by_entry) {
    out += fmt::format("  {}: {}", suspect->entry->title, one_line(suspect->said));
    if (!suspect->quotes.empty() && !suspect->quotes.front().place.empty()) {
      out += " (" + one_line(suspect->quotes.front().place) + ")";
    }
    out += "\n";
  }
  return out.empty() ? "" : "ruled out by evidence:\n" + out;
}

std::string rest_text(const ExplainView& view) {
  std::string out = ruled_out_text(view);
  std::vector<std::string> here;
  for (const CauseEntry* entry : not_here(view)) here.emplace_back(entry->id);
  if (!here.empty()) out += fmt::format("cannot be here: {}\n", fmt::join(here, ", "));
  const std::vector<RefusedSuspect> cannot = refused(view);
  if (!cannot.empty()) {
    out += fmt::format("not predicted: {} variants, of the first: {}\n", cannot.size(),
                       one_line(cannot.front().why));
  }
  if (view.explanation.was_stopped) {
    out += "stopped before pairs of causes were predicted\n";
  } else if (view.explanation.pairs_left > 0) {
    out += fmt::format("of {} pairs of causes {} were left out, for the time that they take\n",
                       view.explanation.pairs, view.explanation.pairs_left);
  }
  out += "not looked at:\n";
  for (const NotLookedAt& each : not_looked_at()) {
    out += fmt::format("  {}: {}\n", each.what, each.why);
  }
  for (const std::string& note : all_notes(view)) out += "note: " + one_line(note) + "\n";
  return out;
}

std::string last_line(const ExplainView& view) {
  const Explanation& explanation = view.explanation;
  std::set<std::string_view> causes;
  std::size_t variants = 0;
  for (std::size_t i = 0; i < view.effects.suspects().size(); ++i) {
    const bool is_refused = explanation.verdict != Explained::kNotSlower &&  // else not predicted
                            !view.effects.why_not(i).empty();
    if (suspect_of(view, i).weight == 0 || is_refused) continue;
    causes.insert(suspect_of(view, i).entry->id);
    ++variants;
  }
  const std::string of = fmt::format("{} causes in {} variants", causes.size(), variants);
  switch (explanation.verdict) {
    case Explained::kNotSlower:
      if (std::accumulate(explanation.gaps.begin(), explanation.gaps.end(), 0.0) < 0 &&
          explanation.healthy.tail < 0.05) {
        return fmt::format(
            "not slower than it should be but faster, by more than 95 of 100 healthy runs are off "
            "({} known); are the two runs the other way round?\n",
            of);
      }
      return fmt::format(
          "not slower than it should be: {} of 100 healthy runs would be further "
          "off ({} known)\n",
          std::lround(100 * explanation.healthy.tail), of);
    case Explained::kNone:
      return fmt::format(
          "none of these explains it: {}{}\n", of,
          explanation.pairs == 0
              ? ""
              : fmt::format(", nor {} pairs of them", explanation.pairs - explanation.pairs_left));
    case Explained::kExplained:
      return fmt::format("explained by {}: {} of {} answers are alike ({})\n",
                         explanation.two_at_once ? "two causes at once" : "one cause",
                         explanation.alike, explanation.answers.size(), of);
  }
  return "";
}

}  // namespace

std::string explain_text(const ExplainView& view) {
  return head_text(view) + points_text(view) + answers_text(view) + rest_text(view) +
         last_line(view);
}

Json explain_json(const ExplainView& view) { return object_of(view, kFileFields); }

std::vector<FormatSection> explain_format() {
  return {{"", "The file.", keys_of(kFileFields)},
          {"points[]", "One size.", keys_of(kPointFields)},
          {"answers[]", "What explains it.", keys_of(kAnswerFields)},
          {"answers[].causes[], .or[].causes[]", "A cause.", keys_of(kCauseFields)},
          {"ruled_out[], no_effect[]", "A cause.", keys_of(kCauseFields)},
          {"*[].evidence[]", "What says so of a cause.", keys_of(kQuoteFields)},
          {"refused[]", "A cause without a prediction.", keys_of(kRefusedFields)},
          {"not_here[]", "An entry.", keys_of(kEntryFields)},
          {"not_looked_at[]", "What has no entry.", keys_of(kLookedFields)}};
}

}  // namespace weft
