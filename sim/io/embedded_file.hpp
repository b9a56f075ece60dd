#pragma once

#include <string>

namespace weft {

/// A file as built into the program (embed.cmake).
struct EmbeddedFile {
  std::string file;  ///< its name in the project: "models/params/h100-sxm.yaml"
  std::string text;
};

}  // namespace weft
