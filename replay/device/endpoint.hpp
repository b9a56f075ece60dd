#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "replay/device/gpu_memory.hpp"

namespace weft::replay {

/// What the other side must know of a queue pair, as it goes over the link.
struct Address {
  ibv_gid gid;
  std::uint64_t memory;
  std::uint32_t key;
  std::uint32_t number;
  std::uint32_t mtu;
  std::uint16_t lid;
  std::uint16_t padding;
};

/// A device with memory, one completion queue and reliable queue pairs. Throws InputError.
class Endpoint {
 public:
  /// `gpu`: the memory is that GPU's, by DMA-BUF; none: the host's.
  Endpoint(const std::string& device, std::size_t bytes, std::size_t pairs,
           std::optional<unsigned> gpu = {});
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  Address address(std::size_t pair) const;
  void connect(std::size_t pair, const Address& peer);
  ibv_qp* pair(std::size_t index) const { return pairs_[index]; }
  ibv_sge segment(std::uint64_t bytes) const;
  ibv_cq* queue() const { return queue_; }
  /// Requests that a queue pair takes, sends and receives each.
  std::uint32_t depth() const { return depth_; }

 private:
  void make(const std::string& device, std::size_t bytes, std::size_t pairs,
            std::optional<unsigned> gpu);
  void release();
  void open(const std::string& device);
  void register_memory();
  std::uint64_t memory() const;
  void find_address();
  void make_pairs(std::size_t count);
  void change(ibv_qp* pair, ibv_qp_attr& to, int mask, const char* state);

  ibv_context* context_{nullptr};
  ibv_pd* domain_{nullptr};
  ibv_mr* region_{nullptr};
  ibv_cq* queue_{nullptr};
  std::vector<ibv_qp*> pairs_;
  std::vector<std::byte> host_memory_;
  std::optional<GpuMemory> gpu_memory_;
  std::uint32_t depth_{0};
  std::uint8_t reads_{0};
  Address own_{};
  std::uint8_t gid_index_{0};
};

}  // namespace weft::replay
