#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

inline constexpr std::size_t kMostToolLines = 4'000'000;
inline constexpr std::size_t kMostToolLineBytes = 65'536;
inline constexpr std::int64_t kMostToolRanks = 1 << 24;  ///< of a run that a tool shows

/// A line of what a tool printed, without what terminals and collectors put around it.
struct ToolLine {
  std::string_view text;
  std::string_view host;  ///< that the collector's prefix names; else ""
  int number{0};          ///< in the file
};

/// A tool's output as the tool printed it. Taken away, with each line's number kept: the byte order
/// mark, colours and other terminal codes, carriage returns; what stands before nearly every line:
/// quotes, kubectl's and mpirun's brackets, docker compose's, stern's and pdsh's names, srun's and
/// Hydra's ranks, CloudWatch's bars, times; blanks that all lines begin with.
class ToolText {
 public:
  /// `file` is the name that messages use. Throws InputError: a line too long, too many lines.
  ToolText(std::string_view text, const std::string& file);
  ToolText(const ToolText&) = delete;
  ToolText& operator=(const ToolText&) = delete;

  const std::vector<ToolLine>& lines() const { return lines_; }
  /// The text without terminal codes, but with prefixes: for readers of whole documents.
  const std::string& clean() const { return clean_; }

 private:
  std::string clean_;
  std::vector<ToolLine> lines_;
};

/// The lines of ToolText as one text; a JSON object is left as it is. Throws InputError likewise.
std::string without_prefixes(std::string_view text, const std::string& file);

}  // namespace weft
