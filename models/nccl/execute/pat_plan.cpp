#include "models/nccl/execute/pat_plan.hpp"

#include <algorithm>

namespace weft {
namespace {

/// Groups of warps that copy a piece each at most: 512 threads (NCCL src/include/collectives.h,
/// NCCL_PAT_NWORKERS).
constexpr std::uint32_t kGroups = 16;

/// What a channel has of each rank.
Bytes of_rank(const Choice& choice, Bytes bytes, std::uint32_t ranks) {
  return Bytes{pieces(bytes, Bytes{std::int64_t{ranks} * choice.channels})};
}

/// One channel: its connections, then a block for each rank.
class PatChannel {
 public:
  /// `ranks`: all that there are, of which the builder may have some.
  PatChannel(PlanBuilder& builder, const Protocol& protocol, Op op, std::uint32_t ranks,
             const Tree& nics, std::uint32_t number)
      : builder_{builder},
        protocol_{protocol},
        is_gather_{op == Op::kAllGather},
        nics_{nics},
        number_{number},
        dimensions_{pat_dimensions(ranks)} {}

  void add(const std::vector<PatPass>& passes, Bytes data) {
    connect();
    for (std::uint32_t r = 0; r < builder_.ranks(); ++r) {
      builder_.add_block(protocol_, r, number_);
      builder_.in_parts(data, protocol_.chunk, [&](Bytes chunk) {
        for (const PatPass& pass : passes) add_pass(r, pass, chunk);
      });
    }
  }

 private:
  /// The rank that data of a dimension go to: down the ranks where they are gathered, up where they
  /// are added up (NCCL src/transport/generic.cc, ncclTransportPatConnect).
  std::uint32_t next(std::uint32_t rank, std::uint32_t dimension) const {
    const std::uint32_t n = builder_.ranks();
    const std::uint32_t far = (1U << dimension) % n;
    return (rank + (is_gather_ ? n - far : far)) % n;
  }

  /// In the same order on each rank: by dimension.
  void connect() {
    const std::uint32_t n = builder_.ranks();
    out_.resize(std::size_t{n} * dimensions_);
    in_.resize(out_.size());
    for (std::uint32_t d = 0; d < dimensions_; ++d) {
      for (std::uint32_t r = 0; r < n; ++r) {
        const std::uint32_t to = next(r, d);
        out_[at(r, d)] = in_[at(to, d)] =
            builder_.connect(protocol_, {.rank = r, .nic = nics_[r].nic},
                             {.rank = to, .nic = nics_[to].nic}, number_);
      }
    }
  }

  /// Its copies go by alike routes, so that one connection of each side stands for all.
  void add_pass(std::uint32_t rank, const PatPass& pass, Bytes chunk) {
    const auto of = [&](const std::vector<ConnectionIndex>& side,
                        const std::vector<std::uint32_t>& dimensions) {
      ConnectionList out;
      for (const std::uint32_t d : dimensions) out.push_back(side[at(rank, d)]);
      return out;
    };
    const auto any = [&](auto&& is) {
      return std::any_of(pass.copies.begin(), pass.copies.end(), is);
    };
    const bool takes = any([](const PatCopy& c) { return c.take != 0; });
    const bool begins = any([](const PatCopy& c) { return c.take == 0; });
    const bool gives = any([](const PatCopy& c) { return c.give != 0; });
    PlanBuilder::Slices moved;
    if (takes) moved.in = {in_[at(rank, 0)]};
    if (gives) moved.out = {out_[at(rank, 0)]};
    const PlanBuilder::Primitive primitive{
        .loads = is_gather_ ? begins : pass.is_first,
        .stores = !gives || (is_gather_ && pass.is_first),
        .adds = !is_gather_ && !pass.is_first,
    };
    builder_.pass_within(protocol_, chunk * pass.places,
                         {of(in_, pass.begun_in), of(out_, pass.begun_out)},
                         {of(in_, pass.ended_in), of(out_, pass.ended_out)}, moved, primitive,
                         (pass.places + kGroups - 1) / kGroups);
  }

  std::size_t at(std::uint32_t rank, std::uint32_t dimension) const {
    return std::size_t{rank} * dimensions_ + dimension;
  }

  PlanBuilder& builder_;
  const Protocol& protocol_;
  bool is_gather_;
  const Tree& nics_;
  std::uint32_t number_;
  std::uint32_t dimensions_;
  std::vector<ConnectionIndex> out_;  // by rank and dimension
  std::vector<ConnectionIndex> in_;
};

}  // namespace

Protocol make_pat_protocol(const DeviceParams& devices, Op op, const Choice& choice, Bytes bytes,
                           std::uint32_t ranks) {
  Protocol protocol = make_protocol(devices.params(), "Simple", KernelShape::kTree, ranks);
  const std::int64_t least_chunks = op == Op::kAllGather ? 32 : 16;
  while (protocol.chunk * (least_chunks * choice.channels) > bytes &&
         protocol.chunk > Bytes::kib(64)) {
    protocol.chunk = Bytes{protocol.chunk.count() / 2};
  }
  return protocol;
}

PatShape pat_shape(const Protocol& protocol, const Choice& choice, Bytes bytes,
                   std::uint32_t ranks) {
  return pat_shape(ranks, of_rank(choice, bytes, ranks), protocol.chunk, protocol.slots);
}

Plan pat_plan(const DeviceParams& devices, const Communicator& communicator,
              const Schedule& schedule, Op op, Bytes bytes, const Choice& choice,
              const Stop* stop) {
  PlanBuilder builder(devices, communicator, schedule, op, bytes, choice, stop);
  const std::uint32_t n = ranks_of(schedule, communicator);
  const Protocol protocol = make_pat_protocol(devices, op, choice, bytes, n);
  const std::vector<PatPass> passes = pat_passes(op, n, pat_shape(protocol, choice, bytes, n));
  for (std::uint32_t c = 0; c < choice.channels; ++c) {
    PatChannel(builder, protocol, op, n, schedule.trees.at(c), c)
        .add(passes, of_rank(choice, bytes, n));
  }
  return std::move(builder).take(protocol);
}

}  // namespace weft
