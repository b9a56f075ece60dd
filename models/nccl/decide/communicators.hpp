#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/nccl/decide/decided_schedule.hpp"
#include "sim/plan/communicator.hpp"

namespace weft {

/// NCCL's decisions for communicators of some of a machine's GPUs. NCCL looks for paths, rings,
/// trees and NICs on each node with only the communicator's GPUs there, and all NICs (init.cc,
/// initTransportsRank; graph/topo.cc, ncclTopoGetSystem). Communicators with the same GPUs of as
/// many nodes share a decision.
class CommunicatorDecisions {
 public:
  /// Who decides, and for which transport.
  struct Asked {
    bool simple{false};  ///< weft's simple rules
    NcclEnv env{};
    NcclVersion version{};
    bool multicast{true};
  };
  /// The references must outlive it.
  CommunicatorDecisions(const DeviceParams& devices, const PartLibrary& parts, Asked asked);
  ~CommunicatorDecisions();

  /// What is decided for a communicator over one memory path, in the numbers of the machine. Valid
  /// as long as this is. Of one GPU a node, not all at the same place, what is decided for sends
  /// and receives. Throws InputError where NCCL cannot be followed, for collectives of such, and
  /// for else GPUs that are not the same on each of its nodes, in the machine's order, node by
  /// node.
  Schedule schedule(const Communicator& communicator, MemoryPath path);
  /// What is decided for a communicator of so many nodes with the GPUs that `like` has on each, in
  /// the numbers of such a communicator. Valid, and throws, likewise.
  const Schedule& schedule_of(const Communicator& like, std::uint32_t nodes, MemoryPath path);
  const Asked& asked() const { return asked_; }
  /// Whose GDR NCCL by itself declines at some ring's end, of all decisions so far:
  /// GPUs, by their names in a node; the GDR path is forced there.
  const std::vector<std::string>& declined() const { return declined_; }

 private:
  struct Decided;
  struct Key {
    std::vector<std::uint32_t> places;  ///< of its GPUs in each node
    std::uint32_t nodes;
    MemoryPath path;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  const Decided& decide(const Key& key);
  Schedule of_unlike_places(const Communicator& communicator, MemoryPath path);
  void add_declined(const Fabric& fabric, const NcclRun& run);

  const DeviceParams* devices_;
  const PartLibrary* parts_;
  Asked asked_;
  std::map<Key, std::unique_ptr<Decided>> decided_;
  std::vector<std::string> declined_;
};

}  // namespace weft
