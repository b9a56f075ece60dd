#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weft {

/// What an application asks for: the operations of nccl-tests.
enum class Op : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kSendRecv
};

/// busbw / algbw on n ranks, as nccl-tests defines it.
enum class BusFactor : std::uint8_t {
  kTwice,  ///< 2(n-1)/n
  kOnce,   ///< (n-1)/n
  kPlain,  ///< 1
};

/// A row of the one table of operations.
struct Operation {
  Op op;
  std::string_view name;  ///< "allreduce", as nccl-tests' programs are called
  BusFactor bus;
  bool point_to_point;  ///< made of sends and receives between pairs, without algorithm
  bool chain;           ///< on a ring goes once through all ranks, to or from a root
};

/// In the order of Op.
inline constexpr std::array<Operation, 7> kOperations{{
    {Op::kAllReduce, "allreduce", BusFactor::kTwice, false, false},
    {Op::kAllGather, "allgather", BusFactor::kOnce, false, false},
    {Op::kReduceScatter, "reducescatter", BusFactor::kOnce, false, false},
    {Op::kBroadcast, "broadcast", BusFactor::kPlain, false, true},
    {Op::kReduce, "reduce", BusFactor::kPlain, false, true},
    {Op::kAllToAll, "alltoall", BusFactor::kOnce, true, false},
    {Op::kSendRecv, "sendrecv", BusFactor::kPlain, true, false},
}};

/// Their names, in the same order.
inline constexpr auto kOpNames = [] {
  std::array<std::string_view, kOperations.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kOperations[i].name;
  return names;
}();

constexpr const Operation& operation(Op op) { return kOperations[static_cast<std::size_t>(op)]; }
constexpr std::string_view op_name(Op op) { return operation(op).name; }
constexpr bool is_point_to_point(Op op) { return operation(op).point_to_point; }
constexpr bool is_chain(Op op) { return operation(op).chain; }

/// Spelled all_reduce or AllReduce, too. Throws InputError with the known names.
Op parse_op(std::string_view text);

/// busbw / algbw of an operation on `ranks` ranks, at least one.
double busbw_factor(Op op, std::uint32_t ranks);

}  // namespace weft
