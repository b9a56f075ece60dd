#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/transport/packet_host.hpp"

namespace weft {

/// "This device writes (or reads) so many bytes of that device's memory, again and again, so many
/// at a time."
struct DmaStream {
  DmaEngine* engine{nullptr};  ///< of the initiator; streams may share one
  DeviceId initiator{};
  DeviceId target{};
  bool is_read{false};
  Bytes size{};                  ///< of one transfer
  std::uint64_t transfers{100};  ///< how many; the first `at_a_time` are not measured
  std::uint32_t at_a_time{1};
  Duration setup{};            ///< from one transfer's end until the next is submitted
  Bytes offset{0};             ///< of the first transfer in the target's memory
  Bytes stride{0};             ///< from one to the next; 0: `size`
  Bytes range{Bytes::gib(1)};  ///< after which they begin again
};

/// What a stream came to.
struct DmaStreamResult {
  Bandwidth rate{Bandwidth::bytes_per_s(1)};  ///< payload, while all streams ran
  Duration latency;                           ///< of the first transfer: submitted to done
  std::uint64_t timeouts{0};                  ///< reads that nobody completed
};

/// How much of the time something was in use while the streams ran.
struct UsedShare {
  /// kLink: a link carried, whose rate nothing exceeds; kWork: anything else worked.
  enum class What : std::uint8_t { kLink, kWork, kWait };
  What what{What::kWork};
  std::string name;
  double share{0};
  /// Of a wait: it comes about, too, where something else is slow that is waited for behind it.
  enum class Behind : std::uint8_t { kNothing, kCredits, kTags, kReads };
  Behind behind{Behind::kNothing};
  double link{0};  ///< of a wait for credits: how long their link has worked
};

/// What works this share of the time is never idle: the rest is its beginning and its end.
inline constexpr double kNeverIdle = 0.97;

/// The link, gate or memory that was never idle, or else the tags or credits that were waited for,
/// or "latency". `used`: fullest first.
std::string limited_by(const std::vector<UsedShare>& used);

/// The link that worked most of all; null: none did. `used`: fullest first.
const UsedShare* busiest_link(const std::vector<UsedShare>& used);

/// What has been in use from one look to another. Looks are lists of everything and the seconds
/// that it has worked or waited so far, always in the same order.
class UsageMeter {
 public:
  using Look = std::vector<UsedShare>;
  /// Adds a host's links, gates, memories and these engines to a look.
  static void add(Look& look, PacketHost& host, const std::vector<DmaEngine*>& engines);
  /// The shares of the time between, fullest first.
  static std::vector<UsedShare> between(const Look& before, const Look& after, Duration time);
};

struct DmaTrafficResult {
  std::vector<DmaStreamResult> streams;
  Duration elapsed;
  /// Links, gates, memories by the share of time that they worked; engines by that in which a
  /// request waited for a tag; virtual lanes by that in which a TLP waited for credit. Fullest
  /// first.
  std::vector<UsedShare> used;

  std::string limited_by() const { return weft::limited_by(used); }
  /// The largest share among what has `name` in its name; 0 if nothing has.
  double share_of(std::string_view name) const;
  Bandwidth total() const;
};

/// Runs streams side by side on a host until all are done. Precondition: the network is sealed and
/// nothing else runs on it.
DmaTrafficResult run_streams(PacketHost& host, const std::vector<DmaStream>& streams);

/// A host with its own events and network, for streams alone.
class DmaTestbed {
 public:
  /// `shuffle_ties`: a seed for EventQueue::shuffling_ties.
  explicit DmaTestbed(const Machine& machine, std::optional<std::uint64_t> shuffle_ties = {});

  PacketHost& host() { return host_; }
  EventQueue& events() { return events_; }
  DmaTrafficResult run(const std::vector<DmaStream>& streams) {
    return run_streams(host_, streams);
  }

 private:
  EventQueue events_;
  PacketNetwork network_;
  PacketHost host_;
};

}  // namespace weft
