#pragma once

#include <regex>
#include <stdexcept>
#include <string>

#include "models/doctor/doctor.hpp"
#include "models/registry/registry.hpp"
#include "tests/evidence/evidence_data.hpp"

namespace weft::test {

/// A text with every match of a pattern replaced; what does not match is a mistake of the test.
inline std::string edited(const std::string& text, const std::string& pattern,
                          const std::string& by) {
  std::string out = std::regex_replace(text, std::regex(pattern), by);
  if (out == text) throw std::logic_error("nothing matches " + pattern);
  return out;
}

/// What lspci and its kin say of two of the eight GPUs of a Dell XE9680, and of their NICs.
inline std::string dell_lspci() { return captured("lspci-vvv-dell-h100.txt"); }

/// What a healthy one of them says beside.
inline const std::string& dell_rest() {
  static const std::string kText =
      "BOOT_IMAGE=/vmlinuz-5.15 root=/dev/sda1 iommu=pt\n"
      "Module                  Size  Used by\n"
      "nvidia_peermem         16384  0\n"
      "nvidia              56823808  1\n"
      "CA 'mlx5_0'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n"
      "\t\tRate: 400\n\t\tLink layer: InfiniBand\n"
      "CA 'mlx5_1'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n"
      "\t\tRate: 400\n\t\tLink layer: InfiniBand\n"
      "mlx5_0 -> ../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1a:00.0/"
      "infiniband/mlx5_0\n"
      "mlx5_1 -> ../../devices/pci0000:97/0000:97:01.0/0000:98:00.0/0000:99:02.0/0000:9c:00.0/"
      "infiniband/mlx5_1\n"
      "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tNV18\tPIX\tSYS\t0-55\t0\n"
      "GPU1\tNV18\t X \tSYS\tPIX\t56-111\t1\n"
      "NIC0\tPIX\tSYS\t X \tSYS\n"
      "NIC1\tSYS\tPIX\tSYS\t X \n"
      "NIC Legend:\n"
      "  NIC0: mlx5_0\n"
      "  NIC1: mlx5_1\n"
      "h1:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\n";
  return kText;
}

inline Diagnosis diagnosis_of(const Evidence& evidence,
                              std::vector<Bytes> sizes = {Bytes::mib(64)}) {
  DoctorRequest request;
  request.price.sizes = std::move(sizes);
  return diagnose(evidence, request, make_catalog());
}

/// Two files of one machine.
inline Evidence evidence_of_both(const std::string& lspci, const std::string& rest) {
  Evidence evidence = evidence_of(lspci, "lspci");
  parse_evidence(rest, "rest", "", evidence);
  return evidence;
}

}  // namespace weft::test
