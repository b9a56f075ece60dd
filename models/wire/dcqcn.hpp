#pragma once

#include <array>
#include <cstdint>

#include "sim/base/params.hpp"
#include "sim/base/units.hpp"

namespace weft {

/// Parameters of DCQCN. A number of 0 (all but the switches') means: as `dcqcn.defaults` says.
inline constexpr std::array kDcqcnParams{
    ParamSpec{
        "dcqcn.defaults", Unit::kChoice, 0, 0, 1, Origin::kPublished,
        "NVIDIA DCQCN CC parameters (DOCA 3.4), in excerpts; Zhu et al., SIGCOMM 2015, from memory",
        "whose values the parameters below take at 0", "firmware paper"},
    ParamSpec{"dcqcn.ecn_min", Unit::kNanoseconds, 1000, 0, 1e9, Origin::kAssumed,
              "Zhu et al., SIGCOMM 2015 (from memory): 5 KB at 40 Gb/s, scaled with the rate",
              "switches mark no packet that meets a queue shorter than this line time"},
    ParamSpec{"dcqcn.ecn_max", Unit::kNanoseconds, 40'000, 0, 1e9, Origin::kAssumed,
              "Zhu et al., SIGCOMM 2015 (from memory): 200 KB at 40 Gb/s, scaled with the rate",
              "and every packet that meets one longer than this"},
    ParamSpec{"dcqcn.ecn_chance", Unit::kFraction, 0.01, 0, 1, Origin::kAssumed,
              "Zhu et al., SIGCOMM 2015 (from memory): 1 %",
              "share marked just below the longer line time"},
    ParamSpec{"dcqcn.cnp_interval", Unit::kNanoseconds, 0, 0, 1e9, Origin::kPublished,
              "firmware (mlxconfig MIN_TIME_BETWEEN_CNPS) 4 us; paper, from memory, 50 us",
              "least time between two CNPs of a queue pair"},
    ParamSpec{"dcqcn.g", Unit::kFraction, 0, 0, 1, Origin::kPublished,
              "firmware (mlxconfig DCE_TCP_G 1019) 1 - 1019/1024; paper, from memory, 1/256",
              "gain of the congestion estimate alpha"},
    ParamSpec{"dcqcn.alpha_period", Unit::kNanoseconds, 0, 0, 1e9, Origin::kPublished,
              "firmware (mlxconfig DCE_TCP_RTT) 1 us; paper, from memory, 55 us",
              "alpha decays each such time without a CNP"},
    ParamSpec{"dcqcn.reduce_period", Unit::kNanoseconds, 0, 0, 1e9, Origin::kPublished,
              "firmware (mlxconfig RATE_REDUCE_MONITOR_PERIOD) 4 us; paper, from memory, 50 us",
              "least time between two cuts of the rate"},
    ParamSpec{"dcqcn.increase_period", Unit::kNanoseconds, 0, 0, 1e9, Origin::kPublished,
              "firmware (mlxconfig RPG_TIME_RESET) 300 us; paper, from memory, 55 us",
              "time of one stage of increase"},
    ParamSpec{"dcqcn.increase_bytes", Unit::kBytes, 0, 0, 1e12, Origin::kPublished,
              "firmware (mlxconfig RPG_BYTE_RESET) 32767 x 64 B; paper, from memory, 10 MB",
              "bytes of one stage of increase"},
    ParamSpec{"dcqcn.stages", Unit::kCount, 0, 0, 1000, Origin::kPublished,
              "firmware (mlxconfig RPG_THRESHOLD) 1; paper, from memory, 5",
              "stages of fast recovery"},
    ParamSpec{"dcqcn.additive", Unit::kGigabytesPerS, 0, 0, 100, Origin::kPublished,
              "firmware (mlxconfig RPG_AI_RATE) 5 Mb/s; paper, from memory, 40 Mb/s",
              "step of the target rate in additive increase"},
    ParamSpec{"dcqcn.hyper", Unit::kGigabytesPerS, 0, 0, 100, Origin::kPublished,
              "firmware (mlxconfig RPG_HAI_RATE) 50 Mb/s; paper: as additive",
              "and in hyper increase"},
    ParamSpec{"dcqcn.min_rate", Unit::kGigabytesPerS, 0, 0, 100, Origin::kPublished,
              "firmware (mlxconfig RPG_MIN_RATE) 1 Mb/s; paper, from memory, 40 Mb/s",
              "least rate of a queue pair"},
};
static_assert(every_param_is_sourced(kDcqcnParams));

struct DcqcnSettings {
  explicit DcqcnSettings(const Params& params);

  Duration ecn_min;
  Duration ecn_max;
  double ecn_chance;
  Duration cnp_interval;
  double gain;
  Duration alpha_period;
  Duration reduce_period;
  Duration increase_period;
  Bytes increase_bytes;
  std::uint32_t stages;
  double additive;    ///< bytes/s
  double hyper;       ///< bytes/s
  double min_rate;    ///< bytes/s
  bool alpha_on_cnp;  ///< paper: each CNP moves alpha; firmware: each period that had one
  bool keeps_target;  ///< firmware: cuts in a row leave the target rate where the first put it
};

/// The rate of one queue pair under DCQCN (Zhu et al., "Congestion control for large-scale RDMA
/// deployments", SIGCOMM 2015): the reaction point.
///
/// A CNP cuts the rate: target = rate, rate x (1 - alpha / 2), at most once a reduce period, never
/// by more than half. Then a timer and a byte counter each count stages. In each stage rate goes
/// half the way to the target; in the first `stages` of both (fast recovery) the target stays, then
/// it grows by the additive step, and once both are past by the hyper step times the stages past.
///
/// Nothing happens between calls: what the time would have brought is brought by the next one.
class DcqcnRate {
 public:
  DcqcnRate(const DcqcnSettings& settings, Bandwidth line);

  void on_cnp(Time now);
  void on_sent(Time now, Bytes bytes);
  /// The rate now.
  Bandwidth rate(Time now);
  /// At line rate no timer runs.
  bool is_limited() const { return is_limited_; }
  /// When the rate grows next by itself. Precondition: is_limited().
  Time next_increase() const { return timer_since_ + settings_->increase_period; }
  double alpha() const { return alpha_; }

 private:
  void advance(Time now);
  void advance_alpha(Time now);
  void increase();

  const DcqcnSettings* settings_;
  double line_;
  double rate_;
  double target_;
  double alpha_{1};
  bool is_limited_{false};
  bool has_increased_{true};  ///< since the last cut
  bool cnp_in_period_{false};
  Time alpha_since_{};
  Time reduced_{};
  Time timer_since_{};
  std::int64_t bytes_{0};  ///< since the last stage by bytes
  std::uint32_t timer_stages_{0};
  std::uint32_t byte_stages_{0};
};

}  // namespace weft
