#include "sim/topology/node_hosts.hpp"

#include <gtest/gtest.h>

#include "tests/topology/machines.hpp"

namespace weft::test::topology_node_hosts {
namespace {

TEST(NodeHosts, AreCpusThatSocketLinksJoin) {
  NodeSpec node;
  node.devices = {cpu("a"), cpu("b"), cpu("c"), cpu("d"), cpu("e"), gpu("gpu0", "a")};
  EXPECT_EQ(NodeHosts(node).count(), 5U);
  node.links = {peer(LinkKind::kSocket, "a", "b"), peer(LinkKind::kSocket, "c", "b"),
                peer(LinkKind::kSocket, "c", "a"), peer(LinkKind::kSocket, "e", "d")};
  const NodeHosts hosts(node);
  EXPECT_EQ(hosts.count(), 2U);
  EXPECT_EQ(hosts.first_cpu("a"), hosts.first_cpu("c"));
  EXPECT_EQ(hosts.first_cpu("d"), hosts.first_cpu("e"));
  EXPECT_NE(hosts.first_cpu("a"), hosts.first_cpu("d"));
}

}  // namespace
}  // namespace weft::test::topology_node_hosts
