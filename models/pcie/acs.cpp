#include "models/pcie/acs.hpp"

namespace weft {

PeerRouting route_peer_request(std::uint32_t bits, bool egress_named, bool translated) {
  const auto has = [bits](std::uint32_t bit) { return (bits & bit) != 0; };
  if (translated && has(acs::kTranslationBlocking)) return PeerRouting::kBlock;
  if (translated && has(acs::kDirectTranslated)) return PeerRouting::kDirect;
  if (has(acs::kEgressControl)) {
    if (!egress_named) return PeerRouting::kDirect;
    return has(acs::kRequestRedirect) ? PeerRouting::kRedirect : PeerRouting::kBlock;
  }
  return has(acs::kRequestRedirect) ? PeerRouting::kRedirect : PeerRouting::kDirect;
}

PeerRouting route_peer_completion(std::uint32_t bits, bool relaxed_ordering) {
  return (bits & acs::kCompletionRedirect) != 0 && !relaxed_ordering ? PeerRouting::kRedirect
                                                                     : PeerRouting::kDirect;
}

}  // namespace weft
