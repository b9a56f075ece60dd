#include "sim/input/evidence/evidence.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/input/evidence/readers.hpp"
#include "sim/input/evidence/text.hpp"
#include "sim/io/file.hpp"
#include "sim/io/text_kind.hpp"
#include "sim/io/utf8.hpp"

namespace weft {
namespace {

using SectionReader = void (*)(const EvidenceSection&, Facts&);
using DocumentReader = void (*)(const std::string&, const EvidenceSection&, Facts&);

/// `grep ACSCtl` names no device: nothing follows but that it is such.
void read_nothing(const EvidenceSection& section, Facts& facts) {
  facts.add(section.fact(section.lines.front(), "host", std::string(fact::kLog) + "ACS",
                         "lines without their devices"));
}

constexpr std::array<std::pair<EvidenceKind, SectionReader>, 32> kSectionReaders{{
    {EvidenceKind::kTopoMatrix, read_topo_matrix},
    {EvidenceKind::kLspci, read_lspci},
    {EvidenceKind::kLspciTree, read_lspci_tree},
    {EvidenceKind::kNcclLog, read_nccl_log},
    {EvidenceKind::kNcclTestsList, read_nccl_tests_list},
    {EvidenceKind::kNvidiaSmi, read_nvidia_smi},
    {EvidenceKind::kNvidiaSmiQuery, read_nvidia_smi_query},
    {EvidenceKind::kNvlink, read_nvlink},
    {EvidenceKind::kIbstat, read_ibstat},
    {EvidenceKind::kIbstatus, read_ibstatus},
    {EvidenceKind::kIbvDevinfo, read_ibv_devinfo},
    {EvidenceKind::kRdmaLink, read_rdma_link},
    {EvidenceKind::kMlxlink, read_mlxlink},
    {EvidenceKind::kMst, read_mst},
    {EvidenceKind::kIbdev2netdev, read_ibdev2netdev},
    {EvidenceKind::kIbnetdiscover, read_ibnetdiscover},
    {EvidenceKind::kIbnetdiscoverPorts, read_ibnetdiscover_ports},
    {EvidenceKind::kIblinkinfo, read_iblinkinfo},
    {EvidenceKind::kIbqueryerrors, read_ibqueryerrors},
    {EvidenceKind::kPerfquery, read_perfquery},
    {EvidenceKind::kEthtoolStatistics, read_ethtool},
    {EvidenceKind::kDmesg, read_dmesg},
    {EvidenceKind::kCommandLine, read_command_line},
    {EvidenceKind::kLsmod, read_lsmod},
    {EvidenceKind::kLscpu, read_lscpu},
    {EvidenceKind::kCpuinfo, read_cpuinfo},
    {EvidenceKind::kDriverVersion, read_driver_version},
    {EvidenceKind::kUname, read_uname},
    {EvidenceKind::kModinfo, read_modinfo},
    {EvidenceKind::kSysfs, read_sysfs},
    {EvidenceKind::kRdmaTopo, read_rdma_topo},
    {EvidenceKind::kAcsLines, read_nothing},
}};
constexpr std::array<std::pair<EvidenceKind, DocumentReader>, 3> kDocumentReaders{{
    {EvidenceKind::kHwloc, read_hwloc},
    {EvidenceKind::kNcclXml, read_nccl_xml_facts},
    {EvidenceKind::kNvidiaSmiXml, read_nvidia_smi_xml},
}};

template <class Table>
auto reader_of(const Table& table, EvidenceKind kind) -> decltype(table[0].second) {
  for (const auto& [known, reader] : table) {
    if (known == kind) return reader;
  }
  return nullptr;
}

/// Why nothing of a file is read.
struct Unread {
  std::string why;
  bool is_unknown{false};  ///< of no kind that weft knows
};

std::string known_tools() {
  std::vector<std::string> tools;
  for (const EvidenceKindText& kind : evidence_kinds()) tools.emplace_back(kind.tool);
  return known_names(std::move(tools), evidence_kinds().size());
}

/// What it is instead, as far as that can be seen.
Unread unknown(std::string_view text) {
  if (std::string other = other_kind(text, TextKind::kEvidence); !other.empty()) {
    return {std::move(other)};
  }
  constexpr std::size_t kMost = 40;
  constexpr std::string_view kBetween = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
  const std::string_view line = text.substr(0, text.find('\n'));
  const bool is_all = text.find_first_not_of(kBetween, line.size()) == std::string_view::npos;
  constexpr std::string_view kCommand = "# weft-collect: ";
  if (line.starts_with(kCommand) && is_all) {
    return {one_line(line.substr(kCommand.size())) + " printed nothing"};
  }
  return {"is no output that weft knows (it begins '" + one_line(utf8_excerpt(line, kMost)) + "')",
          true};
}

/// Why a section said nothing.
std::string why_unread(const EvidenceSection& section) {
  if (section.kind == EvidenceKind::kMlxlink && section.argument.empty()) {
    return "mlxlink does not say of which device this is; write the command on a line above it, "
           "such as 'mlxlink -d mlx5_0'";
  }
  return "looks like " + std::string(evidence_tool(section.kind)) +
         ", but says nothing that weft reads";
}

/// The source's kinds are those that said something.
void read_sections(const EvidenceText& read, const std::string& file, Evidence& evidence) {
  EvidenceSource source{file, {}};
  for (const EvidenceSection& section : read.sections()) {
    const std::size_t before = evidence.facts.times_said();
    const std::size_t first = evidence.facts.all().size();
    if (const SectionReader reader = reader_of(kSectionReaders, section.kind)) {
      reader(section, evidence.facts);
    } else {
      reader_of(kDocumentReaders, section.kind)(read.clean(), section, evidence.facts);
    }
    for (std::size_t i = first; i < evidence.facts.all().size(); ++i) {
      evidence.kinds[evidence.facts.all()[i].host].insert(section.kind);
    }
    const bool said = evidence.facts.times_said() > before;
    const bool listed =
        std::find(source.kinds.begin(), source.kinds.end(), section.kind) != source.kinds.end();
    if (said && !listed) source.kinds.push_back(section.kind);
    if (!said && section.kind == EvidenceKind::kMlxlink) {
      evidence.notes.push_back(section.place(section.lines.front()).text() + ": " +
                               why_unread(section) + ": not read");
    }
  }
  if (!source.kinds.empty()) evidence.sources.push_back(std::move(source));
}

/// Reads one text; what is told of why it cannot be read names its place.
std::optional<Unread> read_text(std::string_view text, const std::string& file,
                                const std::string& host, Evidence& evidence) {
  std::optional<EvidenceText> read;
  try {
    read.emplace(text, file, host);
  } catch (const InputError& error) {  // no text
    return Unread{error.what()};
  }
  const std::string place = Place{file, 0, 0}.text() + ": ";
  const std::size_t before = evidence.sources.size();
  read_sections(*read, file, evidence);
  if (evidence.sources.size() > before) return std::nullopt;
  if (read->sections().empty() || kind_of(read->clean()) == TextKind::kMeasured) {
    Unread out = unknown(read->clean());
    out.why = place + out.why;
    return out;
  }
  return Unread{place + why_unread(read->sections().front())};
}

/// A member is of a host by its first folder's name, or the archive's own.
std::string host_of(const std::string& member, const std::string& host) {
  const std::size_t begin = member.starts_with("./") ? 2 : 0;
  const std::size_t slash = member.find('/', begin);
  return !host.empty() || slash == std::string::npos ? host : member.substr(begin, slash - begin);
}

/// Notes what is not read beside what is.
void note_unread(const std::vector<Unread>& unread, Evidence& evidence) {
  for (const Unread& each : unread) evidence.notes.push_back(each.why + ": not read");
  const bool any_unknown =
      std::any_of(unread.begin(), unread.end(), [](const Unread& each) { return each.is_unknown; });
  std::string known = "of other tools' output weft knows: " + known_tools();
  const bool is_noted =
      std::find(evidence.notes.begin(), evidence.notes.end(), known) != evidence.notes.end();
  if (any_unknown && !is_noted) evidence.notes.push_back(std::move(known));
}

/// Of a tar's or folder's files: why none is read, or a note of those that are not.
std::optional<Unread> among(std::size_t files, const std::vector<Unread>& unread,
                            const std::string& none_is_read, Evidence& evidence) {
  if (unread.size() < files) {
    note_unread(unread, evidence);
    return std::nullopt;
  }
  if (unread.empty()) return Unread{none_is_read};
  return Unread{none_is_read + "; the first, " + unread.front().why, unread.front().is_unknown};
}

/// One file, or a tar's members, of which some may be unread.
std::optional<Unread> read_file(const std::string& text, const std::string& file,
                                const std::string& host, Evidence& evidence) {
  if (!is_tar(text)) return read_text(text, file, host, evidence);
  std::vector<Unread> unread;
  const std::vector<TarMember> members = tar_members(text, file);
  for (const TarMember& member : members) {
    std::optional<Unread> why =
        read_text(member.text, file + ":" + member.name, host_of(member.name, host), evidence);
    if (why) unread.push_back(std::move(*why));
  }
  return among(members.size(), unread, Place{file, 0, 0}.text() + ": nothing in this tar is read",
               evidence);
}

/// Plain files below a folder, by name, no deeper than hosts' folders of it; links to folders are
/// not followed.
std::vector<std::string> files_below(const std::string& folder) {
  namespace fs = std::filesystem;
  constexpr std::size_t kMost = 4096;  // as of a tar
  std::vector<std::string> out;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at.depth() > 0) at.disable_recursion_pending();
    if (!at->is_regular_file(error)) continue;
    out.push_back(at->path().lexically_relative(folder).string());
    if (out.size() > kMost) throw InputError(folder + ": more than 4096 files");
  }
  if (error) throw InputError(folder + ": cannot be listed: " + error.message());
  std::sort(out.begin(), out.end());
  return out;
}

