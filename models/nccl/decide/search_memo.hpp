#pragma once

#include "models/nccl/decide/search.hpp"

namespace weft {

/// search_nccl_graph(), searched once for all that ask it of the same graph: machines that differ
/// in what NCCL does not see (DRAM, MaxPayload, a NIC's tags), and the memory paths of one machine.
/// A search takes up to a second. What is found is kept while the program runs, up to 64 MiB of
/// questions. Threads may ask at once; one searches, the others wait.
NcclGraph remembered_nccl_graph(const NcclSystem& system, const NcclPaths& paths,
                                const NcclEnv& env, const NcclSearchRequest& request);

}  // namespace weft
