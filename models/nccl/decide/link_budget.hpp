#pragma once

#include <vector>

#include "models/nccl/decide/paths.hpp"

namespace weft {

/// What is left of every link while channels are laid out, GB/s. In float, rounded to 1/1000 after
/// each step, as NCCL does (followPath): whether the last channel fits hangs on it.
class NcclLinkBudget {
 public:
  explicit NcclLinkBudget(const NcclSystem& system);

  /// Takes `bw` from every link of the path; false, and nothing is taken, if a link has less. A
  /// negative `bw` gives back. `from_gpu`: traffic starts at a GPU; across Intel's root complex it
  /// then costs 6/5 on PCIe. Writes into GPUs before Ampere, not from GPUs, cost 1/8 backwards.
  bool take(const NcclPath& path, bool from_gpu, float bw);

  float left(int link) const { return left_[static_cast<std::size_t>(link)]; }
  const std::vector<float>& left() const { return left_; }  ///< by link

 private:
  /// How many steps could be taken, of at most `most`.
  int follow(const NcclPath& path, bool from_gpu, float bw, int most);
  float pcie_bw(const NcclPath& path, bool from_gpu, float bw) const;

  std::vector<float> left_;
  /// What of a link the search asks for again and again, side by side.
  struct Kind {
    int reverse{-1};  ///< -1 if there is none
    bool is_pci{false};
    bool enters_intel{false};  ///< a CPU of Intel's
    bool reads_back{false};    ///< it enters a GPU before Ampere
    bool shares_back{false};   ///< NVLink into a POWER CPU, one rate for both ways
  };
  std::vector<Kind> kinds_;  ///< of each link
};

}  // namespace weft
