#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// A value of the command line that names a file, or may do so.
struct GivenFile {
  std::string name;  ///< of its argument or option: "measured", "--json"
  std::string value;
};

/// The files that a command was asked to write. Nothing that it reads may be among them.
class Outputs {
 public:
  Outputs() = default;
  explicit Outputs(std::vector<GivenFile> files) : files_{std::move(files)} {}

  /// Throws InputError if one would overwrite `file`, which `named_by` names ("--params",
  /// "s.yaml"), by whatever path and links. Devices and pipes overwrite nothing. Of what only a
  /// file that is read names (a scenario's topology), to be asked before anything runs.
  void keep(const std::string& file, const std::string& named_by) const;

 private:
  std::vector<GivenFile> files_;
};

/// Throws InputError if two outputs go to one file, or both to standard output ("-"); or if one
/// would overwrite a file that another value names, as it is or behind a KEY= (Outputs::keep).
void check_outputs(std::span<const GivenFile> outputs, std::span<const GivenFile> others);

}  // namespace weft
