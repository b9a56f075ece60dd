#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weft::replay {

/// A TCP connection to the process that runs the other ends. Everything throws InputError with the
/// system's word for what went wrong.
class PeerLink {
 public:
  /// Waits for one peer on `port`.
  static PeerLink accepted(std::uint16_t port);
  /// Tries for ten seconds: both ends may be started at once.
  static PeerLink connected(const std::string& host, std::uint16_t port);
  ~PeerLink();
  PeerLink(PeerLink&& other) noexcept : socket_{other.socket_} { other.socket_ = -1; }
  PeerLink& operator=(PeerLink&&) = delete;

  void send(std::span<const std::byte> bytes);
  void receive(std::span<std::byte> bytes);
  /// Until the peer is here too.
  void meet();

 private:
  explicit PeerLink(int socket) : socket_{socket} {}

  int socket_;
};

}  // namespace weft::replay
