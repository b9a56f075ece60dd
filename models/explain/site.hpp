#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/cases/machine_case.hpp"

namespace weft {

/// A healthy machine as the catalogue looks at it: its devices and their resolved parameters.
class Site {
 public:
  /// Both must outlive it. Throws InputError: a setting or a part that is none.
  Site(const MachineCase& healthy, const CaseContext& context);
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  using Devices = std::vector<const DeviceSpec*>;
  const MachineCase& healthy() const { return *healthy_; }
  const TopologySpec& spec() const { return spec_; }
  std::uint32_t nodes() const { return nodes_; }
  NcclVersion version() const { return version_; }

  const Devices& cpus() const { return cpus_; }
  const Devices& gpus() const { return gpus_; }
  const Devices& switches() const { return switches_; }
  /// On a network; none on a single node, where no data crosses them.
  const Devices& nics() const { return nics_; }
  const DeviceSpec* device(std::string_view name) const;
  /// The CPU above.
  const DeviceSpec* root(const DeviceSpec& device) const;
  bool is_below_switch(const DeviceSpec& device) const;

  /// A parameter as the machine has it: the user's, the topology's, its part's or the default.
  double number(const DeviceSpec& device, std::string_view parameter) const;
  /// Of none: by full key.
  double number(std::string_view key) const;
  /// With its unit.
  std::string text(std::string_view key, double number) const;

  /// The first of each kind of place in the machine: devices that only their names tell apart.
  /// One behind each, with the others' names.
  struct Alike {
    const DeviceSpec* first;
    std::vector<std::string> names;  ///< of all, the first's among them
  };
  std::vector<Alike> alike(const Devices& devices) const;

 private:
  std::string place_of(const DeviceSpec& device) const;

  const MachineCase* healthy_;
  const CaseContext* context_;
  std::uint32_t nodes_;
  NcclVersion version_;
  TopologySpec spec_;
  Params params_;
  Devices cpus_;
  Devices gpus_;
  Devices switches_;
  Devices nics_;
};

}  // namespace weft
