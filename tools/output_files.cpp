#include "tools/output_files.hpp"

#include <filesystem>
#include <system_error>

#include "sim/base/error.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// Whether both paths lead to one file that is there; false of what is no path at all.
bool lead_to_one(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

/// Whether both are written to one place, which may hold no file yet.
bool are_one_place(const fs::path& a, const fs::path& b) {
  return a == b || lead_to_one(a, b) ||
         (a.filename() == b.filename() && lead_to_one(folder_of(a), folder_of(b)));
}

void check_differ(const GivenFile& one, const GivenFile& other) {
  if (one.value.empty() || !are_one_place(one.value, other.value)) return;
  const bool is_stdout = one.value == "-";
  throw InputError(one.name + " and " + other.name + " cannot both go to " +
                   (is_stdout ? "standard output" : one.value) +
                   (one.value == other.value ? "" : ", which is " + other.value));
}

}  // namespace

void Outputs::keep(const std::string& file, const std::string& named_by) const {
  for (const GivenFile& output : files_) {
    std::error_code ignored;
    if (output.value == "-" || !fs::is_regular_file(output.value, ignored)) continue;
    if (!lead_to_one(output.value, file)) continue;
    throw InputError(output.name + " " + output.value + ": would overwrite " + file + ", which " +
                     named_by + " names; write to another file");
  }
}

void check_outputs(std::span<const GivenFile> outputs, std::span<const GivenFile> others) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (const GivenFile& later : outputs.subspan(i + 1)) check_differ(outputs[i], later);
  }
  const Outputs written({outputs.begin(), outputs.end()});
  for (const GivenFile& other : others) {
    written.keep(other.value, other.name);
    const std::size_t equals = other.value.find('=');
    if (equals != std::string::npos) written.keep(other.value.substr(equals + 1), other.name);
  }
}

}  // namespace weft
