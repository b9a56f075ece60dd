#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/nic/icm.hpp"
#include "models/pcie/dma_engine.hpp"
#include "models/wire/queue_pairs.hpp"
#include "sim/base/params.hpp"

namespace weft {

/// Parameters that only the packet transport's NICs need; the page is models/nic/README.md.
inline constexpr std::array kNicPacketParams{
    ParamSpec{"nic.wqe_time", Unit::kNanoseconds, 3, 0, 1000, Origin::kPublished,
              "NVIDIA ConnectX-7 product specifications: 330-370 million messages/s",
              "work for one work queue element, one after another for all queue pairs"},
    ParamSpec{
        "nic.qp_wqe_time", Unit::kNanoseconds, 20, 0, 1000, Origin::kPublished,
        "NVIDIA/daqiri#162, 400 Gb/s: one send queue sends 33.7 Gb/s of 64 B frames (50 M/s), "
        "two 111.8 Gb/s; a ConnectX-4 has 16 M/s for each queue, 67 M/s in all "
        "(snabbco/snabb#1007)",
        "between two work queue elements of one queue pair, at least"},
    ParamSpec{
        "nic.wqe_bytes", Unit::kBytes, 64, 16, 1024, Origin::kPublished,
        "rdma-core providers/mlx5: basic blocks of 64 B; a write or read of one buffer is one",
        "a work queue element, as fetched"},
    ParamSpec{"nic.cqe_bytes", Unit::kBytes, 64, 8, 128, Origin::kPublished,
              "rdma-core providers/mlx5: 64 B", "a completion queue element, as written"},
    ParamSpec{
        "nic.blueflame", Unit::kChoice, 1, 0, 1, Origin::kPublished,
        "rdma-core providers/mlx5: a post of exactly one element is stored to the BlueFlame "
        "register",
        "whether a work queue element comes with its doorbell, or is fetched from host memory",
        "off on"},
    ParamSpec{"nic.inline_max", Unit::kBytes, 220, 0, 912, Origin::kPublished,
              "linux-rdma/perftest src/perftest_parameters.h: DEF_INLINE_WRITE 220",
              "payload from host memory that comes within the element where a program asks for it"},
    ParamSpec{"nic.send_buffer", Unit::kBytes, 262'144, 4096, 1e9, Origin::kAssumed,
              "unpublished; more than a round trip at line rate",
              "payload that is asked for or here and has not left"},
    ParamSpec{"nic.max_rd_atomic", Unit::kCount, 16, 1, 256, Origin::kAssumed,
              "mlx5, as remembered; the source was not re-read",
              "RDMA reads that a queue pair has under way"},
    ParamSpec{"nic.post_time", Unit::kNanoseconds, 75, 0, 10'000, Origin::kPublished,
              "UCX src/uct/ib/rc/verbs: 75 ns of software for a request posted through verbs",
              "work of a CPU thread for one work request, without the doorbell"},
    ParamSpec{"nic.doorbell_time", Unit::kNanoseconds, 40, 0, 10'000, Origin::kPublished,
              "UCX src/uct/ib/base: db 40 ns (x86; A64FX 400)",
              "how long the doorbell's store and its fence hold up the thread that posts"},
    ParamSpec{"nic.cqe_time", Unit::kNanoseconds, 20, 0, 10'000, Origin::kPublished,
              "UCX src/uct/ib/base: cqe 20 ns", "work of a CPU thread to take one completion"},
    ParamSpec{"nic.receive_time", Unit::kNanoseconds, 30, 0, 100'000, Origin::kAssumed,
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
    ParamSpec{"nic.poll_time", Unit::kNanoseconds, 75, 0, 10'000, Origin::kAssumed, "50-100 ns",
              "from data or a completion in memory to the thread that polls it"},
};
static_assert(every_param_is_sourced(kNicPacketParams));

using RdmaNicId = Id<struct RdmaNicTag>;
using RdmaQpId = Id<struct RdmaQpTag>;

enum class RdmaOp : std::uint8_t { kWrite, kRead, kSend };

/// Where a NIC reads or writes: the way and the address of a DMA.
struct RdmaBuffer {
  PciePathId path{};
  std::uint64_t address{0};
  Bytes page{Bytes::kib(4)};  ///< by which it is registered
};

/// How a work request ended (ibv_wc_status).
enum class RdmaStatus : std::uint8_t { kSuccess, kRetryExceeded, kRnrRetryExceeded, kFlushed };

/// Whoever posted a work request hears of it here. `tag` is that of the request.
class RdmaClient {
 public:
  /// The last packet of its payload begins to leave the requester's NIC (writes and sends).
  virtual void on_sent(std::uint64_t /*tag*/) {}
  /// The completion is in the requester's memory.
  virtual void on_completion(std::uint64_t /*tag*/) {}
  /// All data are in the target's memory (the requester's for a read).
  virtual void on_visible(std::uint64_t /*tag*/) {}
  /// The completion of a receive is in the receiver's memory.
  virtual void on_received(std::uint64_t /*tag*/) {}
  /// The queue pair has failed, and the completion that says so is in the requester's memory. The
  /// first request that had not ended has the reason, those after it were flushed.
  /// Unless it is overridden it throws InputError, from the event queue.
  virtual void on_error(std::uint64_t tag, RdmaStatus status);

 protected:
  ~RdmaClient() = default;
};

struct RdmaRequest {
  RdmaOp op{RdmaOp::kWrite};
  Bytes bytes{};
  RdmaBuffer local;   ///< of the requester's NIC: read for writes and sends, written for reads
  RdmaBuffer remote;  ///< of the other NIC
  bool is_inline{false};
  bool is_signalled{true};
  std::uint64_t tag{0};
  RdmaClient* client{nullptr};  ///< outlives the request
};

/// NICs with queue pairs: from a doorbell to a completion.
///
/// A doorbell brings one work queue element with it (BlueFlame) or makes the NIC read all that were
/// posted. A queue pair's elements follow each other no sooner than `qp_wqe_time`, and those of all
/// queue pairs pass one server. Payload is read in pieces of the MTU, queue pairs in turn, as
/// long as the send buffer has room; a packet leaves when its own payload is there and all before
/// it have left. At the receiver each packet stays in the port's receive buffer until the last TLP
/// of its payload has left the NIC. Completions are written after the payload, by the same engine
/// and strictly ordered. A read is a request packet; the other NIC sends the payload as above.
///
/// `Settings::latency` is added on every way through a NIC: payload to packet, packet to memory.
///
/// A queue pair whose retries are exhausted fails: what was posted to it completes with an error,
/// and so does what is posted later.
///
/// An element, a packet that came and payload to be read need the queue pair's context and the
/// page's translation. What the NIC's cache does not hold it reads from host memory, and the queue
/// pair waits; others go on.
///
/// Not modelled: memory keys and completion queues in that cache; contexts for ACKs; retransmitted
/// payload is not read again; responses of reads are acknowledged like messages; atomics.
class RdmaNics final : private QueuePairSink, private DmaClient, private EventTarget {
 public:
  struct Settings {
    std::string name;
    Duration latency{};
    Duration doorbell{};
    Duration wqe_time{};
    Duration qp_wqe_time{};
    Bytes wqe{64};
    Bytes cqe{64};
    bool blueflame{true};
    std::int64_t send_buffer{262'144};
    std::uint32_t max_reads{16};
    Bytes icm_cache{Bytes::mib(2)};
    Bytes qp_context{375};
    std::uint32_t icm_fetches{16};
  };
  /// A NIC's host: `data` moves payload and writes completions, `queues` reads work queue elements.
  struct Host {
    DmaEngine* data{nullptr};
    DmaEngine* queues{nullptr};
    RdmaBuffer wqes;  ///< read; contexts too
    RdmaBuffer cqes;  ///< written
  };

  RdmaNics(PacketNetwork& network, const WirePackets& packets)
      : network_{network}, mtu_{packets.mtu}, pairs_{network, packets, *this} {}

  RdmaNicId add_nic();
  PacketEndpoint& endpoint(RdmaNicId nic) { return pairs_.endpoint(nics_[nic.index()].port); }
  /// Before its first queue pair is used.
  void attach(RdmaNicId nic, Settings settings, const Host& host);
  /// A queue pair whose requests `from` posts.
  RdmaQpId connect(RdmaNicId from, RdmaNicId to, const QueuePairs::Ways& ways);
  /// The software has rung the doorbell. Throws InputError later, from the event queue, if the
  /// network loses packets for good or nobody answers a DMA read.
  void post(RdmaQpId qp, const RdmaRequest& request) { post(qp, std::span{&request, 1}); }
  /// The same for several requests and one doorbell: their elements are read together.
  void post(RdmaQpId qp, std::span<const RdmaRequest> requests);
  /// The queue pair's elements are read from there and its requests' completions written there, not
  /// where the NIC's host has them. Its doorbells bring no element with them.
  void place_queues(RdmaQpId qp, const RdmaBuffer& wqes, const RdmaBuffer& cqes);
  /// A doorbell has just reached the NIC, as a store of whoever posts these; their elements are in
  /// the queue's memory.
  void rang(RdmaQpId qp, std::span<const RdmaRequest> requests) { ring(enqueue(qp, requests)); }
  /// The other side posts receives: its NIC knows of them at once, and reads their elements ahead
  /// of need. From the first time on each send takes one; before, one is always at hand.
  void post_receives(RdmaQpId qp, std::uint32_t count);

  const std::string& name(RdmaNicId nic) const { return nics_[nic.index()].settings.name; }
  /// How long the NIC has worked on work queue elements.
  Duration wqe_busy(RdmaNicId nic) const { return nics_[nic.index()].wqe_busy; }
  /// Contexts and translations that were not in the NIC's cache.
  std::uint64_t icm_misses(RdmaNicId nic) const { return nics_[nic.index()].icm_misses; }
  /// Payload that came over the network to the NIC and is in memory.
  Bytes landed(RdmaNicId nic) const { return Bytes{nics_[nic.index()].landed}; }
  /// Receives that were posted and not taken. Precondition: some were posted.
  std::uint32_t receives(RdmaQpId qp) const { return *qps_[qp.index()].receives; }
  /// The wire's half of a queue pair, from the poster or back.
  const QueuePairCounters& counters(RdmaQpId qp, bool back = false) const {
    return pairs_.counters(pair_of(qp.value, back));
  }
  /// The sum over everything that a NIC sends.
  QueuePairCounters sent_by(RdmaNicId nic) const;
  /// For what a NIC's queue pairs have stood still: on average over those that have sent.
  QueuePairs::Waits waits(RdmaNicId nic) const;
  QueuePairs::Waits waits(RdmaQpId qp) const { return pairs_.waits(pair_of(qp.value, false)); }
  /// How long something has waited for a context or a translation.
  Duration icm_waited(RdmaNicId nic) const;

 private:
  enum class Kind : std::uint8_t { kDoorbell, kBegin, kWork, kProvide, kArrive };  // events
  enum class Dma : std::uint8_t {
    kWqe,
    kPayload,
    kLanding,
    kCqe,
    kReceiveCqe,
    kReceives,
    kErrorCqe,
    kIcm
  };

  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  struct Message {
    RdmaRequest request;
    std::uint32_t qp;
    std::uint32_t next{kNone};  ///< posted with the same doorbell
    std::int64_t arrived{0};    ///< bytes that left the receiving port's buffer for memory
    std::int64_t landed{0};     ///< bytes in memory
    std::uint64_t order{0};     ///< in which it was posted
    bool is_begun{false};       ///< by the NIC
    bool has_come{false};       ///< all of it, or of its request, as long as that is under way
    bool has_ended{false};      ///< for the requester
    RdmaStatus status{RdmaStatus::kSuccess};
    std::uint32_t open{0};  ///< what is still to happen
  };
  /// Who waits for a context or a translation: the elements of a queue pair, the packets that came
  /// for a side, or the payload that it is to send.
  struct Gate {
    enum class Kind : std::uint8_t { kWork, kArrive, kFetch } kind;
    std::uint32_t index;
  };
  enum class Fetched : std::uint8_t { kYes, kNoRoom, kWaits };

  /// What a side sends: a message's payload, or the request of a read.
  struct Fetch {
    std::uint32_t message;
    bool is_request;
  };
  struct Arriving {
    std::uint32_t side;
    std::uint64_t tag;
    std::int64_t payload;
    bool is_last;
    Packet* packet;  ///< none if it had no payload
  };
  /// The same until it has left, and who hears of that.
  struct Leaving {
    std::int64_t left;
    std::uint64_t tag;
    RdmaClient* client;  ///< null: nobody
  };
  /// One direction of a queue pair, at its sender.
  struct Side {
    std::uint32_t nic;
    Fifo<Fetch> fetches;
    std::int64_t fetched{0};   ///< of the first
    std::int64_t buffered{0};  ///< of its NIC's send buffer
    Fifo<Leaving> leaving;
    bool in_turn{false};
    std::uint32_t asked{0};      ///< packets whose payload was asked for
    std::deque<bool> is_here;    ///< of those that were not provided, in order
    std::uint32_t first{0};      ///< the number of the first of them
    bool has_page{false};        ///< the translation of what is fetched next
    bool has_context{false};     ///< of the first packet that came
    Fifo<Arriving> arrived;      ///< what came for it, at the other NIC
    Fifo<std::uint32_t> coming;  ///< messages under way to there, in the order of their completion
  };
  struct Qp {
    std::uint32_t from;
    std::uint32_t to;
    Fifo<std::uint32_t> served;  ///< elements that need its context
    Time next_wqe{};             ///< when it may begin with another element
    std::uint32_t reads{0};
    Fifo<std::uint32_t> waiting_reads;
    std::optional<std::uint32_t> receives{};  ///< at the receiver; none: always enough
    bool has_failed{false};
    struct Queues {
      RdmaBuffer wqes;
      RdmaBuffer cqes;
    };
    std::optional<Queues> queues{};  ///< none: those of the NIC's host
  };
  struct IcmFetch {
    std::uint64_t key;
    std::int64_t bytes;
  };
  struct Nic {
    WirePortId port;
    Settings settings;
    Host host;
    Time wqe_free_at;
    Duration wqe_busy;
    std::int64_t buffered{0};
    std::int64_t landed{0};
    Fifo<std::uint32_t> turns;  ///< sides with payload to fetch
    Fifo<Arriving> arriving;
    bool is_fetching{false};
    IcmCache icm;
    std::unordered_map<std::uint64_t, std::vector<Gate>> missing;
    std::uint32_t icm_fetches{0};
    Fifo<IcmFetch> icm_waiting;
    std::uint64_t icm_misses{0};
    Time icm_waits_since{};  ///< as long as something is missing
    Duration icm_waited{};
  };
  struct Landing {
    std::uint32_t nic;
    std::uint32_t message;
    std::int64_t bytes;
    Packet* packet;
  };

  // Sides and the wire's pairs are numbered alike: 2 x qp from the poster, 2 x qp + 1 back. The
  // wire's tag of a message is 2 x its number, and one more for the request of a read.
  static QueuePairId pair_of(std::uint32_t qp, bool back) {
    return QueuePairId{2 * std::size_t{qp} + (back ? 1 : 0)};
  }
  /// The NIC to which a side sends.
  std::uint32_t receiver_of(std::uint32_t side) const { return sides_[side ^ 1U].nic; }
  RdmaBuffer target_of(const Arriving& item) const;
  void on_event(std::uint64_t what) override;
  void schedule(Time at, Kind kind, std::uint32_t index, std::uint32_t number = 0);
  void submit(DmaEngine& engine, bool is_read, const RdmaBuffer& where, std::int64_t bytes,
              Dma kind, std::uint32_t index, std::uint32_t number = 0);

  void on_delivered(QueuePairId /*pair*/, std::uint64_t /*tag*/) override {}
  void on_acknowledged(QueuePairId pair, std::uint64_t tag) override;
  void on_failure(QueuePairId pair) override;
  void on_sent(QueuePairId pair, Bytes payload) override;
  bool keeps(const Arrival& arrival, Packet& packet) override;
  bool is_ready(QueuePairId pair, std::uint64_t tag) override;

  void on_dma_sent(std::uint64_t tag) override;
  void on_dma_done(std::uint64_t tag) override;
  void on_dma_timeout(std::uint64_t tag) override;

  std::uint32_t enqueue(RdmaQpId qp, std::span<const RdmaRequest> requests);
  void ring(std::uint32_t message);
  void take_wqes(std::uint32_t message);
  std::uint32_t begin(std::uint32_t message);
  void serve(std::uint32_t message);
  void work(std::uint32_t qp);
  void start(std::uint32_t message);
  void request_read(std::uint32_t message);
  void send(std::uint32_t side, std::uint32_t message, bool is_request);
  void fetch(std::uint32_t nic);
  Fetched fetch_one(std::uint32_t side);
  void provide(std::uint32_t side, std::uint32_t number);
  void arrive(std::uint32_t side);
  void arrived(const Arriving& item);
  void take_turn(std::uint32_t side, std::uint32_t message);
  bool has_context(std::uint32_t nic, std::uint32_t qp, Gate gate);
  bool has_page(std::uint32_t nic, const RdmaBuffer& buffer, Gate gate);
  bool has(std::uint32_t nic, std::uint64_t key, std::int64_t bytes, Gate gate);
  void read_icm(std::uint32_t nic, IcmFetch fetch);
  void have_read_icm(std::uint32_t fetch);
  void open(Gate gate);
  void landed(std::uint32_t message, std::int64_t bytes);
  void write_cqe(std::uint32_t nic, std::uint32_t message, Dma kind);
  void close(std::uint32_t message);
  void give_up(std::uint32_t message, RdmaStatus status);
  void clear(std::uint32_t side);

  PacketNetwork& network_;
  std::int64_t mtu_;
  QueuePairs pairs_;
  std::vector<Nic> nics_;
  std::vector<Qp> qps_;
  std::vector<Side> sides_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_messages_;
  std::uint64_t posted_{0};
  std::vector<Landing> landings_;
  std::vector<std::uint32_t> free_landings_;
  std::vector<std::pair<std::uint32_t, IcmFetch>> icm_reads_;  ///< under way, and of which NIC
  std::vector<std::uint32_t> free_icm_reads_;
};

}  // namespace weft
