#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/doctor/patient.hpp"
#include "sim/base/stop.hpp"
#include "sim/base/units.hpp"

namespace weft {

/// What is predicted of each case.
struct PriceRequest {
  std::string op{"allreduce"};
  std::vector<Bytes> sizes;  ///< ascending
  unsigned threads{0};
  const Stop* stop{nullptr};
};

/// What the model says of one host's findings.
struct Priced {
  std::string why_not;              ///< why nothing has a price; "" if it has
  std::vector<SizePrice> together;  ///< all that can be mended, mended at once
};

/// Gives each finding that can be mended its price: the case as it was found against the same with
/// only that mended, all others mended against all, and as bad as it may be. Every number is a
/// prediction of predict() over the memory path that NCCL takes. Throws Stopped.
Priced set_prices(const MachineCase& found, const CaseContext& context, const PriceRequest& request,
                  std::vector<Finding>& findings);

}  // namespace weft
