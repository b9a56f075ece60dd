#pragma once

namespace CLI {
class App;
}

namespace weft {

/// Each adds one subcommand to the program; its callback does the work and throws InputError or
/// ExpectationMissed. One file a subcommand: cmd_<name>.cpp.
void add_run_command(CLI::App& app);
void add_check_command(CLI::App& app);
void add_show_command(CLI::App& app);
void add_list_params_command(CLI::App& app);

}  // namespace weft
