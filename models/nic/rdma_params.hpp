#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters that only the packet transport's NICs need; the page is models/nic/README.md.
inline constexpr std::array kNicPacketParams{
    ParamSpec{
        "nic.wqe_bytes", Unit::kBytes, 64, 16, 1024, Origin::kPublished,
        "rdma-core providers/mlx5: basic blocks of 64 B; a write or read of one buffer is one",
        "a work queue element, as fetched"},
    ParamSpec{"nic.cqe_bytes", Unit::kBytes, 64, 8, 128, Origin::kPublished,
              "rdma-core providers/mlx5: 64 B", "a completion queue element, as written"},
    ParamSpec{"nic.inline_max", Unit::kBytes, 220, 0, 912, Origin::kPublished,
              "linux-rdma/perftest src/perftest_parameters.h: DEF_INLINE_WRITE 220",
              "payload from host memory that comes within the element where a program asks for it"},
    ParamSpec{"nic.max_rd_atomic", Unit::kCount, 16, 1, 256, Origin::kAssumed,
              "mlx5, as remembered; the source was not re-read",
              "RDMA reads that a queue pair has under way"},
    ParamSpec{"nic.post_time", Unit::kNanoseconds, 75, 0, 1e7, Origin::kPublished,
              "UCX src/uct/ib/rc/verbs: 75 ns of software for a request posted through verbs",
              "work of a CPU thread for one work request, without the doorbell"},
    ParamSpec{"nic.doorbell_time", Unit::kNanoseconds, 40, 0, 1e7, Origin::kPublished,
              "UCX src/uct/ib/base: db 40 ns (x86; A64FX 400)",
              "how long the doorbell's store and its fence hold up the thread that posts"},
    ParamSpec{"nic.cqe_time", Unit::kNanoseconds, 20, 0, 1e7, Origin::kPublished,
              "UCX src/uct/ib/base: cqe 20 ns", "work of a CPU thread to take one completion"},
    ParamSpec{"nic.receive_time", Unit::kNanoseconds, 30, 0, 1e7, Origin::kAssumed,
              "less than a send: 16 B and a record in memory, no doorbell",
              "work of a CPU thread to post one receive"},
    ParamSpec{"nic.cable_loss", Unit::kFraction, 0, 0, 1, Origin::kAssumed,
              "cables are sound until one is not; read it with ethtool -S or perfquery",
              "share of the packets that its cable loses, either way (packet transport)"},
    ParamSpec{"nic.flap_at", Unit::kNanoseconds, 0, 0, 1e12, Origin::kAssumed,
              "no link flaps unless told to",
              "when its cable goes down, from the begin of a run (packet transport)"},
    ParamSpec{"nic.flap_time", Unit::kNanoseconds, 0, 0, 1e12, Origin::kAssumed,
              "no link flaps unless told to",
              "how long its cable is down then and loses every packet; 0: it stays up"},
    ParamSpec{"nic.poll_time", Unit::kNanoseconds, 75, 0, 1e7, Origin::kAssumed, "50-100 ns",
              "from data or a completion in memory to the thread that polls it"},
};
static_assert(every_param_is_sourced(kNicPacketParams));

}  // namespace weft
