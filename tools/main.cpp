#include <exception>
#include <iostream>
#include <string_view>

#include "sim/base/error.hpp"
#include "sim/base/stop.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

namespace {

using weft::ExitCode;

int report(std::string_view kind, const std::exception& e, ExitCode code) {
  std::cerr << kind << ": " << weft::one_line(e.what()) << '\n';
  return static_cast<int>(code);
}

int run(int argc, char** argv) {
  weft::CommandLine line;
  weft::add_run_command(line);
  weft::add_step_command(line);
  weft::add_traffic_command(line);
  weft::add_sweep_command(line);
  weft::add_sensitivity_command(line);
  weft::add_compare_command(line);
  weft::add_calibrate_command(line);
  weft::add_diff_command(line);
  weft::add_report_command(line);
  weft::add_import_command(line);
  weft::add_doctor_command(line);
  weft::add_expect_command(line);
  weft::add_explain_command(line);
  weft::add_show_command(line);
  weft::add_check_command(line);
  weft::add_nccl_command(line);
  weft::add_perftest_command(line);
  weft::add_copies_command(line);
  weft::add_record_command(line);
  weft::add_replay_command(line);
  weft::add_trace_command(line);
  weft::add_list_params_command(line);
  weft::add_docs_command(line);
  line.parse(argc, argv);
  // A full disk shows when the last of it is written.
  if (!std::cout.flush()) throw weft::InputError("standard output: cannot be written");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const weft::InputError& e) {
    return report("error", e, ExitCode::kInput);
  } catch (const weft::ExpectationMissed& e) {
    return report("expectation missed", e, ExitCode::kExpectation);
  } catch (const weft::CalibrationRefused& e) {
    return report("calibration refused", e, ExitCode::kRefused);
  } catch (const weft::FaultFound& e) {
    return report("unhealthy", e, ExitCode::kFault);
  } catch (const weft::Stopped& e) {
    return report("stopped", e, ExitCode::kStopped);
  } catch (const std::exception& e) {
    return report("internal error (please report)", e, ExitCode::kBug);
  }
}
