#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/nccl/decide/path_type.hpp"
#include "sim/base/error.hpp"

namespace weft {

/// What NCCL's environment variables say. Values are NCCL's own: where a variable is not set, its
/// default; a value that NCCL does not understand counts as not set, and a note says so.
struct NcclEnv {
  // Paths and transports.
  std::optional<NcclPathType> p2p_level;      ///< NCCL_P2P_DISABLE=1 is LOC; else NCCL_P2P_LEVEL
  int p2p_read_enable{-2};                    ///< NCCL_P2P_READ_ENABLE; -2: A100s over NVLink
  bool shm_disable{false};                    ///< NCCL_SHM_DISABLE
  bool nvb_disable{false};                    ///< NCCL_NVB_DISABLE
  bool net_disable_intra{false};              ///< NCCL_NET_DISABLE_INTRA
  std::optional<NcclPathType> net_gdr_level;  ///< NCCL_NET_GDR_LEVEL, words or 0 to 5
  int net_gdr_read{-2};                       ///< NCCL_NET_GDR_READ; -2: by compute capability
  std::optional<bool> net_gdr_c2c;            ///< NCCL_NET_GDR_C2C; the default is the release's
  bool net_force_flush{false};                ///< NCCL_NET_FORCE_FLUSH
  bool pxn_disable{false};                    ///< NCCL_PXN_DISABLE
  std::optional<bool> pxn_c2c;                ///< NCCL_PXN_C2C; the default is the release's
  int p2p_pxn_level{2};                       ///< NCCL_P2P_PXN_LEVEL
  // NICs.
  std::string sockets;                ///< "NCCL_IB_DISABLE=1", "NCCL_NET=Socket": no verbs
  std::string ib_hca;                 ///< NCCL_IB_HCA: "mlx5_0,mlx5_1", "=mlx5_0:1", "^mlx5_2"
  std::string netdevs_policy;         ///< NCCL_NETDEVS_POLICY: "AUTO", "ALL", "MAX:n"
  int cross_nic{2};                   ///< NCCL_CROSS_NIC
  int ib_qps_per_connection{1};       ///< NCCL_IB_QPS_PER_CONNECTION
  std::optional<int> ib_timeout{};    ///< NCCL_IB_TIMEOUT; packets only
  std::optional<int> ib_retry_cnt{};  ///< NCCL_IB_RETRY_CNT; packets only
  bool dmabuf_enable{true};           ///< NCCL_DMABUF_ENABLE
  int nchannels_per_net_peer{-1};     ///< NCCL_NCHANNELS_PER_NET_PEER; -1: not set
  // Channels.
  int min_nchannels{-2};                 ///< NCCL_MIN_NCHANNELS (or NCCL_MIN_NRINGS); -2: not set
  int max_nchannels{-2};                 ///< NCCL_MAX_NCHANNELS (or NCCL_MAX_NRINGS)
  int min_ctas{1};                       ///< NCCL_MIN_CTAS
  int max_ctas{64};                      ///< NCCL_MAX_CTAS
  int min_p2p_nchannels{1};              ///< NCCL_MIN_P2P_NCHANNELS
  std::optional<int> max_p2p_nchannels;  ///< NCCL_MAX_P2P_NCHANNELS
  // Algorithms, protocols and their sizes.
  std::string algo;                            ///< NCCL_ALGO as written; "" if it is not set
  std::string proto;                           ///< NCCL_PROTO as written
  int nthreads{-2};                            ///< NCCL_NTHREADS; -2: not set
  int ll128_nthreads{-2};                      ///< NCCL_LL128_NTHREADS
  std::optional<std::int64_t> buffsize;        ///< NCCL_BUFFSIZE, bytes
  std::optional<std::int64_t> ll_buffsize;     ///< NCCL_LL_BUFFSIZE
  std::optional<std::int64_t> ll128_buffsize;  ///< NCCL_LL128_BUFFSIZE
  int nvls_enable{2};                          ///< NCCL_NVLS_ENABLE; 2: where it is supported
  std::optional<int> nvls_nchannels;           ///< NCCL_NVLS_NCHANNELS
  std::optional<std::int64_t> nvls_chunksize;  ///< NCCL_NVLS_CHUNKSIZE, bytes
  bool collnet_enable{false};                  ///< NCCL_COLLNET_ENABLE
  int collnet_node_threshold{2};               ///< NCCL_COLLNET_NODE_THRESHOLD
  int pat_enable{2};                           ///< NCCL_PAT_ENABLE
  std::optional<int> net_overhead_ns;          ///< NCCL_NET_OVERHEAD
  bool ll128_c2c{true};                        ///< NCCL_LL128_C2C
  std::string thread_thresholds;               ///< NCCL_THREAD_THRESHOLDS, bytes a thread

  std::vector<std::string> notes;  ///< variables that are not modelled, values not understood
};

/// Reads NCCL_* variables. Throws InputError for names that do not begin with "NCCL_".
NcclEnv parse_nccl_env(const std::map<std::string, std::string>& variables);

/// Throws InputError where the variables have data between several nodes go over TCP sockets, which
/// weft does not model. `places`: where variables stand.
void require_verbs(const NcclEnv& env, std::uint32_t nodes,
                   const std::map<std::string, Place>& places = {});

/// Whether NCCL_IB_HCA's value (names by prefix, "=" exact, "^" excluded, "name:port") takes a NIC.
bool nccl_ib_hca_takes(const std::string& ib_hca, const std::string& name, int port);

}  // namespace weft
