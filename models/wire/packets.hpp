#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/wire/dcqcn.hpp"
#include "sim/base/params.hpp"
#include "sim/packet/parts.hpp"

namespace weft {

/// Parameters that only the packet transport needs; the page is models/wire/README.md.
inline constexpr std::array kWirePacketParams{
    ParamSpec{"wire.first_extra", Unit::kBytes, 16, 0, 64, Origin::kSpecification,
              "IBTA vol. 1 ch. 9: RETH 16 B",
              "bytes of a message's first packet beyond a middle one"},
    ParamSpec{"wire.forwarding", Unit::kChoice, 0, 0, 1, Origin::kAssumed,
              "switches for RDMA cut through where the output is no faster than the input",
              "when a switch decides: with the headers there, or the whole packet",
              "cut-through store-and-forward"},
    ParamSpec{"wire.lanes", Unit::kCount, 1, 1, 8, Origin::kAssumed,
              "one lossless class for all RDMA traffic is the usual set-up",
              "virtual lanes (InfiniBand) or lossless priorities (RoCE)"},
    ParamSpec{"wire.vl_buffer", Unit::kBytes, 131'072, 4352, 131'072, Origin::kAssumed,
              "the most that a 12-bit credit count of 64 B blocks can grant (IBTA vol. 1 ch. 7.9)",
              "receive buffer of each virtual lane of a port"},
    ParamSpec{"wire.credit_packet", Unit::kBytes, 8, 0, 64, Origin::kAssumed,
              "IBTA vol. 1 ch. 7.9: a flow control packet of 6 B, and delimiters",
              "a credit update on the wire"},
    ParamSpec{"wire.flow_control", Unit::kChoice, 0, 0, 1, Origin::kAssumed,
              "RoCE is run lossless as a rule", "RoCE: pause (PFC) or drop", "pfc none"},
    ParamSpec{"wire.pfc_xoff", Unit::kBytes, 262'144, 4352, 1e9, Origin::kAssumed,
              "a quarter of a port's share of 64 MB for 64 ports",
              "a port and priority is paused when this much of it is in the buffer"},
    ParamSpec{"wire.pfc_hysteresis", Unit::kBytes, 3072, 1, 1e9, Origin::kPublished,
              "alibaba-edu/High-Precision-Congestion-Control, switch-mmu: resume offset 3 KB",
              "it is resumed when this much less is"},
    ParamSpec{
        "wire.pfc_share", Unit::kCount, 0, 0, 64, Origin::kAssumed,
        "0: pfc_xoff holds; switches' settings range from 1/8 to 8",
        "dynamic thresholds: a port and priority is paused at this share of the switch's free "
        "buffer"},
    ParamSpec{"wire.switch_buffer", Unit::kBytes, 64e6, 1e5, 1e10, Origin::kAssumed,
              "Spectrum-3: 64 MB", "shared buffer of a switch with dynamic thresholds"},
    ParamSpec{"wire.pfc_headroom", Unit::kBytes, 0, 0, 1e9, Origin::kAssumed,
              "0: what comes until the pause takes effect (equation on the page)",
              "buffer of a port and priority above the pause threshold"},
    ParamSpec{"wire.pfc_response", Unit::kBytes, 3840, 0, 1e6, Origin::kPublished,
              "Mellanox PFC configuration guide: 60 quanta of 512 bit times",
              "line time from a pause frame's arrival until it is obeyed"},
    ParamSpec{"wire.congestion_control", Unit::kChoice, 0, 0, 1, Origin::kAssumed,
              "off until switches are told to mark", "RoCE: what slows a queue pair down",
              "none dcqcn"},
    ParamSpec{"wire.cnp_extra", Unit::kBytes, 16, 0, 64, Origin::kSpecification,
              "IBTA annex A17: 16 reserved bytes", "bytes of a CNP beyond the overhead"},
    ParamSpec{
        "wire.timeout_exponent", Unit::kCount, 14, 1, 31, Origin::kPublished,
        "linux-rdma/perftest: default 14 (67 ms); weft run: NCCL's 20 (4.3 s), NCCL_IB_TIMEOUT",
        "retransmission after 4.096 us x 2^t without progress"},
    ParamSpec{"wire.retry_count", Unit::kCount, 7, 0, 7, Origin::kPublished,
              "NCCL src/transport/net_ib.cc: NCCL_IB_RETRY_CNT 7; perftest 7",
              "retransmissions before a queue pair gives up"},
    ParamSpec{"wire.rnr_timer", Unit::kCount, 12, 0, 31, Origin::kPublished,
              "NCCL src/transport/net_ib.cc: 12 (0.64 ms); the codes: IBTA vol. 1 ch. 9.7.5.2.8",
              "code of the time that a sender waits when no receive was posted"},
    ParamSpec{"wire.rnr_retry", Unit::kCount, 7, 0, 7, Origin::kPublished,
              "NCCL src/transport/net_ib.cc: rnr_retry 7",
              "times that it tries again before it gives up; 7: for ever"},
    ParamSpec{"wire.recovery", Unit::kChoice, 0, 0, 1, Origin::kPublished,
              "mlxconfig RDMA_SELECTIVE_REPEAT_EN: off by default",
              "what is sent again after a loss: all from the lost packet on, or it alone",
              "go-back-n selective-repeat"},
    ParamSpec{"wire.window", Unit::kCount, 0, 0, 8'388'608, Origin::kAssumed,
              "queue pairs are not limited by packets in flight; 2^23 by the sequence numbers",
              "packets that a queue pair may have unacknowledged; 0: any number"},
};
static_assert(every_param_is_sourced(kWirePacketParams));

/// How long a sender waits after an RNR NAK with this code (0-31).
Duration rnr_time(std::uint32_t code);

/// What packets of the network look like and what their links do, from the parameters.
struct WirePackets {
  explicit WirePackets(const Params& params);

