#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/params/device_params.hpp"

namespace weft {

/// The parameters of devices that one node may have otherwise than all others ("nic3@5.mps"): those
/// that NCCL does not decide by and that do not change which limits there are.
std::span<const std::string_view> keys_by_node();
bool may_differ_by_node(std::string_view key);
/// Throws InputError where something is set of one node alone that is not among those that take
/// part.
void refuse_idle_nodes(const DeviceParams& devices, const std::vector<std::uint32_t>& taking_part);
/// "nic3.mps" of "nic3@5.mps"; any other key as it is.
std::string of_all_nodes(const std::string& key);

}  // namespace weft
