// NCCL's variables where ranks or hosts have values of their own.
#include "sim/input/evidence/variables.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/evidence/evidence_data.hpp"

namespace weft::test::evidence_variables {
namespace {

using ::testing::HasSubstr;

/// What a rank of a host logs.
std::string set(const std::string& host, const std::string& value,
                const std::string& name = "NCCL_IB_HCA") {
  return host + ":1:1 [0] NCCL INFO " + name + " set by environment to " + value + ".\n";
}

std::string hca_of(const std::string& log) {
  const Evidence evidence = evidence_of(log);
  const std::map<std::string, std::string> all = nccl_variables({evidence.facts, {"a"}});
  return all.contains("NCCL_IB_HCA") ? all.at("NCCL_IB_HCA") : "none";
}

TEST(Variables, NicsOfRanksAreAllThatTheHostUses) {
  EXPECT_EQ(hca_of(""
                   "a:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\n"),
            "none");
  EXPECT_EQ(hca_of(set("a", "mlx5_0")), "mlx5_0");
  EXPECT_EQ(hca_of(set("a", "mlx5_0") + set("a", "mlx5_1:1")), "mlx5_0,mlx5_1:1");
  EXPECT_EQ(hca_of(set("a", "=mlx5_0") + set("a", "=mlx5_1")), "=mlx5_0,mlx5_1");
  EXPECT_EQ(hca_of(set("a", "=mlx5_0") + set("a", "mlx5_1")), "mlx5_0,mlx5_1");
  EXPECT_EQ(hca_of(set("a", "mlx5_0") + set("a", "^mlx5_1")), "mlx5_0");
}

TEST(Variables, NicsOfTheirOwnAreNoDifferenceBetweenHosts) {
  const auto odd = [](const std::string& log) {
    return compare_hosts(evidence_of(log).facts).odd.size();
  };
  const std::string two = set("a", "mlx5_0") + set("a", "mlx5_1");
  EXPECT_EQ(odd(two + set("b", "mlx5_0") + set("b", "mlx5_1")), 0U);
  EXPECT_EQ(odd(set("a", "mlx5_0") + set("b", "mlx5_1") + set("c", "mlx5_2")), 0U);
  EXPECT_EQ(odd(two + set("b", "^mlx5_7") + set("c", "mlx5_0") + set("c", "mlx5_1")), 1U);
  // Of any variable the same values of all hosts are none, and fewer of them.
  const auto files = [](const std::string& host) {
    return set(host, "/tmp/0", "NCCL_DEBUG_FILE") + set(host, "/tmp/1", "NCCL_DEBUG_FILE");
  };
  EXPECT_EQ(odd(files("a") + files("b")), 0U);
  EXPECT_EQ(odd(files("a") + files("b") + set("c", "/tmp/0", "NCCL_DEBUG_FILE")), 0U);
  EXPECT_EQ(odd(set("a", "Ring", "NCCL_ALGO") + set("b", "Tree", "NCCL_ALGO")), 1U);
}

TEST(Variables, ANoteTellsWhoNamesWhich) {
  EXPECT_EQ(ib_hca_note(evidence_of(set("a", "mlx5_0") + set("b", "mlx5_0")).facts), "");
  EXPECT_THAT(ib_hca_note(evidence_of(set("a", "mlx5_0") + set("b", "mlx5_1")).facts),
              HasSubstr("no difference between machines: mlx5_0 (f:1), mlx5_1 (f:2)"));
}

}  // namespace
}  // namespace weft::test::evidence_variables
