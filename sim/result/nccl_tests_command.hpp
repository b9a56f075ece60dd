#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "sim/result/log_text.hpp"

namespace weft {

/// What the lines above a table of nccl-tests name and state of the command that printed it. Only
/// what a shell would run states something: a launcher's program, or one with its folder, behind a
/// prompt or a variable; a name in a sentence does not.
struct TestCommand {
  std::set<std::string> programs{};  ///< "./build/all_reduce_perf"
  // Of the last one:
  std::optional<bool> graph{};               ///< CUDA graphs (-G)
  std::optional<std::int64_t> aggregated{};  ///< operations a launch (-m)
  bool is_blocking{false};                   ///< -z
  std::int64_t ranks{0};                     ///< processes x threads x GPUs; 0: it does not say
  std::int64_t hosts{0};                     ///< likewise
  std::map<std::string, std::string> variables{};  ///< NCCL's, but what it logs
};

/// Collects it line by line; a command may go on in the next line, behind '\'.
class TestCommandReader {
 public:
  void read(const Words& words);
  /// What was read, and begins anew.
  TestCommand take();

 private:
  void read_command(const Words& words);

  TestCommand command_;
  Words begun_;
};

}  // namespace weft
