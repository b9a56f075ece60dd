#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/nccl/decide/connect.hpp"
#include "models/nccl/decide/env.hpp"
#include "models/nccl/decide/gdr_check.hpp"
#include "models/nccl/decide/graph.hpp"
#include "models/nccl/decide/paths.hpp"
#include "models/nccl/decide/search.hpp"
#include "models/nccl/decide/system.hpp"

namespace weft {

/// GPUs of a host that NCCL treats as one node: as a rule all of them.
struct NcclNodeView {
  std::vector<int> gpus;  ///< places among the host's GPUs (NcclDecisions::system)
  NcclSystem system;      ///< with only these GPUs
  NcclPaths paths;
  NcclSystemBw bw;
  NcclGraph ring;
  NcclGraph tree;
  std::optional<NcclGraph> nvls;  ///< where NVLS is on and supported and a channel was found
  std::optional<NcclGraph> collnet_chain;
  std::optional<NcclGraph> collnet_direct;
  std::string why_no_nvls;     ///< that none was looked for; "": it was
  std::string why_no_collnet;  ///< likewise
};

/// GDR for a GPU and a NIC of host 0, in one direction.
struct NcclGdr {
  int rank{0};
  int net_dev{0};
  bool read{false};  ///< the GPU sends
  NcclGdrCheck check;
  bool flush{false};  ///< after receives
};

/// How many channels NCCL opens.
struct NcclChannelCounts {
  int coll{0};
  int dealt{0};  ///< of `coll`, those that data of rings and trees are dealt to
  int nvls{0};
  int p2p{0};
  int p2p_per_peer{0};
};

/// Everything up to the tuning model. Hosts are copies of the topology file's machine; rank r is
/// GPU r mod g of host r / g.
struct NcclDecisions {
  NcclVersion version;
  NcclEnv env;
  int hosts{1};
  int gpus_per_host{0};
  int nodes{0};  ///< NCCL's nodes: hosts x groups
  int ranks{0};
  std::vector<NcclNodeView> views;  ///< a host's groups; [0] holds rank 0 and is what NCCL prints
  std::vector<NcclGdr> gdr;         ///< host 0: every GPU, NIC and direction
  /// Graphs as all nodes agree on them: fewest channels, lowest bandwidths, worst types. Orders are
  /// views[0]'s. The tuning model takes its numbers from here.
  NcclGraph ring;
  NcclGraph tree;
  std::optional<NcclGraph> nvls;
  std::optional<NcclGraph> collnet_chain;
  std::optional<NcclGraph> collnet_direct;
  std::string why_no_nvls;     ///< "": there is one, or none was found
  std::string why_no_collnet;  ///< likewise
  NcclConnections connections;
  NcclChannelCounts channels;
  std::vector<std::string> notes;  ///< what was left out, for the user to see
};

/// Decides what NCCL decides at start-up. Throws InputError as build_nccl_system does, and where
/// several hosts have no NIC.
NcclDecisions decide_nccl(const NcclTree& tree, int hosts, const NcclEnv& env,
                          NcclVersion version = {});

/// The NIC (by place in the view's system) by which a GPU reaches the network in a channel of a
/// graph, and the GPU whose proxy drives it: itself, or with PXN another.
struct NcclNetUse {
  int net{-1};
  int proxy_gpu{-1};  ///< place among the view's GPUs
};
/// Precondition: the view's graphs have NICs (several nodes).
NcclNetUse net_of_channel(const NcclNodeView& view, const NcclGraph& graph, int gpu, int channel);

/// A line of NCCL's log on GDR, for all ranks.
struct NcclGdrLine {
  std::string key;  ///< "gpu0-net1-read0" where enabled, "gpu0-net1" where the distance forbids it
  bool enabled{false};
  NcclPathType distance{NcclPathType::kDis};
  NcclPathType limit{NcclPathType::kPxb};
};
/// What NCCL prints last for each GPU, NIC and direction, when the ranks' logs are read one after
/// the other: a pair that is near enough but declined is printed by every rank of the host with its
/// plain distance, before its traffic is diverted; then by its own rank, if it uses the NIC.
/// None where a flag rules GDR out before distances are looked at.
std::vector<NcclGdrLine> nccl_gdr_lines(const NcclDecisions& decisions);

}  // namespace weft
