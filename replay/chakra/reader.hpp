#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/operation.hpp"
#include "sim/base/units.hpp"

namespace weft {

/// A node of a Chakra execution trace, as far as weft takes it.
struct ChakraNode {
  enum class Kind : std::uint8_t {
    kNothing,  ///< only joins others: metadata, or computes for no time
    kCompute,  ///< memory operations too
    kCollective,
    kSend,
    kReceive
  };
  std::uint64_t id{0};
  Kind kind{Kind::kNothing};
  bool on_host{false};                ///< is_cpu_op
  std::uint64_t start_us{0};          ///< when it began as it was recorded
  Duration time;                      ///< of computing
  std::vector<std::uint64_t> before;  ///< ids of nodes that must have ended, ascending
  // Of communication:
  Op op{Op::kAllReduce};
  Bytes bytes;        ///< comm_size: what a rank puts in
  std::string group;  ///< pg_name; "": all ranks
  std::uint32_t peer{0};
  std::int64_t tag{0};
};

/// One rank's trace. Ids are unique, `before` names nodes of the trace.
struct ChakraTrace {
  std::string file;
  std::string version;  ///< of the schema, as the file says
  std::vector<ChakraNode> nodes;
};

/// Reads one rank's execution trace (.et): messages with their lengths before them, GlobalMetadata
/// and then Nodes. Throws InputError with file and node: what is no such file; more than 2 million
/// nodes, 16 MiB a node or 1 GiB; dependencies on nodes that are not there; collectives that weft
/// does not run; computing without a duration; involved_dim that leaves dimensions out.
ChakraTrace read_chakra(const std::string& file);
/// The same from the file's bytes; `file` is the name that messages use.
ChakraTrace parse_chakra(std::string_view bytes, const std::string& file);

}  // namespace weft
