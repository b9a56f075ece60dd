#include <algorithm>

#include <fmt/format.h>

#include "models/nccl/decide/tuning.hpp"

namespace weft {
namespace {

// Which algorithms a communicator may use, and of each other why not. Source: src/graph/tuning.cc.

constexpr std::uint32_t kMostDirectRanks = 8;  // CollNet inside a node: NCCL_MAX_DIRECT_ARITY + 1
constexpr std::uint32_t kMostNvlsRanks = 32;   // NCCL_MAX_NVLS_ARITY

/// Whether NCCL has code for it at all, in some release.
bool has_code(NcclOp op, NcclAlgo algo) {
  if (algo == NcclAlgo::kRing) return true;
  if (is_rooted(op)) return false;
  if (algo == NcclAlgo::kPat) return is_gather(op);
  return !is_gather(op) || algo == NcclAlgo::kNvls || algo == NcclAlgo::kCollNetDirect;
}

std::string first_said(std::initializer_list<std::string> reasons) {
  for (const std::string& reason : reasons) {
    if (!reason.empty()) return reason;
  }
  return "";
}

}  // namespace

std::vector<Tuning::Excluded> Tuning::excluded() const {
  std::vector<Excluded> out;
  for (const NcclAlgo algo : kNcclAlgoList) {
    const std::size_t first = out.size();
    bool is_used = false;
    for (const NcclOp op : kNcclOpList) {
      const std::string& why = why_not_[index_of(op)][index_of(algo)];
      for (const NcclProto proto : kNcclProtoList) {
        is_used = is_used || cell(op, algo, proto).bandwidth > 0;
      }
      if (why.empty()) continue;
      const auto alike = std::find_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
                                      [&](const Excluded& e) { return e.why == why; });
      if (alike == out.end()) {
        out.push_back({algo, {op}, true, why});
      } else {
        alike->ops.push_back(op);
      }
    }
    const bool everywhere = !is_used && out.size() - first == 1;
    for (std::size_t i = first; i < out.size(); ++i) out[i].everywhere = everywhere;
  }
  return out;
}

bool Tuning::is_offered(NcclOp op, NcclAlgo algo, NcclProto proto) const {
  const bool simple_only = is_nvls(algo) || algo == NcclAlgo::kPat;
  if (simple_only && proto != NcclProto::kSimple) return false;
  return has_code(op, algo) && why_not_offered(op, algo).empty();
}

/// Of release, GPUs and NCCL_PAT_ENABLE.
std::string Tuning::why_not_offered(NcclOp op, NcclAlgo algo) const {
  const bool is_later = algo == NcclAlgo::kNvlsTree ||
                        (algo == NcclAlgo::kCollNetDirect && is_gather(op));  // than 2.18
  if (is_later && constants_->nvls == TuningConstants::Nvls::kPlain) return "NCCL has it from 2.19";
  if (algo != NcclAlgo::kPat) return "";
  if (!constants_->pat) return "NCCL has it from 2.23";
  if (input_.min_compute_capability < 60) return "it needs compute capability 6.0";
  if (input_.env.pat_enable == 0) return "NCCL_PAT_ENABLE=0";
  if (input_.env.pat_enable != 2 || input_.nodes == input_.ranks) return "";
  return "it is for one GPU a node (NCCL_PAT_ENABLE=1 takes it with several)";
}

std::string Tuning::why_no_collnet() const {
  return first_said({input_.why_no_collnet, "its search found no channels"});
}

std::string Tuning::why_no_graph(NcclAlgo algo) const {
  const NcclGraph* const g = graph(algo);
  if (g == nullptr || g->channels.empty()) {
    if (is_collnet(algo)) return why_no_collnet();
    return first_said({is_nvls(algo) ? input_.why_no_nvls : "", "its search found no channels"});
  }
  const bool needs_two = is_nvls(algo) && constants_->nvls == TuningConstants::Nvls::kEfficiency;
  return needs_two && g->channel_count() < 2 ? "it needs two channels, and its search found one"
                                             : "";
}

/// Of what this communicator has.
std::string Tuning::why_not_available(NcclOp op, NcclAlgo algo) const {
  const auto too_many = [&](std::uint32_t most) {
    return input_.most_local_ranks > most ? fmt::format("a node has more than {} GPUs", most) : "";
  };
  if (is_collnet(algo)) {
    if (!input_.collnet_supported) return why_no_collnet();
    const bool direct = algo == NcclAlgo::kCollNetDirect;
    return first_said({too_many(kMostDirectRanks),
                       direct && input_.nvswitches == 0 ? "no NVSwitch joins the GPUs" : ""});
  }
  if (!is_nvls(algo)) return "";
  // Of 2.18 the graph is the ring's, multicast or not.
  if (input_.nvls_channels == 0) return first_said({input_.why_no_nvls, "it has no channels"});
  if (op != NcclOp::kAllReduce && !too_many(kMostNvlsRanks).empty())
    return too_many(kMostNvlsRanks);
  if (algo == NcclAlgo::kNvlsTree) return input_.nodes > 1 ? "" : "it is for several nodes";
  if (input_.nodes == 1 || input_.collnet_supported) return "";
  return "between nodes it needs CollNet (SHARP): " + why_no_collnet();
}

