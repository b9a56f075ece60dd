#include "models/nccl/decide/env.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <set>

#include "sim/base/error.hpp"
#include "sim/base/lower_case.hpp"

namespace weft {
namespace {

/// Looks variables up, remembers which were asked for, and collects notes.
class EnvReader {
 public:
  explicit EnvReader(const std::map<std::string, std::string>& variables) : variables_{variables} {}

  std::optional<std::string> text(const char* name) {
    known_.insert(name);
    const auto found = variables_.find(name);
    if (found == variables_.end() || found->second.empty()) return std::nullopt;
    return found->second;
  }

  /// As NCCL's strtoll(value, 0): decimal, 0x or 0 octal, whole; else a note and nullopt.
  std::optional<std::int64_t> whole(const char* name) {
    const std::optional<std::string> written = text(name);
    if (!written) return std::nullopt;
    char* end = nullptr;
    errno = 0;
    const std::int64_t value = std::strtoll(written->c_str(), &end, 0);
    if (errno == 0 && end != written->c_str()) return value;
    not_understood(name, *written);
    return std::nullopt;
  }

  void set(int& value, const char* name) {
    const std::optional<std::int64_t> found = whole(name);
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    if (found) value = static_cast<int>(std::clamp<std::int64_t>(*found, -kMost, kMost));
  }
  void set(std::optional<int>& value, const char* name) {
    int found = 0;
    if (whole(name)) {
      set(found, name);
      value = found;
    }
  }
  void set(std::optional<std::int64_t>& value, const char* name) {
    if (const auto found = whole(name)) value = found;
  }
  void set(bool& value, const char* name) {
    if (const auto found = whole(name)) value = *found != 0;
  }
  void set(std::optional<bool>& value, const char* name) {
    if (const auto found = whole(name)) value = *found != 0;
  }
  /// Where NCCL asks for exactly 1.
  void set_if_one(bool& value, const char* name) {
    if (const auto found = whole(name)) value = *found == 1;
  }
  /// Whether a variable is one word, in whatever letters; others are none that weft knows.
  bool is(const char* name, std::string_view word) {
    const auto found = variables_.find(name);
    if (found == variables_.end() || lower_case(found->second) != word) return false;
    known_.insert(name);
    return true;
  }
  void set(std::string& value, const char* name) { value = text(name).value_or(""); }

  /// A path type by its word, or by the numbers of NCCL before 2.12: 0 LOC, 1 PIX, 2 PXB, 3 PHB,
  /// above SYS.
  std::optional<NcclPathType> level(const char* name) {
    using enum NcclPathType;
    static constexpr std::array kOld{kLoc, kPix, kPxb, kPhb, kSys};
    const std::optional<std::string> written = text(name);
    if (!written) return std::nullopt;
    if (const auto type = nccl_path_type(*written)) return type;
    if (written->front() >= '0' && written->front() <= '9') {
      const std::int64_t number = whole(name).value_or(0);
      return kOld[static_cast<std::size_t>(std::clamp<std::int64_t>(number, 0, kOld.size() - 1))];
    }
    not_understood(name, *written);
    return std::nullopt;
  }

  std::vector<std::string> notes() {
    // What only says where to log and how to start, not what to decide.
    static const std::set<std::string, std::less<>> kHarmless{
        "NCCL_DEBUG",         "NCCL_DEBUG_SUBSYS",    "NCCL_DEBUG_FILE",
        "NCCL_SOCKET_IFNAME", "NCCL_HOSTID",          "NCCL_TOPO_DUMP_FILE",
        "NCCL_COMM_ID",       "NCCL_GRAPH_DUMP_FILE", "NCCL_LOCAL_REGISTER"};
    for (const auto& [name, value] : variables_) {
      if (!known_.contains(name) && !kHarmless.contains(name)) {
        notes_.push_back(name + " is not modelled and has no effect");
      }
    }
    return std::move(notes_);
  }

 private:
  void not_understood(const char* name, const std::string& written) {
    notes_.push_back(std::string(name) + "=" + written +
                     " is not understood; NCCL ignores it, and so does weft");
  }

