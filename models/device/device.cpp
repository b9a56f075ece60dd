#include "models/device/device.hpp"

#include <algorithm>

namespace weft {

double RootComplex::iotlb_miss_share(Bytes page) const {
  const double reach = static_cast<double>(iotlb_entries) * page.as_double();
  return std::max(0.0, 1.0 - reach / working_set.as_double());
}

}  // namespace weft
