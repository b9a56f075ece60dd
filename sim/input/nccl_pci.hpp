#pragma once

#include <optional>
#include <string>

#include "sim/input/xml_text.hpp"

namespace weft {

/// What a PCI function is by its class code.
enum class PciKind { kUnknown, kBridge, kGpu, kNic };

/// As NCCL and RCCL tell them: base class 0x03 (display) or 0x12 (accelerator) is a GPU, 0x02 a
/// NIC (0x0200 Ethernet, 0x0207 InfiniBand), 0x0604 a bridge; a function without a class is
/// unknown.
PciKind pci_kind(const XmlText& xml, pugi::xml_node pci);
/// 0x0207 is InfiniBand, any other NIC Ethernet.
bool is_infiniband(const XmlText& xml, pugi::xml_node pci);
/// Whether a function is a GPU that computes: not the VGA of a server's management controller.
bool is_compute_gpu(const XmlText& xml, pugi::xml_node pci);

/// "32.0 GT/s PCIe" is generation 5; nullopt if the text names no rate that PCIe has.
std::optional<int> pcie_generation(const std::string& link_speed);
/// The lanes of `link_width`; nullopt where the file does not know them: 0 and nothing, and the 63
/// and 255 that Linux gives for functions without a link. Fails at the element if no number.
std::optional<int> pcie_lanes(const XmlText& xml, pugi::xml_node pci);

/// The domain, bus, device and function of "0000:18:00.0" as one number, in which NCCL compares bus
/// ids too: its hexadecimal digits.
std::string bus_digits(const std::string& bus_id);
/// Whether two bus ids are functions of one device: the same but for the function.
bool same_pci_device(const std::string& a, const std::string& b);

}  // namespace weft
