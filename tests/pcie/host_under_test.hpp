#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/transport/contraction.hpp"
#include "models/transport/dma_traffic.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft {

/// Rates of x16 links after encoding, GB/s.
inline constexpr double kGen5x16 = 32 * 16 * 128.0 / 130 / 8;
inline constexpr double kGen4x16 = kGen5x16 / 2;
inline constexpr double kGen3x16 = kGen5x16 / 4;

/// A shipped topology's first node, TLP by TLP.
class HostUnderTest {
 public:
  explicit HostUnderTest(const std::string& topology, const std::vector<std::string>& settings = {},
                         const std::string& cpu_part = {},
                         std::optional<std::uint64_t> shuffle_ties = {})
      : machine_{topology, settings, 1, cpu_part}, testbed_{machine_.machine(), shuffle_ties} {}

  const MachineUnderTest& m() const { return machine_; }
  PacketHost& host() { return testbed_.host(); }
  DeviceId id(const std::string& name) const { return machine_.id(name); }

  /// A stream of a NIC's engine, deep enough to fill any route.
  DmaStream nic(const std::string& nic, const std::string& target, bool is_read) {
    return {.engine = &host().add_engine(host().nic_engine(id(nic))),
            .initiator = id(nic),
            .target = id(target),
            .is_read = is_read,
            .size = Bytes{4096},
            .transfers = 220,
            .at_a_time = 64};
  }
  /// Every TLP that was sent has arrived.
  DmaTrafficResult run(const std::vector<DmaStream>& streams) {
    const DmaTrafficResult result = testbed_.run(streams);
    EXPECT_EQ(host().network().packets_alive(), 0U);
    return result;
  }
  double gigabytes_per_s(const DmaStream& stream) {
    return run({stream}).streams[0].rate.as_gigabytes_per_s();
  }
  /// What the fluid contraction says of the same DMA.
  double fluid(const DmaStream& s) const {
    const Leg leg{s.is_read ? Leg::Kind::kRead : Leg::Kind::kWrite, Leg::Medium::kPcie, s.initiator,
                  s.is_read ? s.target : s.initiator, s.is_read ? s.initiator : s.target};
    return solo_rate(machine_.machine(), contract(machine_.machine(), {leg})).as_gigabytes_per_s();
  }

 private:
  MachineUnderTest machine_;
  DmaTestbed testbed_;
};

}  // namespace weft
