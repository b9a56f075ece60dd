#pragma once

#include <string>
#include <vector>

#include "replay/calibrate/calibrate.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// What a calibration was made with, for its report.
struct CalibrationFacts {
  std::string machine;                   ///< the topology's file
  std::string machine_digest;            ///< FNV-1a of its bytes
  std::string date;                      ///< "2026-11-22"
  std::string holdout;                   ///< where the rows held out are from, in words
  std::vector<std::string> set;          ///< what the user set beside, "KEY=VALUE"
  std::vector<std::string> env;          ///< "NCCL_NVLS_ENABLE=0"
  std::string machine_content_digest{};  ///< TopologySpec::content_digest
  std::string nccl_version{};            ///< of all rows of NCCL, "2.27.3"; "": no or several
};

/// What is to be said of a fitted value: "at a bound of its range"; "" if nothing.
std::string remark_on(const FittedParam& param, const Calibration& calibration);

/// For people: parameters, classes before and after, totals. Lines that are neither parameter nor
/// class begin with '#'.
std::string calibration_text(const Calibration& calibration, const CalibrationFacts& facts);

/// "schema": "weft.calibrate/1".
Json calibration_json(const Calibration& calibration, const CalibrationFacts& facts);
/// Every object of that JSON with its keys.
std::vector<FormatSection> calibration_format();

/// The file that --params reads (models/collective/parameter_set.hpp).
std::string parameter_file(const Calibration& calibration, const CalibrationFacts& facts);

}  // namespace weft
