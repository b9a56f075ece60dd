#include "models/wire/packets.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "models/wire/routing.hpp"
#include "sim/base/error.hpp"

namespace weft {
namespace {

std::uint32_t whole(const Params& params, std::string_view key) {
  return static_cast<std::uint32_t>(std::lround(params.number(key)));
}

/// IBTA counts credit in blocks of 64 B.
constexpr Bytes kCreditBlock{64};
/// A pause frame: 64 B, preamble 8, gap 12 (IEEE 802.3).
constexpr Bytes kPauseFrame{84};

}  // namespace

Duration rnr_time(std::uint32_t code) {
  // Hundredths of a millisecond, IBTA vol. 1 ch. 9.7.5.2.8.
  constexpr std::array<std::int64_t, 32> kTimes{
      65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return Duration::us(10) * kTimes.at(code);
}

WirePackets::WirePackets(const Params& params)
    : mtu{whole(params, "wire.mtu")},
      overhead{whole(params, params.choice("wire.kind") == "roce" ? "wire.roce_overhead"
                                                                  : "wire.ib_overhead")},
      first_extra{whole(params, "wire.first_extra")},
      ack_bytes{overhead + whole(params, "wire.ack_extra")},
      packets_per_ack{whole(params, "wire.packets_per_ack")},
      is_roce{params.choice("wire.kind") == "roce"},
      spread{Routing(params).spread()},
      vls{whole(params, "wire.lanes")},
      vl_buffer{params.bytes("wire.vl_buffer")},
      credit_packet{params.bytes("wire.credit_packet")},
      pauses{params.choice("wire.flow_control") == "pfc"},
      pfc_xoff{params.bytes("wire.pfc_xoff")},
      pfc_hysteresis{params.bytes("wire.pfc_hysteresis")},
      pfc_share{params.number("wire.pfc_share")},
      switch_buffer{params.bytes("wire.switch_buffer")},
      pfc_headroom{params.bytes("wire.pfc_headroom")},
      pfc_response{params.bytes("wire.pfc_response")},
      cnp_bytes{overhead + whole(params, "wire.cnp_extra")},
      timeout{Duration::ns(4096) * (std::int64_t{1} << whole(params, "wire.timeout_exponent"))},
      retry_count{whole(params, "wire.retry_count")},
      rnr_time{weft::rnr_time(whole(params, "wire.rnr_timer"))},
      rnr_retry{whole(params, "wire.rnr_retry")},
      window{whole(params, "wire.window")},
      selective_repeat{params.choice("wire.recovery") == "selective-repeat"} {
  // A sender asks for an ACK before its window is full.
  if (window > 0) packets_per_ack = std::min(packets_per_ack, window);
  if (params.choice("wire.forwarding") == "cut-through") cut_through = Bytes{overhead};
  if (!is_roce || params.choice("wire.congestion_control") == "none") return;
  dcqcn.emplace(params);
  if (vls == kMaxVls) {
    throw InputError("wire.lanes: " + std::to_string(vls) +
                     " leave no lane for DCQCN's notifications; allowed: at most " +
                     std::to_string(kMaxVls - 1));
  }
}

std::optional<EcnMarking> WirePackets::ecn(Bandwidth rate) const {
  if (!dcqcn) return std::nullopt;
  const auto bytes = [rate](Duration line_time) {
    return Bytes{std::llround(line_time.as_s() * rate.as_bytes_per_s())};
  };
  return EcnMarking{bytes(dcqcn->ecn_min), bytes(dcqcn->ecn_max), dcqcn->ecn_chance};
}

Bytes WirePackets::headroom(Bandwidth rate, Duration delay, Duration crossing) const {
  const double on_the_way = (delay * 2 + crossing).as_s() * rate.as_bytes_per_s();
  const Bytes packet{data_bytes(mtu, true)};
  return Bytes{std::llround(std::ceil(on_the_way))} + pfc_response + kPauseFrame + packet * 3;
}

std::vector<VlControl> WirePackets::vl_controls(Bandwidth rate, Duration delay, Duration crossing,
                                                bool into_switch) const {
  if (!is_roce) {
    const std::int64_t blocks = vl_buffer.count() / kCreditBlock.count();
    const std::int64_t packet_blocks = pieces(Bytes{data_bytes(mtu, true)}, kCreditBlock);
    return std::vector<VlControl>(
        vls, CreditPool{.units = static_cast<std::uint32_t>(std::max(blocks, packet_blocks)),
                        .unit = kCreditBlock,
                        .update_bytes = credit_packet});
  }
  const Bytes extra = pfc_headroom > Bytes{0} ? pfc_headroom : headroom(rate, delay, crossing);
  const PauseBuffer buffer{.capacity = pfc_xoff + extra,
                           .xoff = pauses ? pfc_xoff : pfc_xoff + extra + Bytes{1},
                           .xon = std::max(pfc_xoff - pfc_hysteresis, Bytes{0}),
                           .frame_bytes = kPauseFrame,
                           .response = serialization_time(pfc_response, rate),
                           .share = into_switch ? pfc_share : 0};
  return std::vector<VlControl>(vls + (dcqcn ? 1 : 0), buffer);
}

}  // namespace weft
