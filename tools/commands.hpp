#pragma once

namespace weft {

class CommandLine;

/// Each adds one subcommand to the program; its callback does the work and throws InputError or
/// ExpectationMissed. One file a subcommand: cmd_<name>.cpp.
void add_run_command(CommandLine& line);
void add_step_command(CommandLine& line);
void add_traffic_command(CommandLine& line);
void add_sweep_command(CommandLine& line);
void add_sensitivity_command(CommandLine& line);
void add_compare_command(CommandLine& line);
void add_calibrate_command(CommandLine& line);
void add_diff_command(CommandLine& line);
void add_report_command(CommandLine& line);
void add_check_command(CommandLine& line);
void add_show_command(CommandLine& line);
void add_import_command(CommandLine& line);
void add_doctor_command(CommandLine& line);
void add_expect_command(CommandLine& line);
void add_explain_command(CommandLine& line);
void add_nccl_command(CommandLine& line);
void add_perftest_command(CommandLine& line);
void add_copies_command(CommandLine& line);
void add_record_command(CommandLine& line);
void add_replay_command(CommandLine& line);
void add_trace_command(CommandLine& line);
void add_list_params_command(CommandLine& line);

/// Hidden: the pages and completions that are made from the program's own declarations. After all
/// others; `line` must outlive the parsing.
void add_docs_command(CommandLine& line);

}  // namespace weft
