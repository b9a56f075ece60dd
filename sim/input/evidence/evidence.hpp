#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input/evidence/fact.hpp"
#include "sim/io/evidence_kind.hpp"

namespace weft {

/// What was read of one file.
struct EvidenceSource {
  std::string file;
  std::vector<EvidenceKind> kinds;  ///< in the file's order, each once
};

/// Evidence of one or several hosts, as read.
struct Evidence {
  Facts facts;
  std::vector<EvidenceSource> sources;
  std::map<std::string, std::set<EvidenceKind>> kinds;  ///< by host
  std::vector<std::string> notes;                       ///< what was not read, and why
};

/// The most bytes of one file, and of what a tar holds in all.
inline constexpr std::int64_t kMostEvidenceBytes = 64LL << 20;

/// "HOST=FILE" of a command line, or a file alone.
struct NamedFile {
  std::string host;
  std::string file;
};
NamedFile named_file(const std::string& argument);

/// Reads other tools' output; which, its content says (evidence_kind.hpp). Several may follow one
/// another in a file, and be of several hosts. A file may be a tar of such (weft-collect's), or a
/// folder, whose subfolders are hosts'.
/// "HOST=FILE" says whose a file is where it does not say itself. Of several files or members those
/// that are empty, no text, of a kind that another command reads, or of none that weft knows are
/// not read, and noted. Throws InputError: no such file, too large, damaged, or nothing is read.
Evidence read_evidence(const std::vector<std::string>& files);
/// One file's text, or tar, into `evidence`; `host` where it names none. Throws InputError
/// likewise.
void parse_evidence(const std::string& text, const std::string& file, const std::string& host,
                    Evidence& evidence);

/// A file in a tar.
struct TarMember {
  std::string name;
  std::string_view text;  ///< into the archive
};
bool is_tar(std::string_view text);
/// Its plain files, in order. Throws InputError: damaged or cut off, more than 4,096 members.
std::vector<TarMember> tar_members(std::string_view text, const std::string& file);

}  // namespace weft
