#include "models/nccl/decide/gpu_nics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/nccl/decide/decided_schedule.hpp"
#include "models/registry/registry.hpp"
#include "sim/input/topology_file.hpp"

namespace weft::test::models_gpu_nics {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Found {
  explicit Found(const std::string& topology, const NcclEnv& env = {}) {
    const ParamCatalog catalog = make_catalog();
    const PartLibrary parts(catalog);
    Params params(catalog);
    TopologySpec spec = read_topology(WEFT_SOURCE_DIR "/topologies/" + topology, catalog);
    for (const auto& [key, value] : spec.defaults) params.set_by_topology(key, value);
    const Fabric fabric(std::move(spec), 2);
    const DeviceParams devices(fabric, params, parts);
    nics = nccl_gpu_nics(devices, env, {});
    for (const GpuNics& one : nics.gpus) {
      names.push_back(fabric.device(one.nics.front()).name);
      std::vector<std::uint32_t>& places = by_show.emplace_back();
      for (const DeviceId nic : one.nics) {
        for (std::uint32_t n = 0; n < fabric.count(DeviceKind::kNic); ++n) {
          if (fabric.device(0, DeviceKind::kNic, n) == nic) places.push_back(n);
        }
      }
    }
    const NcclRun run = followed(decide_run(devices, MemoryPath::kNccl, env, {}), fabric);
    by_run = decided_schedule(devices, run).p2p_nics;
  }

  NcclGpuNics nics;
  std::vector<std::string> names;                   ///< of each GPU's first
  std::vector<std::vector<std::uint32_t>> by_show;  ///< by GPU, indices among the node's NICs
  std::vector<std::vector<std::uint32_t>> by_run;   ///< as Schedule::p2p_nics
};

TEST(GpuNics, AreThoseOfWhatRuns) {
  for (const char* topology :
       {"hgx-h100-1nic.yaml", "hgx-h100-2nic.yaml", "hgx-h100-4nic.yaml", "hgx-h100-8nic.yaml"}) {
    for (const char* policy : {"AUTO", "ALL"}) {
      const Found found(topology, parse_nccl_env({{"NCCL_NETDEVS_POLICY", policy}}));
      EXPECT_EQ(found.by_show, found.by_run) << topology << " " << policy;
    }
  }
}

// Below the PCIe switches of gpu0 and gpu1, and of gpu4 and gpu5, there is a NIC; to the other GPUs
// both are as near, by PXN, and the parity of the GPU's number decides: 2 and 6 have
// the first, 3 and 7 the second.
TEST(GpuNics, OfATieAreByTheGpusNumber) {
  const Found found("hgx-h100-2nic.yaml");
  EXPECT_THAT(found.names,
              ElementsAre("nic0", "nic0", "nic0", "nic1", "nic1", "nic1", "nic0", "nic1"));
  EXPECT_EQ(found.nics.gpus[0].distance, NcclPathType::kPix);
  EXPECT_THAT(found.nics.gpus[0].tied, IsEmpty());
  EXPECT_EQ(found.nics.gpus[3].distance, NcclPathType::kPxn);
  EXPECT_EQ(found.nics.gpus[3].tied.size(), 2U);
  EXPECT_THAT(found.nics.gpus[3].sharing,
              ElementsAre(found.nics.gpus[4].gpu, found.nics.gpus[5].gpu, found.nics.gpus[7].gpu));
}

}  // namespace
}  // namespace weft::test::models_gpu_nics
