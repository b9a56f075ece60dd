#include "replay/device/peer_link.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "sim/base/error.hpp"

namespace weft::replay {
namespace {

constexpr int kTries = 100;
constexpr std::chrono::milliseconds kBetweenTries{100};

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses addresses(const char* host, std::uint16_t port, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host, std::to_string(port).c_str(), &wanted, &found);
  if (error != 0) {
    throw InputError(std::string("--peer ") + (host != nullptr ? host : "") + ": " +
                     gai_strerror(error));
  }
  return Addresses(found);
}

[[noreturn]] void fail(const std::string& what) {
  throw InputError("peer: " + what + ": " + std::strerror(errno));
}

int opened(const addrinfo& at) {
  const int out = socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC, at.ai_protocol);
  if (out < 0) fail("no socket");
  return out;
}

}  // namespace

PeerLink PeerLink::accepted(std::uint16_t port) {
  const Addresses any = addresses(nullptr, port, AI_PASSIVE);
  const PeerLink door(opened(*any));
  const int yes = 1;
  setsockopt(door.socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(door.socket_, any->ai_addr, any->ai_addrlen) != 0 || listen(door.socket_, 1) != 0) {
    fail("port " + std::to_string(port));
  }
  const int socket = accept4(door.socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) fail("nobody came");
  return PeerLink(socket);
}

PeerLink PeerLink::connected(const std::string& host, std::uint16_t port) {
  const Addresses found = addresses(host.c_str(), port, 0);
  for (int i = 0; i < kTries; ++i) {
    for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
      PeerLink link(opened(*at));
      if (connect(link.socket_, at->ai_addr, at->ai_addrlen) == 0) return link;
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  fail(host + ", port " + std::to_string(port));
}

PeerLink::~PeerLink() {
  if (socket_ >= 0) close(socket_);
}

void PeerLink::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t step = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (step <= 0) fail("it is gone");
    bytes = bytes.subspan(static_cast<std::size_t>(step));
  }
}

void PeerLink::receive(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t step = recv(socket_, bytes.data(), bytes.size(), 0);
    if (step == 0) throw InputError("peer: it ended; its standard error says why");
    if (step < 0) fail("it is gone");
    bytes = bytes.subspan(static_cast<std::size_t>(step));
  }
}

void PeerLink::meet() {
  std::array<std::byte, 1> here{};
  send(here);
  receive(here);
}

}  // namespace weft::replay
