#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/input/evidence/fact.hpp"
#include "sim/input/evidence/text.hpp"

namespace weft {

/// One reader a kind of evidence; each passes over lines that say nothing it knows, and throws
/// InputError at a line that is damaged in a way that would make a fact wrong.

/// The matrix by name of device ("gpu0", "nic0" or the legend's "mlx5_0"), the GPUs' NUMA nodes.
/// Three layouts: tabs as nvidia-smi writes them, columns of blanks, cells between '|'. Cells "?"
/// are unknown.
void read_topo_matrix(const EvidenceSection& section, Facts& facts);
/// Functions with their links, ports, ACS, sizes; the tree by the bridges' buses.
void read_lspci(const EvidenceSection& section, Facts& facts);
void read_lspci_tree(const EvidenceSection& section, Facts& facts);
void read_nccl_log(const EvidenceSection& section, Facts& facts);
/// nccl-tests' list of devices, of all hosts. Old releases print a bus without its domain and
/// device, "[0x86]": that is a GPU's where no other rank of its host has the same.
class NcclTestsList {
 public:
  /// Whether the line was one of it.
  bool read(const EvidenceSection& section, const EvidenceLine& line);
  void add_to(Facts& facts) const;

 private:
  std::int64_t last_rank_{0};
  std::vector<std::pair<Fact, std::string>> devices_;  ///< their class, their product
  std::map<std::pair<std::string, std::string>, std::set<std::int64_t>> ranks_;  ///< of such buses
};
void read_nccl_tests_list(const EvidenceSection& section, Facts& facts);

/// A line of NCCL's graphs (NCCL_DEBUG_SUBSYS=GRAPH): its tree, its paths. Keeps the tree's
/// indentation from line to line.
class NcclGraphReader {
 public:
  /// Whether the message was one of them.
  bool read(const EvidenceSection& section, const EvidenceLine& line, std::string_view message,
            Facts& facts);

 private:
  struct Level {
    std::size_t indent;
    std::string subject;
  };
  void read_child(const EvidenceSection& section, const EvidenceLine& line, std::size_t indent,
                  std::string_view message, Facts& facts);

  std::string cpu_;
  std::vector<Level> above_;
};

void read_nvidia_smi(const EvidenceSection& section, Facts& facts);
void read_nvidia_smi_query(const EvidenceSection& section, Facts& facts);
void read_nvlink(const EvidenceSection& section, Facts& facts);

void read_ibstat(const EvidenceSection& section, Facts& facts);
void read_ibstatus(const EvidenceSection& section, Facts& facts);
void read_ibv_devinfo(const EvidenceSection& section, Facts& facts);
void read_rdma_link(const EvidenceSection& section, Facts& facts);
void read_ibdev2netdev(const EvidenceSection& section, Facts& facts);
void read_mlxlink(const EvidenceSection& section, Facts& facts);
void read_mst(const EvidenceSection& section, Facts& facts);

void read_ibnetdiscover(const EvidenceSection& section, Facts& facts);
void read_ibnetdiscover_ports(const EvidenceSection& section, Facts& facts);
void read_iblinkinfo(const EvidenceSection& section, Facts& facts);
void read_ibqueryerrors(const EvidenceSection& section, Facts& facts);
void read_perfquery(const EvidenceSection& section, Facts& facts);
void read_ethtool(const EvidenceSection& section, Facts& facts);

void read_dmesg(const EvidenceSection& section, Facts& facts);
void read_command_line(const EvidenceSection& section, Facts& facts);
void read_lsmod(const EvidenceSection& section, Facts& facts);
void read_lscpu(const EvidenceSection& section, Facts& facts);
void read_cpuinfo(const EvidenceSection& section, Facts& facts);
void read_driver_version(const EvidenceSection& section, Facts& facts);
void read_uname(const EvidenceSection& section, Facts& facts);
void read_modinfo(const EvidenceSection& section, Facts& facts);
void read_sysfs(const EvidenceSection& section, Facts& facts);
void read_rdma_topo(const EvidenceSection& section, Facts& facts);

/// Whole documents.
void read_hwloc(const std::string& text, const EvidenceSection& section, Facts& facts);
void read_nccl_xml_facts(const std::string& text, const EvidenceSection& section, Facts& facts);
void read_nvidia_smi_xml(const std::string& text, const EvidenceSection& section, Facts& facts);

/// Facts that several readers state alike.

/// A function's product as lspci names it, and the number that lspci -nn prints or the name stands
/// for.
void add_pci_product(const EvidenceSection& section, const EvidenceLine& line,
                     const std::string& bus_id, std::string_view text, Facts& facts);
/// The functions on the way of a /sys/devices path, each with its parent and root bus. Returns the
/// last, "" if there is none.
std::string add_sysfs_path(const EvidenceSection& section, const EvidenceLine& line,
                           std::string_view path, Facts& facts);
/// What a rate by lane makes a generation: "32GT/s", "32.0 GT/s PCIe" is "5"; "" if none.
std::string generation_of(std::string_view speed);
/// "400", "400 Gb/sec (4X NDR)", "25.0 Gb/sec (1X EDR)": the number; "" if it is none or not above
/// 0.
std::string gigabits_of(std::string_view text);
/// "256M", "128 GiB", "131072 MiB", "64KB" in bytes; "" if it is none.
std::string bytes_of(std::string_view text);

}  // namespace weft
