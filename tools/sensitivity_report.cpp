#include "tools/sensitivity_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/quantity.hpp"
#include "sim/report/text.hpp"
#include "sim/result/fields.hpp"

namespace weft {
namespace {

constexpr double kMatters = 0.01;  // an elasticity that people should know of
constexpr double kShown = 0.0005;  // what is not 0 as it is printed
constexpr const char* kAssumed = "assumed";

/// An effect beside its parameter, as the fields below need both.
struct Of {
  const MovedParam* param;
  const Effect* effect;
};

constexpr KeySpec kKey{"key", "text", "", "as `weft list-params` has it"};
constexpr KeySpec kValue{"value", "text", "", "with its unit; all of them where devices differ"};
constexpr KeySpec kOrigin{"origin", "text", "",
                          "specification, published, measured, fitted or assumed"};
constexpr KeySpec kSource{"source", "text", "", "what says so"};
constexpr KeySpec kDecides{"decides", "text", "where that changes",
                           "what NCCL then runs: the effect is that of a jump"};

using NumberField = JsonField<Of>;
constexpr std::array kNumberFields{
    NumberField{kKey, [](const Of& of) -> Json { return of.param->key; }},
    NumberField{kValue, [](const Of& of) -> Json { return of.param->value; }},
    NumberField{{"low", "text", "", "moved down to"},
                [](const Of& of) -> Json { return of.effect->low; }},
    NumberField{{"high", "text", "", "moved up to"},
                [](const Of& of) -> Json { return of.effect->high; }},
    NumberField{{"elasticity", "number", "",
                 "relative change of busbw, without bytes of 1 / time, per relative change of the "
                 "parameter"},
                [](const Of& of) -> Json { return *of.effect->elasticity; }},
    NumberField{{"down", "number", "", "the same from `value` down to `low`; 0 where it is `low`"},
                [](const Of& of) -> Json { return of.effect->down; }},
    NumberField{{"up", "number", "", "the same from `value` up to `high`; another one is a kink"},
                [](const Of& of) -> Json { return of.effect->up; }},
    NumberField{kDecides, [](const Of& of) { return if_any(of.effect->decides); }},
    NumberField{kOrigin, [](const Of& of) -> Json { return of.param->origin; }},
    NumberField{kSource, [](const Of& of) -> Json { return of.param->source; }}};

using WordField = JsonField<Of>;
constexpr std::array kWordFields{
    WordField{kKey, [](const Of& of) -> Json { return of.param->key; }},
    WordField{kValue, [](const Of& of) -> Json { return of.param->value; }},
    WordField{{"to", "text", "", "the word, or the flags, in its place"},
              [](const Of& of) -> Json { return of.effect->high; }},
    WordField{{"change", "number", "", "busbw, or 1 / time, then over that now, less 1"},
              [](const Of& of) -> Json { return of.effect->change; }},
    WordField{kDecides, [](const Of& of) { return if_any(of.effect->decides); }},
    WordField{kOrigin, [](const Of& of) -> Json { return of.param->origin; }},
    WordField{kSource, [](const Of& of) -> Json { return of.param->source; }}};

std::vector<Of> with_params(const std::vector<Effect>& effects, const Sensitivity& sensitivity) {
  std::vector<Of> out;
  for (const Effect& effect : effects) out.push_back({&sensitivity.params[effect.param], &effect});
  return out;
}

struct RowOf {
  const RowEffects* effects;
  const Sensitivity* all;
};

using RowField = JsonField<RowOf>;
constexpr std::array kRowFields{
    RowField{{"op", "text", "", "the operation; step; of traffic its kind"},
             [](const RowOf& r) -> Json { return r.effects->row.op; }},
    RowField{{"job", "text", "where a scenario has several", "its name"},
             [](const RowOf& r) { return if_any(r.effects->row.job); }},
    RowField{{"bytes", "whole number", "of operations", "size, as nccl-tests counts it"},
             [](const RowOf& r) {
               return r.effects->row.bytes > 0 ? Json(r.effects->row.bytes) : Json();
             }},
    RowField{{"ranks", "whole number", "", "GPUs that take part"},
             [](const RowOf& r) -> Json { return r.effects->row.ranks; }},
    RowField{{"memory_path", "text", "", "gdr, host-staged or nccl"},
             [](const RowOf& r) -> Json { return r.effects->row.memory_path; }},
    RowField{{"time_us", "number", "", "with no parameter moved"},
             [](const RowOf& r) -> Json { return r.effects->row.time_us; }},
    RowField{{"busbw_GBps", "number", "of operations", "likewise"},
             [](const RowOf& r) {
               return r.effects->row.bytes > 0 ? Json(r.effects->row.busbw_gb_per_s) : Json();
             }},
    RowField{{"parameters", "list", "", "numbers, the largest effect first"},
             [](const RowOf& r) {
               return objects_of(with_params(r.effects->numbers, *r.all), kNumberFields);
             }},
    RowField{{"words", "list", "", "words and flags, the largest effect first"},
             [](const RowOf& r) {
               return objects_of(with_params(r.effects->words, *r.all), kWordFields);
             }}};

struct NotMovedOf {
  const MovedParam* param;
  const NotMoved* not_moved;
};

using NotMovedField = JsonField<NotMovedOf>;
constexpr std::array kNotMovedFields{
    NotMovedField{kKey, [](const NotMovedOf& n) -> Json { return n.param->key; }},
    NotMovedField{kValue, [](const NotMovedOf& n) -> Json { return n.param->value; }},
    NotMovedField{{"why", "text", "", "the reason"},
                  [](const NotMovedOf& n) -> Json { return n.not_moved->why; }}};

using FileField = JsonField<Sensitivity>;
constexpr std::array kFileFields{
    FileField{{"schema", "text", "", "the version of this form: weft.sensitivity/1"},
              [](const Sensitivity&) -> Json { return "weft.sensitivity/1"; }},
    FileField{{"results", "list", "", "one for each size (job) and memory path"},
              [](const Sensitivity& s) {
                std::vector<RowOf> rows;
                for (const RowEffects& row : s.rows) rows.push_back({&row, &s});
                return objects_of(rows, kRowFields);
              }},
    FileField{{"not_moved", "list", "", "parameters without an effect that could be told, and why"},
              [](const Sensitivity& s) {
                std::vector<NotMovedOf> all;
                for (const NotMoved& n : s.not_moved) all.push_back({&s.params[n.param], &n});
                return objects_of(all, kNotMovedFields);
              }},
    FileField{{"provenance", "map", "", "as in a result of weft run"},
              [](const Sensitivity& s) { return to_json(s.provenance); }}};

std::string table(std::vector<std::string> titles, std::vector<std::vector<std::string>> lines,
                  std::size_t smaller) {
  std::string out;
  if (!lines.empty()) {
    titles.front() = "# " + titles.front();
    lines.insert(lines.begin(), std::move(titles));
    out = aligned(lines, lines.front().size());
  }
  if (smaller > 0) out += fmt::format("# and {} that move it less\n", smaller);
  return out + "#\n";
}

std::string numbers_text(const RowEffects& effects, const Sensitivity& sensitivity) {
  std::vector<std::vector<std::string>> lines;
  std::size_t smaller = 0;
  const auto text = [](double slope) { return fmt::format("{:+.3f}", slope); };
  for (const Effect& effect : effects.numbers) {
    const MovedParam& param = sensitivity.params[effect.param];
    const bool is_shown = std::abs(*effect.elasticity) >= kShown;
    smaller += !is_shown && std::abs(*effect.elasticity) >= kNoEffect ? 1U : 0U;
    if (!is_shown) continue;
    lines.push_back({text(*effect.elasticity), text(effect.down), text(effect.up), param.key,
                     param.value, param.origin, effect.decides});
  }
  return table({"elasticity", "down", "up", "parameter", "value", "origin", "NCCL then runs"},
               std::move(lines), smaller);
}

std::string words_text(const RowEffects& effects, const Sensitivity& sensitivity) {
  std::vector<std::vector<std::string>> lines;
  std::size_t smaller = 0;
  for (const Effect& effect : effects.words) {
    const MovedParam& param = sensitivity.params[effect.param];
    const bool is_shown = std::abs(effect.change) >= kShown;
    smaller += !is_shown && std::abs(effect.change) >= kNoEffect ? 1U : 0U;
    if (!is_shown) continue;
    lines.push_back({signed_percent(effect.change), param.key, param.value + " -> " + effect.high,
                     param.origin, effect.decides});
  }
  return table({"change", "parameter", "value", "origin", "NCCL then runs"}, std::move(lines),
               smaller);
}

std::string row_text(const RowEffects& effects, const Sensitivity& sensitivity) {
  const ResultRow& row = effects.row;
  std::string out = "# " + (row.job.empty() ? "" : row.job + ": ");
  if (row.bytes > 0) {
    out += fmt::format("{} of {} on {} GPUs, {}: busbw {} GB/s ({} {} x {})\n", row.op,
                       format_size(Bytes{row.bytes}), row.ranks, row.memory_path,
                       short_number(row.busbw_gb_per_s), row.algo, row.proto, row.channels);
  } else {
    out += fmt::format("{} on {} GPUs, {}: {} us; elasticities and changes are of 1 / time\n",
                       row.op, row.ranks, row.memory_path, short_number(row.time_us));
  }
  return out + numbers_text(effects, sensitivity) + words_text(effects, sensitivity);
}

/// Assumed values that move any row, and those of which it cannot be told.
std::string assumed_text(const Sensitivity& sensitivity) {
  std::string out;
  std::string unknown;
  std::set<std::size_t> named;
  for (const NotMoved& n : sensitivity.not_moved) {
    if (n.is_stopped || sensitivity.params[n.param].origin != kAssumed) continue;
    if (!named.insert(n.param).second) continue;
    unknown +=
        (unknown.empty() ? "; not moved, so not known: " : ", ") + sensitivity.params[n.param].key;
  }
  for (std::size_t p = 0; p < sensitivity.params.size(); ++p) {
    if (sensitivity.params[p].origin != kAssumed) continue;
    const bool matters =
        std::any_of(sensitivity.rows.begin(), sensitivity.rows.end(), [&](const RowEffects& row) {
          return std::any_of(row.numbers.begin(), row.numbers.end(), [&](const Effect& e) {
            return e.param == p && std::abs(*e.elasticity) >= kMatters;
          });
        });
    if (matters) out += (out.empty() ? "" : ", ") + sensitivity.params[p].key;
  }
  return fmt::format("# assumed, with an elasticity of {} or more{}: {}\n", kMatters,
                     sensitivity.is_stopped ? ", of those that were moved" : "",
                     out.empty() ? "none" : out) +
         (unknown.empty() ? "" : unknown + '\n');
}

/// Whether a parameter is a count or a size, which may have a best value.
bool is_counted(const std::string& value) {
  return value.ends_with(" B") || value.find_first_not_of("0123456789.e+- ") == std::string::npos;
}

/// Rates and times of which both more and less is better, or worse, as no limit has it.
std::string phases_text(const Sensitivity& sensitivity) {
  std::set<std::string> keys;
  for (const RowEffects& row : sensitivity.rows) {
    for (const Effect& e : row.numbers) {
      if (e.down * e.up >= 0 || std::min(std::abs(e.down), std::abs(e.up)) < kMatters) continue;
      if (!e.decides.empty() || is_counted(sensitivity.params[e.param].value)) continue;
      keys.insert(sensitivity.params[e.param].key);
    }
  }
  if (keys.empty()) return "";
  return fmt::format(
      "# down and up have opposite signs, as no limit has it but messages that meet in other "
      "phases (mostly up to 2 % of the time): {}; another --step tells more\n",
      fmt::join(keys, ", "));
}

}  // namespace

std::string sensitivity_text(const Sensitivity& sensitivity) {
  std::string out;
  for (const RowEffects& row : sensitivity.rows) out += row_text(row, sensitivity);
  out += assumed_text(sensitivity);
  out += phases_text(sensitivity);
  std::size_t zeros = 0;
  std::set<std::size_t> stopped;
  for (const NotMoved& n : sensitivity.not_moved) {
    const MovedParam& param = sensitivity.params[n.param];
    if (n.is_stopped) {
      stopped.insert(n.param);
      continue;
    }
    if (param.value.starts_with("0")) ++zeros;
    if (!param.value.starts_with("0")) {
      out += fmt::format("# not moved: {} = {}: {}\n", param.key, param.value, n.why);
    }
  }
  if (zeros > 0) {
    out += fmt::format("# not moved: {} parameters that are 0 (--json names them)\n", zeros);
  }
  if (!stopped.empty()) {
    out += fmt::format(
        "# not moved: {} of {} parameters, not known: stopped before that (--json names them, "
        "--params KEY,... asks for some alone)\n",
        stopped.size(), sensitivity.params.size());
  }
  for (const std::string& note : sensitivity.notes) out += "# note: " + note + '\n';
  return out;
}

Json sensitivity_json(const Sensitivity& sensitivity) {
  return object_of(sensitivity, kFileFields);
}

std::vector<FormatSection> sensitivity_format() {
  return {{"", "The file.", keys_of(kFileFields)},
          {"results[]", "One size of an operation, job, step or traffic over one memory path.",
           keys_of(kRowFields)},
          {"results[].parameters[]", "A number that was moved.", keys_of(kNumberFields)},
          {"results[].words[]", "A word that was tried in another's place.", keys_of(kWordFields)},
          {"not_moved[]", "A parameter without an effect.", keys_of(kNotMovedFields)}};
}

}  // namespace weft
