#include "models/wire/dcqcn.hpp"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

/// value^n by squaring: the same on every machine.
double power(double value, std::int64_t n) {
  double result = 1;
  for (; n > 0; n /= 2, value *= value) {
    if (n % 2 != 0) result *= value;
  }
  return result;
}

constexpr double mbit_per_s(double n) { return n * 1e6 / 8; }

}  // namespace

DcqcnSettings::DcqcnSettings(const Params& params)
    : ecn_min{params.duration("dcqcn.ecn_min")},
      ecn_max{params.duration("dcqcn.ecn_max")},
      ecn_chance{params.number("dcqcn.ecn_chance")} {
  const bool paper = params.choice("dcqcn.defaults") == "paper";
  const auto number = [&](std::string_view key, double firmware, double in_paper) {
    const double own = params.number(key);
    return own > 0 ? own : (paper ? in_paper : firmware);
  };
  const auto time = [&](std::string_view key, std::int64_t firmware_us, std::int64_t paper_us) {
    const Duration own = params.duration(key);
    return own > Duration{} ? own : Duration::us(paper ? paper_us : firmware_us);
  };
  const auto rate = [&](std::string_view key, double firmware_mbit, double paper_mbit) {
    const double own = params.number(key) * 1e9;
    return own > 0 ? own : mbit_per_s(paper ? paper_mbit : firmware_mbit);
  };
  cnp_interval = time("dcqcn.cnp_interval", 4, 50);
  gain = number("dcqcn.g", 5.0 / 1024, 1.0 / 256);
  alpha_period = time("dcqcn.alpha_period", 1, 55);
  reduce_period = time("dcqcn.reduce_period", 4, 50);
  increase_period = time("dcqcn.increase_period", 300, 55);
  increase_bytes = Bytes{std::llround(number("dcqcn.increase_bytes", 32'767 * 64, 10e6))};
  stages = static_cast<std::uint32_t>(std::lround(number("dcqcn.stages", 1, 5)));
  additive = rate("dcqcn.additive", 5, 40);
  hyper = rate("dcqcn.hyper", 50, 40);
  min_rate = rate("dcqcn.min_rate", 1, 40);
  alpha_on_cnp = paper;
  keeps_target = !paper;
}

DcqcnRate::DcqcnRate(const DcqcnSettings& settings, Bandwidth line)
    : settings_{&settings},
      line_{line.as_bytes_per_s()},
      rate_{line.as_bytes_per_s()},
      target_{line.as_bytes_per_s()} {}

Bandwidth DcqcnRate::rate(Time now) {
  advance(now);
  return Bandwidth::bytes_per_s(rate_);
}

void DcqcnRate::on_cnp(Time now) {
  const DcqcnSettings& s = *settings_;
  if (!is_limited_) {
    is_limited_ = true;
    alpha_ = s.alpha_on_cnp ? 1 : 1023.0 / 1024;
    alpha_since_ = now;
    has_increased_ = true;
  } else {
    advance(now);
    advance_alpha(now);
    cnp_in_period_ = true;
    if (now - reduced_ < s.reduce_period) return;
  }
  if (has_increased_ || !s.keeps_target) target_ = rate_;
  has_increased_ = false;
  rate_ = std::max(rate_ * std::max(1 - alpha_ / 2, 0.5), std::min(s.min_rate, line_));
  if (s.alpha_on_cnp) {
    alpha_ = (1 - s.gain) * alpha_ + s.gain;
    alpha_since_ = now;
    cnp_in_period_ = false;
  } else {
    cnp_in_period_ = true;
  }
  reduced_ = now;
  timer_since_ = now;
  bytes_ = 0;
  timer_stages_ = 0;
  byte_stages_ = 0;
}

void DcqcnRate::on_sent(Time now, Bytes bytes) {
  if (!is_limited_) return;
  advance(now);
  bytes_ += bytes.count();
  while (is_limited_ && bytes_ >= settings_->increase_bytes.count()) {
    bytes_ -= settings_->increase_bytes.count();
    ++byte_stages_;
    increase();
  }
}

/// The timer's stages until now.
void DcqcnRate::advance(Time now) {
  while (is_limited_ && now - timer_since_ >= settings_->increase_period) {
    timer_since_ = timer_since_ + settings_->increase_period;
    ++timer_stages_;
    increase();
  }
}

/// The periods that ended by now: the first may have had a CNP.
void DcqcnRate::advance_alpha(Time now) {
  const DcqcnSettings& s = *settings_;
  std::int64_t periods = (now - alpha_since_).count_ps() / s.alpha_period.count_ps();
  if (periods == 0) return;
  alpha_since_ = alpha_since_ + s.alpha_period * periods;
  if (cnp_in_period_ && !s.alpha_on_cnp) {
    alpha_ = (1 - s.gain) * alpha_ + s.gain;
    --periods;
  }
  cnp_in_period_ = false;
  alpha_ *= power(1 - s.gain, periods);
}

/// One stage more, by time or by bytes.
void DcqcnRate::increase() {
  const DcqcnSettings& s = *settings_;
  const std::uint32_t most = std::max(timer_stages_, byte_stages_);
  const std::uint32_t least = std::min(timer_stages_, byte_stages_);
  if (least > s.stages) {
    target_ += s.hyper * (least - s.stages);
  } else if (most >= s.stages) {
    target_ += s.additive;
  }
  target_ = std::min(target_, line_);
  rate_ = (rate_ + target_) / 2;
  has_increased_ = true;
  // Within a thousandth of the line the limit is lifted: the packets' spacing is the same.
  if (rate_ > line_ * 0.999) {
    rate_ = line_;
    target_ = line_;
    is_limited_ = false;
  }
}

}  // namespace weft
