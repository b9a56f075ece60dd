#pragma once

#include <cstddef>
#include <string>

namespace weft::record {

// What `weft record` hands to the library in the program that is recorded.
inline constexpr const char* kFileVariable = "WEFT_RECORD_FILE";
inline constexpr const char* kBufferVariable = "WEFT_RECORD_BUFFER";      ///< bytes
inline constexpr const char* kSaltVariable = "WEFT_RECORD_SALT";          ///< text
inline constexpr const char* kKeepVariable = "WEFT_RECORD_KEEP_NAMES";    ///< "1"
inline constexpr const char* kTopologyVariable = "WEFT_RECORD_TOPOLOGY";  ///< a file's name

// At 4 MiB a thread may post and poll 20 million times a second between two looks of the writer.
inline constexpr std::size_t kDefaultBuffer = 4U << 20;
inline constexpr std::size_t kLeastBuffer = 256U << 10;
inline constexpr std::size_t kMostBuffer = 1U << 30;

struct Settings {
  std::string file{"run.weft"};  ///< where that exists, or a second process asks: with its pid
  std::size_t buffer_bytes{kDefaultBuffer};  ///< of each thread
  std::string salt;                          ///< "": a random one
  bool keep_names{false};
  std::string topology;  ///< the text, not the file's name
};

/// From the environment; what is not set, or can't be read, has its default.
Settings settings_of_environment();

}  // namespace weft::record
