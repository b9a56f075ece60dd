// Outputs of real machines in forms that readers took for something else.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/evidence/imported.hpp"

namespace weft::test::evidence_captures {
namespace {

TEST(Captures, RemoteEndsOfNvlinksCountThem) {
  const Evidence evidence = evidence_of(
      "GPU 5: NVIDIA H100 80GB HBM3 (UUID: GPU-a)\n"
      "\t Link 0: Remote Device 00000000:06:00.0: Link 45\n\t Link 1: <inactive>\n"
      "\t Link 2: Remote Device 00000000:08:00.0: Link 51\n"
      "GPU 6: NVIDIA H100 80GB HBM3 (UUID: GPU-b)\n"
      "\t Link 0: Remote Device 00000000:06:00.0: Link 57\n");
  EXPECT_EQ(said(evidence, "gpu5", fact::kNvlinks), "2");
  EXPECT_EQ(said(evidence, "gpu6", fact::kNvlinks), "none") << "its list is cut";
}

TEST(Captures, OtherListsOfNvlinksAreNoCount) {
  for (const std::string line :
       {"Link 0: Replay Errors: 0", "Link 0: P2P is supported: true",
        "Link 0: Rx0: 0 KBytes, Tx0: 0 KBytes", "Link 0: 00000000:06:00.0"}) {
    const Evidence evidence =
        evidence_of("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-a)\n\t " + line + "\n");
    EXPECT_EQ(said(evidence, "gpu0", fact::kProduct), "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(said(evidence, "gpu0", fact::kNvlinks), "none") << line;
  }
}

}  // namespace
}  // namespace weft::test::evidence_captures