/// Gathers between nodes are the network's: of what that can.
std::string Tuning::why_not_by_network(NcclOp op, NcclAlgo algo) const {
  const bool by_network = is_gather(op) && input_.nodes > 1 &&
                          (algo == NcclAlgo::kNvls || algo == NcclAlgo::kCollNetDirect);
  if (!by_network) return "";
  if (!input_.collnet_supported) return why_no_collnet();
  if (!input_.collnet_gathers) {
    return "between nodes it needs a network that gathers and scatters, which is taken not to be "
           "there";
  }
  const auto heads = static_cast<std::uint32_t>(std::max(input_.collnet_heads, 0));
  return input_.most_local_ranks <= heads ? "" : "between nodes each GPU needs a NIC of its own";
}

/// LL128 needs 128-byte stores to arrive whole.
bool Tuning::ll128_is_safe(const NcclGraph& g) const {
  const TuningConstants& c = *constants_;
  const auto up_to = [&](NcclPathType type, NcclPathType most) {
    return release_.number(type) <= release_.number(most);
  };
  const int least = input_.min_compute_capability;
  const bool pxn = least >= 90 && input_.env.ll128_c2c;
  if (!up_to(g.type_inter, pxn ? NcclPathType::kPxn : NcclPathType::kPxb)) return false;
  if (!up_to(g.type_intra, c.ll128_over_nvb ? NcclPathType::kNvb : NcclPathType::kNvl)) {
    return false;
  }
  const bool alike = least == input_.max_compute_capability;
  if (!alike && !(c.ll128_mixed_hopper && least >= 90)) return false;
  if (!c.ll128_known_gpus_only) return least >= 70;
  const bool blackwell = (least == 100 || least == 120) && c.knows_blackwell;
  return least == 70 || least == 80 || least == 90 || blackwell;
}

/// Takes out what the user, the machine or safety forbids.
void Tuning::disable() {
  const Cells before = cells_;
  if (!constants_->env_by_op && !input_.collnet_supported) forgive_collnet();
  for (const NcclOp op : kNcclOpList) {
    for (const NcclAlgo algo : kNcclAlgoList) {
      if (has_code(op, algo)) disable(op, algo);
    }
  }
  if (constants_->ring_is_backup) add_backup_ring(before);
}

void Tuning::disable(NcclOp op, NcclAlgo algo) {
  const std::size_t o = index_of(op);
  const bool always =
      constants_->ring_is_free && algo == NcclAlgo::kRing && op != NcclOp::kAllReduce;
  const bool allowed = always || permissions_.algo[o][index_of(algo)];
  const NcclGraph* const g = graph(algo);
  std::string why = first_said({why_not_offered(op, algo), why_no_graph(algo),
                                why_not_available(op, algo), why_not_by_network(op, algo)});
  const bool available = why.empty();
  bool any = false;
  for (const NcclProto proto : kNcclProtoList) {
    bool protocol = permissions_.proto[o][index_of(proto)];
    if (proto == NcclProto::kLl128 && !permissions_.proto_is_forced[o]) {
      protocol = g != nullptr && ll128_is_safe(*g);
    }
    if (!allowed || !protocol || !available) at(op, algo, proto).bandwidth = 0;
    any = any || cell(op, algo, proto).bandwidth != 0;
  }
  if (any) return;
  if (available) {
    why = allowed ? fmt::format("NCCL_PROTO={} leaves none of its protocols", input_.env.proto)
                  : fmt::format("NCCL_ALGO={} leaves it out", input_.env.algo);
  }
  why_not_[o][index_of(algo)] = std::move(why);
}

/// Before 2.23: a user who asks for CollNet alone, where there is none, gets Ring and Tree.
void Tuning::forgive_collnet() {
  for (auto& allowed : permissions_.algo) {
    const bool others = std::any_of(kNcclAlgoList.begin(), kNcclAlgoList.end(), [&](NcclAlgo algo) {
      return !is_collnet(algo) && allowed[index_of(algo)];
    });
    if (others) continue;
    allowed[index_of(NcclAlgo::kRing)] = true;
    allowed[index_of(NcclAlgo::kTree)] = true;
  }
}

/// Where nothing may run, Ring does, with the protocols that are allowed.
void Tuning::add_backup_ring(const Cells& before) {
  for (const NcclOp op : kNcclOpList) {
    bool any = false;
    for (const NcclAlgo algo : kNcclAlgoList) {
      for (const NcclProto proto : kNcclProtoList)
        any = any || cell(op, algo, proto).bandwidth != 0;
    }
    if (any) continue;
    const std::size_t o = index_of(op);
    for (const NcclProto proto : kNcclProtoList) {
      const std::size_t p = index_of(proto);
      const bool safe = proto != NcclProto::kLl128 || permissions_.proto_is_forced[o] ||
                        ll128_is_safe(input_.ring);
      if (permissions_.proto[o][p] && safe) {
        at(op, NcclAlgo::kRing, proto) = before[o][index_of(NcclAlgo::kRing)][p];
        why_not_[o][index_of(NcclAlgo::kRing)].clear();
      }
    }
  }
}

}  // namespace weft
