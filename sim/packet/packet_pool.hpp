#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "sim/packet/packet.hpp"

namespace weft {

/// Packets that are reused for ever: nothing allocates once as many exist as ever live at one time.
class PacketPool {
 public:
  Packet& take() {
    if (free_ == nullptr) grow();
    Packet& packet = *free_;
    free_ = packet.next_;
    packet = Packet{};
    ++alive_;
    return packet;
  }
  void give_back(Packet& packet) {
    packet.next_ = free_;
    free_ = &packet;
    --alive_;
  }

  std::size_t alive() const { return alive_; }

 private:
  static constexpr std::size_t kChunk = 256;

  void grow() {
    chunks_.push_back(std::make_unique<Packet[]>(kChunk));
    for (std::size_t i = kChunk; i > 0; --i) {
      Packet& packet = chunks_.back()[i - 1];
      packet.next_ = free_;
      free_ = &packet;
    }
  }

  std::vector<std::unique_ptr<Packet[]>> chunks_;
  Packet* free_{nullptr};
  std::size_t alive_{0};
};

}  // namespace weft
