#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input/evidence/fact.hpp"
#include "sim/io/evidence_kind.hpp"
#include "sim/io/tool_text.hpp"

namespace weft {

inline constexpr std::size_t kMostEvidenceLineBytes = kMostToolLineBytes;

/// A line of evidence without what terminals and collectors put around it.
struct EvidenceLine {
  std::string_view text;
  int number{0};  ///< in the file
};

/// The output of one tool on one host, as it stands in a file.
struct EvidenceSection {
  EvidenceKind kind{};
  std::string file;
  std::string host;
  std::string argument;  ///< what the tool was asked of, where the file says so: "mlx5_0"
  std::vector<EvidenceLine> lines;

  Place place(const EvidenceLine& line) const { return {file, line.number, 0}; }
  /// A fact at a line.
  Fact fact(const EvidenceLine& line, std::string subject, std::string_view what,
            std::string value) const {
    return {host, std::move(subject), std::string(what), std::move(value), place(line)};
  }
};

/// A file's text as sections: what its lines begin decides of which kind they are, so several
/// tools' output may follow one another, of several hosts too. Names in what collectors put before
/// lines (ToolText), in pdsh's dshbak heads and in tail's `==> name <==`, but of paths,
/// are hosts. What stands before the first line that begins anything is in no section.
class EvidenceText {
 public:
  /// `host` where the file itself names none. Throws InputError: not text (binary, compressed,
  /// UTF-16), a line too long, too many lines.
  EvidenceText(std::string_view text, const std::string& file, const std::string& host);
  EvidenceText(const EvidenceText&) = delete;
  EvidenceText& operator=(const EvidenceText&) = delete;

  const std::vector<EvidenceSection>& sections() const { return sections_; }
  /// The text without terminal codes, for readers of whole documents.
  const std::string& clean() const { return read_.clean(); }

 private:
  ToolText read_;
  std::vector<EvidenceSection> sections_;
};

}  // namespace weft
