#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/pcie/domain.hpp"
#include "models/pcie/tags.hpp"
#include "sim/engine/fifo.hpp"

namespace weft {

/// Who asked a DMA engine for something. `tag` is that of the job.
class DmaClient {
 public:
  /// A write's last TLP has left the device, so the device's copy of the data is free.
  virtual void on_dma_sent(std::uint64_t /*tag*/) {}
  /// A write is visible at its target, or all data of a read are here.
  virtual void on_dma_done(std::uint64_t tag) = 0;
  /// Nobody completed a read: the completion timeout expired.
  virtual void on_dma_timeout(std::uint64_t /*tag*/) {}

 protected:
  ~DmaClient() = default;
};

/// One transfer between a device and a memory.
struct DmaJob {
  PcieRoutesId routes{};  ///< of this direction
  bool is_read{false};
  std::uint64_t address{0};
  Bytes bytes{};  ///< more than none
  std::uint64_t tag{0};
  DmaClient* client{nullptr};  ///< outlives the job
};

/// A requester: writes and reads ranges of memory over its device's PCIe port.
///
/// Writes go out in order, one TLP of at most `write_payload` after the other; reads likewise, in
/// requests of at most `read_request`, as long as there are tags: each is taken until the last
/// completion is here. Writes and reads do not wait for each other here, only in the port's queue,
/// which holds one TLP of each; or, of an engine with a `write_window`, all that window and tags
/// allow, in one line: then reads find a burst of writes before them. Jobs of one direction are
/// worked off in order. Not modelled: time to start a job (the caller's).
class DmaEngine final : public EventTarget, private PcieTags::User {
 public:
  struct Settings {
    std::string name;
    std::int64_t write_payload{4096};  ///< a route may have less
    std::int64_t read_request{512};
    std::uint32_t tags{256};          ///< of its own, unless it shares its device's
    PcieTags* shared_tags{nullptr};   ///< outlive it
    std::optional<Bandwidth> rate{};  ///< payload that it sends or asks for; none: all it can
    /// Data of writes that are not acknowledged yet, which is so for `write_ack` after they have
    /// left: together they bound the rate of writes. 0: no such bound.
    Bytes write_window{0};
    Duration write_ack{};
    /// Inside the device: from the data's arrival until the request's tag is free and the data can
    /// be used.
    Duration read_extra{};
    Duration write_extra{};  ///< likewise of a write, before it leaves: it is visible so much later
    Duration completion_timeout{Duration::ns(10'000'000)};
  };
  DmaEngine(PcieDomain& domain, Settings settings);

  void submit(const DmaJob& job);

  const std::string& name() const { return settings_.name; }
  /// Its own, or its device's.
  const PcieTags& tags() const { return *tags_; }

  // What the device and the memories tell.
  void on_departure(const Packet& tlp);
  void on_completion(Packet& tlp);
  void written(std::uint32_t transaction, Duration visible_in);
  void on_event(std::uint64_t what) override;

 private:
  enum Event : std::uint64_t { kWritten, kRead, kTimeout, kWritePace, kReadPace, kAck };
  struct Job {
    DmaJob job;
    std::uint64_t next{0};         ///< address
    std::int64_t unsent{0};        ///< bytes not asked for, or not sent
    std::int64_t awaited{0};       ///< bytes of a read that are not here
    std::uint32_t transaction{0};  ///< of a write
    bool failed{false};
  };
  struct Returning {
    Time at;
    std::uint32_t job;
    std::int64_t bytes;
  };
  struct Unacknowledged {
    Time until;
    Bytes bytes;
  };
  struct Outstanding {
    Time since;
    std::uint32_t transaction;
    std::uint64_t number;
  };

  /// A direction's pace, where the engine has a rate of its own.
  struct Pace {
    Time next;
    bool is_waiting{false};
  };
  bool has_window() const { return settings_.write_window > Bytes{0}; }
  bool must_wait(Pace& pace, Event event);
  void count(Pace& pace, std::int64_t bytes);
  void offer_writes();
  void offer_write();
  void offer_reads();
  void on_tag() override { offer_reads(); }
  void offer_read();
  void acknowledged();
  void returned(std::uint32_t job, std::int64_t bytes);
  void drop_answered();
  void check_timeouts();

  PcieDomain& domain_;
  EventQueue& events_;
  Settings settings_;
  PcieTags own_tags_;
  PcieTags* tags_;
  std::vector<Job> jobs_;
  std::vector<std::uint32_t> free_jobs_;
  Fifo<std::uint32_t> writes_;
  Fifo<std::uint32_t> reads_;
  Pace write_pace_;
  Pace read_pace_;
  bool write_waits_{false};  ///< one TLP is in the link's queue; never with a window
  bool read_waits_{false};
  Bytes unacknowledged_{0};
  Fifo<Unacknowledged> departed_;
  Fifo<Returning> returning_;
  // Reads in order of their requests, for the timeout; the oldest is not answered.
  Fifo<Outstanding> outstanding_;
  std::vector<std::uint64_t> number_of_;  ///< by transaction: which read uses it now; 0: none
  std::uint64_t reads_sent_{0};
  std::optional<EventId> timer_;
};

}  // namespace weft
