#include "models/collective/sample.hpp"

#include <gtest/gtest.h>

#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_sample {
namespace {

bool is_sampled(const std::string& topology, std::uint32_t nodes) {
  const MachineUnderTest m(
      topology, {"network.kind=leaf-spine", "network.ports=144", "netswitch.part=quantum-x800"},
      nodes);
  return may_be_sampled(Op::kAllReduce, m.machine());
}

TEST(Sample, StandsForManyNodesOrGpus) {
  EXPECT_FALSE(is_sampled("hgx-h100-8nic.yaml", 32));
  EXPECT_TRUE(is_sampled("hgx-h100-8nic.yaml", 33));
  EXPECT_FALSE(is_sampled("gb200-nvl72.yaml", 7));  // 504 GPUs
  EXPECT_TRUE(is_sampled("gb200-nvl72.yaml", 8));   // 576
}

}  // namespace
}  // namespace weft::test::models_sample
