#pragma once

#include <cstdint>
#include <deque>

#include "models/nic/rdma_nic.hpp"

namespace weft {

class ReceiveStream;

/// One direction of a queue pair at the NIC that sends: from a message to its packets.
///
/// A packet goes through it from top to bottom:
///   send      its message joins the stream
///   fetch     in the stream's turn, with room in the send buffer, its payload is read from memory
///             (first the translation of its page, where the NIC has none)
///   provide   `latency` after the payload has come, and after all packets before it, the wire's
///             half may send it
///   on_sent   it begins to leave: its room is free
class SendStream final : private EventTarget, private IcmWaiter, private NicDma {
 public:
  enum class Carries : std::uint8_t { kRequests, kAnswers };

  /// `receiver`: its other end. All that it refers to outlives it.
  SendStream(RdmaNetwork& network, RdmaNic& nic, QueuePairId pair, Carries carries,
             ReceiveStream& receiver)
      : network_{network}, nic_{nic}, pair_{pair}, carries_{carries}, receiver_{receiver} {}
  SendStream(const SendStream&) = delete;
  SendStream& operator=(const SendStream&) = delete;

  /// Sends a work request's data after those before; or only the request of a read.
  void send(std::uint32_t slot, bool is_request);

  enum class Fetched : std::uint8_t { kYes, kNoRoom, kWaits };
  /// The stream's turn: asks for one packet's payload.
  Fetched fetch();
  /// Whether it takes another turn after one that fetched.
  bool wants_turn() { return is_in_turn_ = !messages_.empty(); }

  /// A packet begins to leave.
  void on_sent(Bytes payload);
  /// The queue pair has failed: gives the send buffer's room back and sends no more.
  void fail();

 private:
  /// A message's payload, or the request of a read.
  struct Message {
    std::uint32_t slot;
    bool is_request;
  };
  /// The same until it has left, and who hears of that.
  struct Leaving {
    std::int64_t left;
    std::uint64_t tag;
    RdmaClient* client;  ///< null: nobody
  };

  void on_icm() override;
  void on_dma_done(std::uint64_t number) override { provide_later(number); }
  void on_event(std::uint64_t number) override { provide(static_cast<std::uint32_t>(number)); }
  void provide_later(std::uint64_t number);
  void provide(std::uint32_t number);

  RdmaNetwork& network_;
  RdmaNic& nic_;
  QueuePairId pair_;
  Carries carries_;  ///< work requests, or the data of reads
  ReceiveStream& receiver_;
  bool has_failed_{false};
  bool is_in_turn_{false};
  bool has_page_{false};  ///< the translation of what is fetched next
  Fifo<Message> messages_;
  std::int64_t fetched_{0};   ///< of the first
  std::int64_t buffered_{0};  ///< of its NIC's send buffer
  std::uint32_t asked_{0};    ///< packets whose payload was asked for
  std::uint32_t first_{0};    ///< the number of the first that was not provided
  std::deque<bool> is_here_;  ///< of those from it on
  Fifo<Leaving> leaving_;
};

}  // namespace weft
