#include "sim/input/evidence/evidence.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/input/evidence/readers.hpp"
#include "sim/input/evidence/text.hpp"
#include "sim/io/file.hpp"
#include "sim/io/text_kind.hpp"

namespace weft {
namespace {

using SectionReader = void (*)(const EvidenceSection&, Facts&);
using DocumentReader = void (*)(const std::string&, const EvidenceSection&, Facts&);

/// `grep ACSCtl` names no device: nothing follows but that it is such.
void read_nothing(const EvidenceSection& section, Facts& facts) {
  facts.add(section.fact(section.lines.front(), "host", std::string(fact::kLog) + "ACS",
                         "lines without their devices"));
}

constexpr std::array<std::pair<EvidenceKind, SectionReader>, 29> kSectionReaders{{
    {EvidenceKind::kTopoMatrix, read_topo_matrix},
    {EvidenceKind::kLspci, read_lspci},
    {EvidenceKind::kLspciTree, read_lspci_tree},
    {EvidenceKind::kNcclLog, read_nccl_log},
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

[[noreturn]] void refuse(const std::string& text, const std::string& file) {
  refuse_other_kind(text, file, TextKind::kEvidence);
  std::vector<std::string> tools;
  for (const EvidenceKindText& kind : evidence_kinds()) tools.emplace_back(kind.tool);
  throw InputError(Place{file, 0, 0}, "is no output that weft knows; known: " +
                                          known_names(std::move(tools), evidence_kinds().size()));
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
                               why_unread(section) + ": passed over");
    }
  }
  if (!source.kinds.empty()) evidence.sources.push_back(std::move(source));
}

void parse_text(const std::string& text, const std::string& file, const std::string& host,
                Evidence& evidence) {
  const EvidenceText read(text, file, host);
  if (read.sections().empty()) refuse(text, file);
  const std::size_t before = evidence.sources.size();
  read_sections(read, file, evidence);
  if (evidence.sources.size() == before) {
    throw InputError(Place{file, 0, 0}, why_unread(read.sections().front()));
  }
}

/// A member is of a host by its first folder's name, or the archive's own.
std::string host_of(const std::string& member, const std::string& host) {
  const std::size_t begin = member.starts_with("./") ? 2 : 0;
  const std::size_t slash = member.find('/', begin);
  return !host.empty() || slash == std::string::npos ? host : member.substr(begin, slash - begin);
}

}  // namespace

void parse_evidence(const std::string& text, const std::string& file, const std::string& host,
                    Evidence& evidence) {
  if (!is_tar(text)) {
    parse_text(text, file, host, evidence);
    evidence.facts.name_mst_devices();
    return;
  }
  const std::size_t before = evidence.sources.size();
  for (const TarMember& member : tar_members(text, file)) {
    const std::string name = file + ":" + member.name;
    if (member.text.empty()) continue;
    std::optional<EvidenceText> read;
    try {
      read.emplace(member.text, name, host_of(member.name, host));
    } catch (const InputError& error) {  // no text: nothing that weft knows
      evidence.notes.push_back(std::string(error.what()) + ": passed over");
      continue;
    }
    read_sections(*read, name, evidence);
  }
  if (evidence.sources.size() == before) {
    throw InputError(Place{file, 0, 0}, "no file in this tar is output that weft knows");
  }
  evidence.facts.name_mst_devices();
}

Evidence read_evidence(const std::vector<std::string>& files) {
  Evidence evidence;
  for (const std::string& argument : files) {
    const std::size_t equals = argument.find('=');
    const bool named = equals != std::string::npos && equals > 0 && argument.find('/') > equals;
    const std::string file = named ? argument.substr(equals + 1) : argument;
    parse_evidence(read_text_file(file, kMostEvidenceBytes), file,
                   named ? argument.substr(0, equals) : "", evidence);
  }
  return evidence;
}

}  // namespace weft
