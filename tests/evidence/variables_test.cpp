// NCCL's variables where ranks or hosts have values of their own.
#include "sim/input/evidence/variables.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/evidence/evidence_data.hpp"

namespace weft::test::evidence_variables {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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
  EXPECT_EQ(hca_of("a:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\n"), "none");
  EXPECT_EQ(hca_of(set("a", "mlx5_0")), "mlx5_0");
  EXPECT_EQ(hca_of(set("a", "mlx5_0") + set("a", "mlx5_1:1")), "mlx5_0,mlx5_1:1");
  EXPECT_EQ(hca_of(set("a", "mlx5_0,mlx5_1") + set("a", "mlx5_1,mlx5_2")), "mlx5_0,mlx5_1,mlx5_2");
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
  // A name that begins those of others is all of these.
  EXPECT_EQ(odd(set("a", "mlx5") + set("b", "mlx5_0") + set("c", "mlx5")), 1U);
  // But that one host names fewer of them is, by ranks or by one value.
  const std::string three =
      set("a", "mlx5_0,mlx5_1") + set("b", "mlx5_0") + set("c", "mlx5_0,mlx5_1");
  const std::vector<HostDifference> fewer = compare_hosts(evidence_of(three).facts).odd;
  ASSERT_EQ(fewer.size(), 1U);
  EXPECT_EQ(fewer[0].host, "b");
  EXPECT_EQ(fewer[0].value, "mlx5_0");
  EXPECT_EQ(fewer[0].usual, "mlx5_0,mlx5_1");
  EXPECT_EQ(odd(two + set("b", "mlx5_0") + set("c", "mlx5_0") + set("c", "mlx5_1")), 1U);
  EXPECT_EQ(ib_hca_note(evidence_of(three).facts), "");
  // Of any variable the same values of all hosts are none, and fewer of them.
  const auto files = [](const std::string& host) {
    return set(host, "/tmp/0", "NCCL_DEBUG_FILE") + set(host, "/tmp/1", "NCCL_DEBUG_FILE");
  };
  EXPECT_EQ(odd(files("a") + files("b")), 0U);
  EXPECT_EQ(odd(files("a") + files("b") + set("c", "/tmp/0", "NCCL_DEBUG_FILE")), 0U);
  EXPECT_EQ(odd(set("a", "Ring", "NCCL_ALGO") + set("b", "Tree", "NCCL_ALGO")), 1U);
}

TEST(Variables, OfTwoHostsTheOneWithMoreValuesDiffers) {
  for (const std::string value : {"LL", "Simple"}) {
    const std::vector<HostDifference> odd =
        compare_hosts(evidence_of(set("a", "LL", "NCCL_PROTO") + set("a", "Simple", "NCCL_PROTO") +
                                  set("b", value, "NCCL_PROTO"))
                          .facts)
            .odd;
    ASSERT_EQ(odd.size(), 1U) << value;
    EXPECT_EQ(odd[0].host, "a") << value;
    EXPECT_EQ(odd[0].value, value == "LL" ? "Simple" : "LL");
  }
}

TEST(Variables, ASecondValueThatIsNotUsedIsSaid) {
  const auto unused = [](const std::string& log) {
    const Evidence evidence = evidence_of(log);
    return unused_values({evidence.facts, {"a"}});
  };
  EXPECT_THAT(unused(set("a", "Ring", "NCCL_ALGO") + set("a", "Ring", "NCCL_ALGO")), IsEmpty());
  EXPECT_THAT(unused(set("a", "Ring", "NCCL_ALGO") + set("a", "Tree", "NCCL_ALGO")),
              ElementsAre("NCCL_ALGO: Ring (f:1) is used, not Tree (f:2), of another rank or run"));
  EXPECT_THAT(unused(set("a", "mlx5_0") + set("a", "mlx5_1")), IsEmpty());  // both are
  EXPECT_EQ(unused(set("a", "mlx5_0") + set("a", "^mlx5_1")).size(), 1U);
  EXPECT_THAT(unused(set("a", "/0", "NCCL_DEBUG_FILE") + set("a", "/1", "NCCL_DEBUG_FILE")),
              IsEmpty());
}

TEST(Variables, ANoteTellsWhoNamesWhich) {
  EXPECT_EQ(ib_hca_note(evidence_of(set("a", "mlx5_0") + set("b", "mlx5_0")).facts), "");
  EXPECT_THAT(
      ib_hca_note(evidence_of(set("a", "mlx5_0") + set("b", "mlx5_1") + set("c", "mlx5_1")).facts),
      AllOf(HasSubstr("no difference between machines: mlx5_0 (f:1), mlx5_1 (f:2);"),
            Not(HasSubstr("prefixes"))));
  EXPECT_THAT(ib_hca_note(evidence_of(set("a", "=mlx5_0") + set("a", "mlx5_1")).facts),
              HasSubstr("as prefixes: one value cannot say that some are exact (=)"));
}

}  // namespace
}  // namespace weft::test::evidence_variables
