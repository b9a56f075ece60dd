#include <utility>

#include "tools/border.hpp"
#include "tools/explain_report.hpp"
#include "tools/explain_request.hpp"
#include "tools/weft.hpp"

namespace weft::api {
namespace {

/// Words of a catalogue are views.
std::string text_of(std::string_view words) { return std::string(words); }

std::vector<ExplainedPoint> points_of(const ExplainView& view) {
  std::vector<ExplainedPoint> out;
  for (const Point& point : view.effects.points()) {
    const std::size_t i = out.size();
    out.push_back({point.op, point.path, point.bytes, point.slow_us,
                   slow_busbw_gb_per_s(view, point),
                   point.healthy_us > 0 ? std::optional(point.healthy_us) : std::nullopt,
                   view.effects.healthy_us()[i], view.explanation.gaps[i], view.explanation.sd[i]});
  }
  return out;
}

Suspect suspect_of(const weft::Suspect& suspect) {
  Suspect out{text_of(suspect.entry->id),
              text_of(suspect.entry->title),
              suspect.variant.where,
              suspect.variant.how,
              suspect.variant.change.lines(),
              text_of(suspect.entry->verify),
              suspect.weight,
              suspect.said,
              {}};
  for (const weft::Quote& quote : suspect.quotes) out.evidence.push_back({quote.place, quote.text});
  return out;
}

std::vector<Suspect> suspects_of(const std::vector<const weft::Suspect*>& suspects) {
  std::vector<Suspect> out;
  for (const weft::Suspect* suspect : suspects) out.push_back(suspect_of(*suspect));
  return out;
}

Answer answer_of(const ExplainView& view, std::size_t at) {
  const weft::Answer& answer = view.explanation.answers[at];
  const Match& match = answer.best().match;
  Answer out;
  for (const Combination& same : answer.same) {
    std::vector<Suspect> causes;
    for (const std::size_t i : same.suspects) {
      causes.push_back(suspect_of(view.effects.suspects()[i]));
    }
    if (&same == &answer.best()) {
      out.causes = std::move(causes);
    } else {
      out.alternatives.push_back(std::move(causes));
    }
  }
  out.alike = at < view.explanation.alike;
  out.times_less = answer.times_less;
  if (view.explanation.healthy.has_share) {
    out.explains = match.share;
    out.low = match.low;
    out.high = match.high;
  }
  out.chance = match.tail;
  out.effects = answer.best().effect;
  return out;
}

Explanation explanation_of(const ExplainView& view) {
  Explanation out;
  out.verdict = text_of(explained_name(view.explanation.verdict));
  out.machine = view.machine;
  out.nodes = view.measurement.hosts;
  out.ranks = view.measurement.ranks;
  out.nccl_version = view.nccl_version;
  out.chance_if_healthy = view.explanation.healthy.tail;
  out.two_at_once = view.explanation.two_at_once;
  out.points = points_of(view);
  for (std::size_t i = 0; i < view.explanation.answers.size(); ++i) {
    out.answers.push_back(answer_of(view, i));
  }
  out.ruled_out = suspects_of(ruled_out(view));
  out.no_effect = suspects_of(without_effect(view));
  for (const RefusedSuspect& refusal : weft::refused(view)) {
    const weft::Suspect& suspect = *refusal.suspect;
    out.refused.push_back(
        {text_of(suspect.entry->id), suspect.variant.where, suspect.variant.how, refusal.why});
  }
  for (const CauseEntry* entry : weft::not_here(view)) {
    out.not_here.push_back({text_of(entry->id), text_of(entry->needs)});
  }
  for (const weft::NotLookedAt& each : weft::not_looked_at()) {
    out.not_looked_at.push_back({text_of(each.what), text_of(each.why)});
  }
  out.notes = view.notes;
  out.text = explain_text(view);
  out.json = explain_json(view).dump();
  return out;
}

InputText input_of(const Log& log) { return {log.name(), log.text()}; }

}  // namespace

Explanation explain(const Log& slow, const ExplainOptions& options) {
  return at_the_border([&] {
    ExplainAsked asked;
    asked.slow = input_of(slow);
    if (options.healthy) asked.healthy = input_of(*options.healthy);
    asked.as = options.as;
    asked.evidence = options.evidence;
    asked.gpu = options.gpu;
    Settings set;
    if (options.machine) {
      set = options.machine->set_;
      asked.machine = InputText{options.machine->name_, options.machine->text_};
    }
    asked.predict = predict_options(predict_asked(options), settings_of(set));
    return run_asking(options.stop, [&](const Stop* stop) {
      asked.predict.stop = stop;
      Explanation out;
      explain_asked(asked, [&](const ExplainView& view) {
        if (view.explanation.was_stopped) throw Stopped("stopped before all causes were predicted");
        out = explanation_of(view);
      });
      return out;
    });
  });
}

}  // namespace weft::api