/// A folder's files, as a tar's members: a subfolder is a host's.
std::optional<Unread> read_folder(const std::string& folder, const std::string& host,
                                  Evidence& evidence) {
  std::vector<Unread> unread;
  const std::vector<std::string> names = files_below(folder);
  std::int64_t left = kMostEvidenceBytes;
  for (const std::string& name : names) {
    const std::string file = (std::filesystem::path(folder) / name).string();
    const std::string text = read_text_file(file, left);
    left -= static_cast<std::int64_t>(text.size());
    std::optional<Unread> why = read_file(text, file, host_of(name, host), evidence);
    if (why) unread.push_back(std::move(*why));
  }
  return among(names.size(), unread, folder + ": nothing in this folder is read", evidence);
}

[[noreturn]] void refuse(const Unread& unread) {
  throw InputError(unread.why + (unread.is_unknown ? "; known: " + known_tools() : ""));
}

}  // namespace

void parse_evidence(const std::string& text, const std::string& file, const std::string& host,
                    Evidence& evidence) {
  if (const std::optional<Unread> unread = read_file(text, file, host, evidence)) refuse(*unread);
  evidence.facts.name_mst_devices();
}

NamedFile named_file(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  const bool has_host = equals != std::string::npos && equals > 0 && argument.find('/') > equals;
  if (!has_host) return {"", argument};
  return {argument.substr(0, equals), argument.substr(equals + 1)};
}

Evidence read_evidence(const std::vector<std::string>& files) {
  Evidence evidence;
  std::vector<Unread> unread;
  for (const std::string& argument : files) {
    const NamedFile named = named_file(argument);
    std::optional<Unread> why = is_folder(named.file)
                                    ? read_folder(named.file, named.host, evidence)
                                    : read_file(read_text_file(named.file, kMostEvidenceBytes),
                                                named.file, named.host, evidence);
    if (why) unread.push_back(std::move(*why));
  }
  if (unread.size() == files.size() && !unread.empty()) {
    Unread first = unread.front();
    if (files.size() > 1) {
      first.why =
          "none of the " + std::to_string(files.size()) + " files is read; the first, " + first.why;
    }
    refuse(first);
  }
  note_unread(unread, evidence);
  evidence.facts.name_mst_devices();
  return evidence;
}

}  // namespace weft
