#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Path MTUs of IBTA vol. 1; RoCE has the largest of these that its Ethernet frames hold.
inline constexpr std::array<double, 5> kPathMtus{256, 512, 1024, 2048, 4096};

/// Parameters of the network's links, and of how flows are laid over them; the page is
/// models/wire/README.md.
inline constexpr std::array kWireParams{
    ParamSpec{"wire.kind", Unit::kChoice, 0, 0, 1, Origin::kAssumed,
              "the topology says which; InfiniBand where it is silent", "protocol on the wire",
              "infiniband roce"},
    ParamSpec{
        "wire.rate", Unit::kGigabytesPerS, 50, 0.001, 1000, Origin::kSpecification,
        "InfiniBand NDR 4x or 400GbE: 400 Gb/s data rate after encoding and FEC",
        "signalled data rate of the network's links; a NIC's link has the smaller of this and "
        "nic.rate"},
    ParamSpec{"wire.mtu", Unit::kBytes, 4096, 256, 4096, Origin::kSpecification,
              "InfiniBand path MTU 4096; RoCE with jumbo frames likewise, 1024 with 1500 B frames",
              "RDMA path MTU: largest payload of a packet", "", kPathMtus},
    ParamSpec{"wire.ib_overhead", Unit::kBytes, 26, 26, 100, Origin::kSpecification,
              "IBTA vol. 1 ch. 9: LRH 8, BTH 12, ICRC 4, VCRC 2",
              "bytes of a middle packet beyond its payload, InfiniBand"},
    ParamSpec{
        "wire.roce_overhead", Unit::kBytes, 82, 58, 130, Origin::kSpecification,
        "IBTA annex A17, IEEE 802.3: preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, "
        "FCS 4, gap 12",
        "bytes of a middle packet beyond its payload, RoCEv2 over IPv4 without VLAN"},
    ParamSpec{"wire.ack_extra", Unit::kBytes, 4, 0, 64, Origin::kSpecification,
              "IBTA vol. 1 ch. 9: AETH 4 B", "bytes of an ACK packet beyond the overhead"},
    ParamSpec{"wire.packets_per_ack", Unit::kCount, 256, 1, 65'536, Origin::kPublished,
              "Linux drivers/infiniband/hw/mlx5/qp.c: MLX5_IB_ACK_REQ_FREQ 8, that is every 2^8",
              "data packets that one ACK answers within a message"},
    ParamSpec{"wire.cable_length", Unit::kMetres, 5, 0.1, 1e8, Origin::kAssumed,
              "copper or short fibre to a leaf switch", "length of the cable of every NIC"},
    ParamSpec{"wire.cable_delay", Unit::kNanosecondsPerM, 5, 3, 10, Origin::kSpecification,
              "light in fibre: 4.9-5.0 ns/m", "propagation"},
    ParamSpec{"wire.fec_latency", Unit::kNanoseconds, 90, 0, 1000, Origin::kAssumed,
              "RS(544,514) at 400 Gb/s: codeword 26 ns and decoding 50-100 ns",
              "forward error correction of one link, one way"},
    ParamSpec{"wire.routing", Unit::kChoice, 0, 0, 2, Origin::kAssumed,
              "InfiniBand switches route adaptively, Ethernet switches hash, unless told otherwise",
              "how flows are laid over equal ways: ecmp hashes each queue pair to one, spread uses "
              "all evenly, auto is spread on InfiniBand and ecmp on RoCE",
              "auto ecmp spread"},
    ParamSpec{"wire.seed", Unit::kCount, 1, 0, 9'007'199'254'740'991, Origin::kAssumed,
              "any: each seed is another draw; --seed sets it",
              "seed of all that is random: the hash by which ECMP picks ways, ECN marks, lost "
              "packets, what a NIC's context cache throws out"},
    ParamSpec{"wire.qps_per_connection", Unit::kCount, 1, 1, 128, Origin::kPublished,
              "NCCL src/transport/net_ib.cc: IB_QPS_PER_CONNECTION, default 1",
              "queue pairs that share a connection's data evenly, each on its own ECMP way"},
};
static_assert(every_param_is_sourced(kWireParams));

/// What messages cost on a link of the network, from the parameters of its protocol.
class WireCosts {
 public:
  explicit WireCosts(const Params& params);
  /// Link bytes per payload byte, for messages of many packets: (MTU + overhead) / MTU.
  double data_weight() const { return (mtu_ + overhead_) / mtu_; }
  /// ACK bytes per payload byte, against the data's direction.
  double ack_weight() const { return ack_ / mtu_; }

 private:
  double mtu_;
  double overhead_;
  double ack_;
};

/// One way over one link: cable and FEC.
Duration wire_link_latency(const Params& params, double cable_metres);

}  // namespace weft