  /// Of a message's i-th packet with so much payload.
  std::uint32_t data_bytes(std::uint32_t payload, bool is_first) const {
    return payload + overhead + (is_first ? first_extra : 0);
  }

  /// CNPs have a virtual lane of their own.
  std::uint8_t cnp_vl() const { return static_cast<std::uint8_t>(vls); }
  /// What switches mark on a link of this rate; none without congestion control.
  std::optional<EcnMarking> ecn(Bandwidth rate) const;

  /// The flow control of every virtual lane of a link.
  /// `crossing`: of the switch that sends, if one does. `into_switch`: a switch receives, whose
  /// thresholds may be dynamic.
  std::vector<VlControl> vl_controls(Bandwidth rate, Duration delay, Duration crossing,
                                     bool into_switch) const;
  /// What a paused port may still get beyond the threshold: the packet that crosses it, what comes
  /// while the pause frame is on the way and obeyed and what is then on the way or inside the
  /// sending switch, and at each end one packet that cannot be broken off.
  Bytes headroom(Bandwidth rate, Duration delay, Duration crossing) const;

  std::uint32_t mtu;
  std::uint32_t overhead;
  std::uint32_t first_extra;
  std::uint32_t ack_bytes;
  std::uint32_t packets_per_ack;
  bool is_roce;
  bool spread;  ///< adaptive routing
  std::optional<Bytes> cut_through;
  std::size_t vls;
  Bytes vl_buffer;
  Bytes credit_packet;
  bool pauses;
  Bytes pfc_xoff;
  Bytes pfc_hysteresis;
  double pfc_share;  ///< 0: pfc_xoff
  Bytes switch_buffer;
  Bytes pfc_headroom;  ///< 0: derived
  Bytes pfc_response;
  std::optional<DcqcnSettings> dcqcn;
  std::uint32_t cnp_bytes;
  Duration timeout;
  std::uint32_t retry_count;
  Duration rnr_time;
  std::uint32_t rnr_retry;  ///< 7: for ever
  std::uint32_t window;     ///< 0: none
  bool selective_repeat;
  /// Receivers take packets in any order.
  bool any_order() const { return spread || selective_repeat; }
};

}  // namespace weft
