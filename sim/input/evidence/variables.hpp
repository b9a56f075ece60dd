#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input/evidence/host_view.hpp"

namespace weft {

inline constexpr std::string_view kIbHca = "NCCL_IB_HCA";

/// NCCL's variables on one host, as its log names them: the first value of each, of NCCL_IB_HCA all
/// that ranks name, joined.
std::map<std::string, std::string> nccl_variables(const HostView& view);

/// Whether values of NCCL_IB_HCA name NICs, each of them: what ranks then have of their own is no
/// fault. "^mlx5_2" names those that are left out.
bool name_nics(const std::vector<std::string>& values);
/// Those, each once, as one value: "mlx5_0" and "mlx5_1" are "mlx5_0,mlx5_1"; exact names
/// ("=mlx5_0") stay exact where all are.
std::string joined_nics(const std::vector<std::string>& values);
/// Whether the values of each host name NICs, and as many as those of the others.
bool are_as_many_nics(const std::vector<std::vector<std::string>>& hosts);

/// "NCCL_IB_HCA is of ranks or hosts their own, ...: mlx5_0 (a.log:3), ..."; "" where it has one
/// value, or hosts differ by it.
std::string ib_hca_note(const Facts& facts);

/// "NCCL_ALGO: Ring (a.log:3) is used, not Tree (a.log:9), ..." of each variable that has several:
/// the first other one.
std::vector<std::string> unused_values(const HostView& view);

}  // namespace weft
