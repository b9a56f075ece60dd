#include "models/nic/completions.hpp"

namespace weft {
namespace {

constexpr unsigned kCompletionKindBits =
    2;  // of a DMA's tag; the others are the work request's number

}  // namespace

void Completions::write(std::uint32_t slot, Kind kind, const RdmaBuffer& where) {
  submit(*host_.data, false, where, settings_.cqe.count(),
         std::uint64_t{slot} << kCompletionKindBits | static_cast<unsigned>(kind));
}

void Completions::on_dma_done(std::uint64_t tag) {
  const auto slot = static_cast<std::uint32_t>(tag >> kCompletionKindBits);
  const RdmaRequest request = requests_[slot].request;
  switch (static_cast<Kind>(tag & ((1U << kCompletionKindBits) - 1))) {
    case Kind::kRequest:
      requests_.close(slot);
      request.client->on_completion(request.tag);
      return;
    case Kind::kReceive:
      requests_.close(slot);
      request.client->on_received(request.tag);
      return;
    case Kind::kError:
      request.client->on_error(request.tag, requests_[slot].status);
      return;
  }
}

}  // namespace weft
