#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/cases/machine_case.hpp"
#include "models/doctor/finding.hpp"
#include "sim/input/evidence/machine.hpp"

namespace weft {

/// One host, as its evidence shows it.
class Patient {
 public:
  /// `evidence` is of one host, or of several that are compared; it must outlive this. `gpu`: the
  /// GPUs' part, where it is not as the evidence says. `all`: what is said of all hosts; nullptr:
  /// `evidence`. Throws InputError where no evidence names a GPU.
  Patient(const Evidence& evidence, const ParamCatalog& catalog, const PartLibrary& parts,
          std::optional<std::uint32_t> nodes, const std::string& gpu = {},
          const Facts* all = nullptr);

  Patient(const Patient&) = delete;
  Patient& operator=(const Patient&) = delete;

  /// Whether a tool's output of this host was given, or one that names no host.
  bool has_read(EvidenceKind kind) const;
  /// Whether any evidence would show a NIC.
  bool lists_nics() const;
  /// Whether NCCL_IB_HCA takes it, of any rank; nullopt where it is not set.
  std::optional<bool> is_taken_by_hca(const DeviceSpec& nic) const;
  /// Whether a port is up on any host.
  bool is_up_somewhere(const DeviceSpec& nic) const;
  const HostView& view() const { return view_; }
  const ImportedMachine& imported() const { return imported_; }
  const TopologySpec& spec() const { return imported_.spec; }
  /// Whether the evidence says which NVLinks there are; else they are drawn as the GPUs' part has
  /// them.
  bool knows_nvlinks() const { return knows_nvlinks_; }
  const MachineCase& found() const { return found_; }
  const CaseContext& context() const { return context_; }
  /// nullptr where weft cannot follow NCCL's decisions here; why_not() says why.
  const CaseMachine* decided() const { return decided_.get(); }
  const std::string& why_not() const { return why_not_; }

  std::vector<const DeviceSpec*> of(DeviceKind kind) const;
  /// NICs that are on the network.
  const std::vector<const DeviceSpec*>& nics() const { return nics_; }
  const DeviceSpec* device(std::string_view name) const;
  /// The device and what is above it, up to the CPU and with it.
  std::vector<const DeviceSpec*> chain(const DeviceSpec& device) const;
  /// GPUs, NICs on the network and what is above them: the parts that data crosses.
  std::vector<const DeviceSpec*> in_use() const;
  /// Whether a switch joins it with a GPU: PIX or PXB in `nvidia-smi topo -m`.
  bool is_beside_gpu(const DeviceSpec& nic) const;
  /// Whether two NICs are of one product and link layer.
  bool are_one_card(const DeviceSpec& a, const DeviceSpec& b) const;
  /// And both beside GPUs or neither: others are for storage or management.
  bool are_alike(const DeviceSpec& a, const DeviceSpec& b) const;
  /// What is said of a device by its name, its function or its name in topo -m.
  const Fact* said(const DeviceSpec& device, std::string_view what) const;
  bool is_virtual_function(const DeviceSpec& device) const;

 private:
  const Evidence* evidence_;
  const Facts* all_;
  ImportedMachine imported_;
  bool knows_nvlinks_;
  HostView view_;
  CaseContext context_;
  MachineCase found_;
  std::vector<const DeviceSpec*> nics_;
  std::unique_ptr<CaseMachine> decided_;
  std::string why_not_;
};

/// Of a machine without NICs on the network: the check does not apply, or nobody looked for NICs.
Outcome without_nics(const Patient& patient);
/// Whether peer traffic that goes by the root complex goes by one that is not known, and so has no
/// limits in the model. Where it cannot go at all, that has its price.
bool crosses_unknown_root(const Patient& patient);
/// Then a finding that sends it there has no price, and counts.
void leave_unpriced_by_root(Finding& finding);
/// A value that the evidence gives; nullptr if it gives none.
const ParamValue* measured(const DeviceSpec& device, std::string_view parameter);
/// "gpu0: trained_width 8" and its place.
Quote quote_of(const DeviceSpec& device, std::string_view parameter, const ParamCatalog& catalog);
Quote quote_of(const Fact& fact);
std::string names_of(const std::vector<const DeviceSpec*>& devices);
/// "runs", or "run" of several.
std::string_view by_count(std::size_t count, std::string_view one, std::string_view several);

}  // namespace weft
