#pragma once

#include <string>
#include <vector>

#include "sim/base/params.hpp"
#include "sim/input/evidence/evidence.hpp"
#include "sim/input/evidence/host_view.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// A machine as its evidence shows it.
struct ImportedMachine {
  TopologySpec spec;  ///< each value with its file and line as source; a device's place is a fact's
  std::vector<Conflict> conflicts;
  ComparedHosts hosts;
  std::string cpus_doubt;  ///< why it is not known which devices share a CPU; "" if it is
};

/// Merges facts into one topology: the PCIe tree of lspci, sysfs, hwloc or NCCL, else one that has
/// topo -m's classes; NVLinks; parts by PCI ids; settings. What had to be assumed stands in the
/// spec's notes, evidence that disagrees in `conflicts`; of values that disagree the first counts.
/// Throws InputError where no evidence names a GPU.
ImportedMachine import_machine(const Evidence& evidence, const ParamCatalog& catalog);

/// The hosts of which there is more than what nccl-tests lists of all that ran; of several of which
/// there is not the reference.
std::vector<std::string> hosts_with_more(const Evidence& evidence, const ComparedHosts& hosts);

/// One device of it, on the way.
struct FoundDevice {
  std::string name;
  std::string function;  ///< its bus id; "" if only a matrix names it
  std::string alias;     ///< as topo -m calls it, "gpu0", "nic3"; "" if it does not
  const Fact* said{nullptr};
};
/// GPUs by number and NICs of a host, with their names.
struct FoundDevices {
  std::vector<FoundDevice> gpus;
  std::vector<FoundDevice> nics;
  std::vector<std::string> notes;
};
FoundDevices find_devices(const HostView& view);
/// Evidence that says where functions hang: a parent or a root bus of a GPU.
bool has_tree(const HostView& view, const FoundDevices& found);

/// The tree above devices, by the bridges' ports. Adds CPUs and switches, and the devices' own
/// `upstream` and `host_bridge`, to `devices`, which holds GPUs and NICs with their bus ids.
void add_pci_tree(const HostView& view, std::vector<DeviceSpec>& devices,
                  std::vector<std::string>& notes);
/// A tree with a matrix' classes, for devices by the matrix' names. Conflicts where no tree has
/// them or lscpu counts fewer CPUs, notes where its NUMA nodes are of more or fewer CPUs. Returns
/// why it is not known which devices share a CPU; "" if it is.
std::string add_matrix_tree(const HostView& view, const FoundDevices& found,
                            std::vector<DeviceSpec>& devices, std::vector<Conflict>& conflicts,
                            std::vector<std::string>& notes);
/// NVLinks and NVSwitches; `found` and the spec's devices are of one machine.
void add_nvlinks(const HostView& view, const FoundDevices& found, TopologySpec& spec);
/// Parts and parameters of the devices, and of all.
void add_settings(const HostView& view, const FoundDevices& found, const ParamCatalog& catalog,
                  TopologySpec& spec);
/// The network that ibnetdiscover shows, where weft has one like it; else a note says why not.
void set_network_of(const Facts& facts, TopologySpec& spec);
/// Where the tree's classes are not those that topo -m and NCCL print.
void compare_paths(const HostView& view, const FoundDevices& found, const TopologySpec& spec,
                   std::vector<Conflict>& conflicts, std::vector<std::string>& notes);

/// The number of a NUMA node that a device is near to; "" if nothing says so.
std::string numa_of(const HostView& view, const std::string& function, const std::string& alias);

}  // namespace weft
