#pragma once

#include <string>
#include <string_view>

#include "sim/base/error.hpp"

namespace weft {

/// The part of a GPU or NIC by its product's name, where its PCI id tells none; "" if weft has
/// none.
std::string gpu_part_named(std::string_view product);
std::string nic_part_named(std::string_view product);
/// The same of a GPU as users write it: in small letters ("a100-sxm4-80gb"), with Kubernetes'
/// dashes ("NVIDIA-H100-80GB-HBM3").
std::string gpu_part_meant(std::string_view name);

/// A GPU's name as nvidia-smi prints it since driver 455: before, and in nccl-tests, it is without
/// its maker, "A100-SXM4-40GB", "Tesla V100-SXM2-16GB".
std::string product_name(std::string_view name);
/// Whether a product's name names another maker than NVIDIA.
bool is_of_other_maker(std::string_view product);

/// Whether a GPU of that name is one of such a part or, where weft has no part of it, a form of
/// one: an H200 NVL may be an h200-sxm with other links, an H20 none.
bool may_be_of(std::string_view product, const std::string& part);

/// What to say of a GPU without a part: its name as printed, the parts nearest to it, and all.
std::string unknown_gpu(std::string_view product, const Place& place);

}  // namespace weft