  const std::map<std::string, std::string>& variables_;
  std::set<std::string, std::less<>> known_;
  std::vector<std::string> notes_;
};

void read_paths(EnvReader& reader, NcclEnv& env) {
  bool p2p_disable = false;
  env.p2p_level = reader.level("NCCL_P2P_LEVEL");
  reader.set_if_one(p2p_disable, "NCCL_P2P_DISABLE");
  if (p2p_disable) env.p2p_level = NcclPathType::kLoc;
  reader.set(env.p2p_read_enable, "NCCL_P2P_READ_ENABLE");
  reader.set_if_one(env.shm_disable, "NCCL_SHM_DISABLE");
  reader.set(env.nvb_disable, "NCCL_NVB_DISABLE");
  reader.set_if_one(env.net_disable_intra, "NCCL_NET_DISABLE_INTRA");
  env.net_gdr_level = reader.level("NCCL_NET_GDR_LEVEL");
  reader.set(env.net_gdr_read, "NCCL_NET_GDR_READ");
  reader.set(env.net_gdr_c2c, "NCCL_NET_GDR_C2C");
  reader.set(env.net_force_flush, "NCCL_NET_FORCE_FLUSH");
  reader.set_if_one(env.pxn_disable, "NCCL_PXN_DISABLE");
  reader.set(env.pxn_c2c, "NCCL_PXN_C2C");
  reader.set(env.p2p_pxn_level, "NCCL_P2P_PXN_LEVEL");
}

void read_nics(EnvReader& reader, NcclEnv& env) {
  bool ib_disable = false;
  reader.set(ib_disable, "NCCL_IB_DISABLE");
  if (ib_disable) env.sockets = "NCCL_IB_DISABLE=1";
  if (reader.is("NCCL_NET", "socket")) env.sockets = "NCCL_NET=Socket";
  reader.is("NCCL_NET", "ib");
  reader.set(env.ib_hca, "NCCL_IB_HCA");
  reader.set(env.netdevs_policy, "NCCL_NETDEVS_POLICY");
  reader.set(env.cross_nic, "NCCL_CROSS_NIC");
  reader.set(env.ib_qps_per_connection, "NCCL_IB_QPS_PER_CONNECTION");
  reader.set(env.ib_timeout, "NCCL_IB_TIMEOUT");
  reader.set(env.ib_retry_cnt, "NCCL_IB_RETRY_CNT");
  reader.set(env.dmabuf_enable, "NCCL_DMABUF_ENABLE");
  reader.set(env.nchannels_per_net_peer, "NCCL_NCHANNELS_PER_NET_PEER");
}

void read_channels(EnvReader& reader, NcclEnv& env) {
  reader.set(env.min_nchannels, "NCCL_MIN_NRINGS");
  reader.set(env.min_nchannels, "NCCL_MIN_NCHANNELS");
  reader.set(env.max_nchannels, "NCCL_MAX_NRINGS");
  reader.set(env.max_nchannels, "NCCL_MAX_NCHANNELS");
  reader.set(env.min_ctas, "NCCL_MIN_CTAS");
  reader.set(env.max_ctas, "NCCL_MAX_CTAS");
  reader.set(env.min_p2p_nchannels, "NCCL_MIN_P2P_NCHANNELS");
  reader.set(env.max_p2p_nchannels, "NCCL_MAX_P2P_NCHANNELS");
}

void read_algorithms(EnvReader& reader, NcclEnv& env) {
  reader.set(env.algo, "NCCL_ALGO");
  reader.set(env.proto, "NCCL_PROTO");
  reader.set(env.nthreads, "NCCL_NTHREADS");
  reader.set(env.ll128_nthreads, "NCCL_LL128_NTHREADS");
  reader.set(env.buffsize, "NCCL_BUFFSIZE");
  reader.set(env.ll_buffsize, "NCCL_LL_BUFFSIZE");
  reader.set(env.ll128_buffsize, "NCCL_LL128_BUFFSIZE");
  reader.set(env.nvls_enable, "NCCL_NVLS_ENABLE");
  reader.set(env.nvls_nchannels, "NCCL_NVLS_NCHANNELS");
  reader.set(env.nvls_chunksize, "NCCL_NVLS_CHUNKSIZE");
  reader.set(env.collnet_enable, "NCCL_COLLNET_ENABLE");
  reader.set(env.collnet_node_threshold, "NCCL_COLLNET_NODE_THRESHOLD");
  reader.set(env.pat_enable, "NCCL_PAT_ENABLE");
  reader.set(env.net_overhead_ns, "NCCL_NET_OVERHEAD");
  reader.set(env.ll128_c2c, "NCCL_LL128_C2C");
  reader.set(env.thread_thresholds, "NCCL_THREAD_THRESHOLDS");
}

/// "mlx5_0:1" or "mlx5_0" of an NCCL_IB_HCA list.
bool hca_entry_takes(std::string_view entry, const std::string& name, int port, bool exact) {
  const std::size_t colon = entry.find(':');
  const std::string_view wanted = entry.substr(0, colon);
  if (exact ? name != wanted : !std::string_view(name).starts_with(wanted)) return false;
  if (colon == std::string_view::npos) return true;
  const int wanted_port = std::atoi(std::string(entry.substr(colon + 1)).c_str());
  return wanted_port == port || wanted_port == -1;
}

}  // namespace

NcclEnv parse_nccl_env(const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables) {
    if (!name.starts_with("NCCL_")) {
      throw InputError("'" + name + "' is not an NCCL variable; their names begin with NCCL_");
    }
  }
  EnvReader reader(variables);
  NcclEnv env;
  read_paths(reader, env);
  read_nics(reader, env);
  read_channels(reader, env);
  read_algorithms(reader, env);
  env.notes = reader.notes();
  if (env.collnet_enable) {
    env.notes.emplace_back(
        "NCCL_COLLNET_ENABLE=1: reductions by network switches (CollNet, SHARP) are decided where "
        "NICs have nic.collnet=on (an NCCL XML's coll=\"1\"), and not executed");
  }
  return env;
}

void require_verbs(const NcclEnv& env, std::uint32_t nodes,
                   const std::map<std::string, Place>& places) {
  if (env.sockets.empty() || nodes < 2) return;
  const auto place = places.find(env.sockets.substr(0, env.sockets.find('=')));
  throw InputError(place == places.end() ? Place{} : place->second,
                   env.sockets +
                       ": NCCL moves data between nodes over TCP sockets, which weft does not "
                       "model; unset it, or ask for one node");
}

bool nccl_ib_hca_takes(const std::string& ib_hca, const std::string& name, int port) {
  std::string_view list = ib_hca;
  const bool excluded = list.starts_with('^');
  if (excluded) list.remove_prefix(1);
  const bool exact = list.starts_with('=');
  if (exact) list.remove_prefix(1);
  bool listed = list.empty();
  while (!list.empty() && !listed) {
    const std::size_t comma = list.find(',');
    const std::string_view entry = list.substr(0, comma);
    listed = !entry.empty() && hca_entry_takes(entry, name, port, exact);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return ib_hca.empty() || listed != excluded;
}

}  // namespace weft
