#pragma once

#include <optional>

#include "models/pcie/dma_engine.hpp"
#include "models/pcie/domain.hpp"
#include "models/pcie/memory.hpp"

namespace weft {

/// An endpoint of the PCIe tree: its DMA engines' requests go out, completions come back to them,
/// and peers' requests go to its memory.
class PcieDevice final : public PacketEndpoint {
 public:
  PcieDevice(PcieDomain& domain, const PcieMemory::Settings& memory)
      : domain_{domain}, memory_{domain, memory} {}

  const PcieMemory& memory() const { return memory_; }
  PcieMemory& memory() { return memory_; }

  void on_packet(Packet& tlp) override {
    if (PcieDomain::kind(tlp) == TlpKind::kCompletion) {
      domain_.transaction(tlp.flow).engine->on_completion(tlp);
    } else {
      memory_.take(tlp);
    }
  }
  void on_departure(const Packet& tlp, PacketLinkId /*link*/) override {
    if (tlp.attributes != pcie_attribute::kOfEngine) return;
    domain_.transaction(tlp.flow).engine->on_departure(tlp);
  }

 private:
  PcieDomain& domain_;
  PcieMemory memory_;
};

}  // namespace weft
