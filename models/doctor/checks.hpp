#pragma once

#include "models/doctor/patient.hpp"

namespace weft {

/// MaxReadReq of a NIC, bytes: NVIDIA's advice for ConnectX.
inline constexpr double kAdvisedReadRequest = 4096;

// One function a check; the table in check_table.cpp says what each looks at.

// pcie_checks.cpp
Outcome check_acs(const Patient& patient);
Outcome check_links(const Patient& patient);
Outcome check_placement(const Patient& patient);
Outcome check_payload(const Patient& patient);
Outcome check_read_requests(const Patient& patient);
Outcome check_ordering(const Patient& patient);

// machine_checks.cpp
Outcome check_gpus(const Patient& patient);
Outcome check_modules(const Patient& patient);
Outcome check_bar1(const Patient& patient);
Outcome check_iommu(const Patient& patient);
Outcome check_guest(const Patient& patient);
Outcome check_nvlinks(const Patient& patient);
Outcome check_alerts(const Patient& patient);
Outcome check_hosts(const Patient& patient);

// network_checks.cpp
Outcome check_ports(const Patient& patient);
Outcome check_rates(const Patient& patient);
Outcome check_mtu(const Patient& patient);
Outcome check_errors(const Patient& patient);
Outcome check_congestion(const Patient& patient);

// p2p.cpp
Outcome check_p2p(const Patient& patient);

// nccl_checks.cpp
Outcome check_gdr(const Patient& patient);
Outcome check_nics(const Patient& patient);
Outcome check_environment(const Patient& patient);

}  // namespace weft
