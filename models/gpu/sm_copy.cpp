#include "models/gpu/sm_copy.hpp"

#include <cmath>

namespace weft {

double cached_share(Bytes used, Bytes cache) {
  if (used <= cache) return 1;
  if (cache == Bytes{0}) return 0;
  const double times = used.as_double() / cache.as_double();
  // From 0 up to the lesser of two solutions, the other of which is 1.
  double share = 0;
  for (int i = 0; i < 200; ++i) share = std::exp(-(1 - share) * times);
  return share;
}

}  // namespace weft
