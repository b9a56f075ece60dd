#include <gtest/gtest.h>

#include "models/netswitch/room.hpp"
#include "tests/models/prediction.hpp"

// What a hop over a switch costs, the same in both transports. Uplinks and capacity: network_test.
namespace weft::test::models_netswitch {
namespace {

// The one message that each rank sends crosses one switch; 8 bytes wait for nothing else there,
// if proxies take no time.
TEST(NetSwitch, AHopCostsItsLatencyInBothTransports) {
  for (const Fidelity fidelity : {Fidelity::kFluid, Fidelity::kPacket}) {
    const auto time_us = [&](const char* latency) {
      return predict_one("gdr", Bytes{8},
                         {std::string("netswitch.latency=") + latency, "nccl.proxy_poll=0 ns",
                          "nccl.proxy_look=0 ns", "nccl.launch=single"},
                         "topologies/genoa-2p-same-switch.yaml", 2, "sendrecv", fidelity)
          .time_us;
    };
    // A picosecond of rounding an event.
    EXPECT_NEAR(time_us("1200 ns") - time_us("200 ns"), 1.0, 1e-4);
  }
}

}  // namespace
}  // namespace weft::test::models_netswitch
