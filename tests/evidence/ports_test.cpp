#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/evidence/imported.hpp"

namespace weft::test::evidence_ports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Ports, Ibdev2netdevMayHaveColumnsAndRemarks) {
  const Evidence evidence = evidence_of(
      "$ ibdev2netdev | column -t\n"
      "mlx5_0   port  1  ==>  ibp26s0        (Down)  # CX-7 1/8 infiniband\n"
      "mlx5_1   port  1  ==>  enp27s0f0np0   (Up)    # CX-6 2/2 *ethernet* port 1/2\n"
      "mlx5_2   port  2  ==>  enp27s0f1np1   (Down)\n");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kState), "none") << "IPoIB's";
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kBusId), "0000:1a:00.0");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kState), "up");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kBusId), "0000:1b:00.0");
  EXPECT_EQ(said(evidence, "mlx5_2:2", fact::kState), "down");
  EXPECT_EQ(said(evidence, "mlx5_2", fact::kBusId), "none") << "its second port's netdev's";
}

TEST(Ports, ASecondPortsNetdevIsNoConflict) {
  const ImportedMachine machine = imported(
      "17:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 80GB] [10de:20b5]\n"
      "1b:00.0 Ethernet controller [0200]: Mellanox Technologies MT2892 [15b3:101d]\n"
      "mlx5_0 port 1 ==> enp27s0f0np0 (Up)\nmlx5_0 port 2 ==> enp27s0f1np1 (Up)\n");
  EXPECT_THAT(machine.conflicts, IsEmpty());
  EXPECT_EQ(device(machine.spec, "mlx5_0").bus_id, "0000:1b:00.0");
}

TEST(Ports, Ibdev2netdevSaysFunctionAndPortWithV) {
  const Evidence evidence = evidence_of(
      "0002:00:02.0 mlx5_0 (MT4129 - NA)  fw 28.43.7008 port 1 (ACTIVE) ==> ib0 (Down)\n"
      "0003:00:02.0 mlx5_1 (MT4129 - MCX755106AS-HEAT) ConnectX-7 VPI fw 28.43.7008 port 1 "
      "(DOWN  ) ==> ens1f0np0 (Down)\n"
      "0000:19:00.0 mlx5_2 (MT4119 - MCX556A-EDAT) ConnectX-5 Ex VPI adapter card, dual port "
      "QSFP28 fw 16.35.3006 port 2 (ACTIVE) ==> ens1f1np1 (Up)\n");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kBusId), "0002:00:02.0");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kState), "up");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kProduct), "MT4129");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kBusId), "0003:00:02.0");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kState), "down");
  EXPECT_EQ(said(evidence, "mlx5_2:2", fact::kState), "up");
  EXPECT_EQ(said(evidence, "mlx5_2:2", fact::kProduct), "MT4119");
}

// Netdevs that are no place: of a slot, a virtual function, a bond.
TEST(Ports, NamesSayPlacesAsTheKernelAndRdmaCoreGiveThem) {
  EXPECT_EQ(bus_id_of_name("enp179s0f0np0"), "0000:b3:00.0");
  EXPECT_EQ(bus_id_of_name("enP2p3s0d1"), "0002:03:00.0");
  EXPECT_EQ(bus_id_of_name("rdmap16s27"), "0000:10:1b.0");
  EXPECT_EQ(bus_id_of_name("rocep25s0f1"), "0000:19:00.1");
  for (const char* const name :
       {"ens1f0np0", "enp27s0f0v0", "enp27s0f0npf0vf1", "bond0", "ib0", "enp1", "enp300s0",
        "enp1s32", "enp1s0f8", "enp-1s0", "enP99999p1s0", "mlx5_0", ""}) {
    EXPECT_EQ(bus_id_of_name(name), "") << name;
  }
}

TEST(Ports, ADevinfoWithoutPortsSaysItsPart) {
  const Evidence evidence = evidence_of(
      "hca_id:\tmlx5_1\n\ttransport:\t\t\tInfiniBand (0)\n\tvendor_id:\t\t\t0x02c9\n"
      "\tvendor_part_id:\t\t\t4119\n\tphys_port_cnt:\t\t\t1\n"
      "hca_id: mlx5_2\nvendor_id: 0x02c9\nvendor_part_id: 41692\n"
      "hca_id: mlx5_3\nvendor_part_id: 4119\n"
      "hca_id: hfi1_0\nvendor_id: 0x1175\nvendor_part_id: 9456\n"
      "hca_id: bnxt_re0\nvendor_id: 0x14e4\nvendor_part_id: 5968\n");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kPciId), "15b3:1017");
  EXPECT_EQ(said(evidence, "mlx5_2", fact::kPciId), "15b3:a2dc");
  EXPECT_EQ(said(evidence, "mlx5_3", fact::kPciId), "none") << "its vendor is not said";
  EXPECT_EQ(said(evidence, "hfi1_0", fact::kPciId), "none") << "an OUI; its function is 8086:24f0";
  EXPECT_EQ(said(evidence, "bnxt_re0", fact::kPciId), "14e4:1750");
  const ImportedMachine machine = imported(
      "\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tPIX\t X \n\nNIC Legend:\n\n  NIC0: mlx5_1\n"
      "hca_id:\tmlx5_1\n\tvendor_id:\t\t\t0x02c9\n\tvendor_part_id:\t\t\t4119\n");
  EXPECT_EQ(device(machine.spec, "mlx5_1").part, "connectx-5");
}

TEST(Ports, RdmaLinkOnceNumberedItsLinks) {
  const Evidence evidence = evidence_of(
      "1/1: mlx5_0/1: subnet_prefix fe80:0000:0000:0000 lid 7 sm_lid 1 lmc 0 state ACTIVE "
      "physical_state LINK_UP \n"
      "2/1: mlx5_1/1: state DOWN physical_state POLLING netdev ens1f1 \n"
      "2/2: mlx5_1/2: state ACTIVE physical_state LINK_UP netdev ens1f2 \n");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kState), "up");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kLinkLayer), "InfiniBand");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kState), "down");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kLinkLayer), "Ethernet");
  EXPECT_EQ(said(evidence, "mlx5_1:2", fact::kState), "up");
}

TEST(Ports, EfaIsNoInfiniBand) {
  const std::string text =
      "hca_id:\tefa_0\n\ttransport:\t\t\tunspecified (4)\n\tvendor_id:\t\t\t0x1d0f\n"
      "\tvendor_part_id:\t\t\t61344\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n"
      "\t\t\tlink_layer:\t\tInfiniBand\n"
      "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\t\tport:\t1\n"
      "\t\t\tlink_layer:\t\tInfiniBand\n";
  const Evidence evidence = evidence_of(text);
  EXPECT_EQ(said(evidence, "efa_0", fact::kPciId), "1d0f:efa0");
  EXPECT_EQ(said(evidence, "efa_0", fact::kState), "up");
  EXPECT_EQ(said(evidence, "efa_0", fact::kLinkLayer), "none");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kLinkLayer), "InfiniBand");
}

TEST(Ports, SysHasPortsBeyondTheFirst) {
  const Evidence evidence = evidence_of(
      "/sys/class/infiniband/mlx4_0/hca_type:MT4099\n"
      "/sys/class/infiniband/mlx4_0/ports/1/state:1: DOWN\n"
      "/sys/class/infiniband/mlx4_0/ports/2/rate:40 Gb/sec (4X QDR)\n"
      "/sys/class/infiniband/mlx4_0/ports/2/counters/symbol_error:0\n"
      "/sys/class/infiniband/mlx4_0/ports/2/state:4: ACTIVE\n");
  EXPECT_EQ(said(evidence, "mlx4_0", fact::kProduct), "MT4099");
  EXPECT_EQ(said(evidence, "mlx4_0", fact::kState), "down");
  EXPECT_EQ(said(evidence, "mlx4_0", fact::kRate), "none");
  EXPECT_EQ(said(evidence, "mlx4_0:2", fact::kState), "up");
  EXPECT_EQ(said(evidence, "mlx4_0:2", fact::kRate), "40");
}

/// What mlxlink --json prints, in jsoncpp's form.
constexpr const char* kMlxlinkJson =
    "{\n   \"result\" : {\n      \"output\" : {\n         \"Operational Info\" : {\n"
    "            \"Physical state\" : \"LinkUp\",\n            \"Speed\" : \"IB-EDR\",\n"
    "            \"State\" : \"Active\",\n            \"Width\" : \"4x\"\n         },\n"
    "         \"Physical Counters and BER Info\" : {\n"
    "            \"Link Down Counter\" : \"17\",\n            \"Symbol Errors\" : \"0\"\n"
    "         }\n      }\n   },\n   \"status\" : {\n      \"code\" : 0\n   }\n}\n";

TEST(Ports, MlxlinksJsonIsReadLikeItsText) {
  const Evidence evidence =
      evidence_of(std::string("# mlxlink -d mlx5_3 -c --json\n") + kMlxlinkJson);
  EXPECT_EQ(said(evidence, "mlx5_3", fact::kState), "up");
  EXPECT_EQ(said(evidence, "mlx5_3", fact::kRate), "100");
  EXPECT_EQ(said(evidence, "mlx5_3", fact::kLinkLayer), "InfiniBand");
  EXPECT_EQ(said(evidence, "mlx5_3", "counter Link Down Counter"), "17");
  EXPECT_EQ(said(evidence, "mlx5_3", "counter Symbol Errors"), "none");
  EXPECT_THAT(refusal_of(kMlxlinkJson), HasSubstr("mlxlink does not say of which device this is"));
}

// Of jsoncpp without line ends, as jq -c prints it, too.
TEST(Ports, MlxlinksJsonMayBeOneLine) {
  std::string json;
  for (const char* c = kMlxlinkJson; *c != '\0'; ++c) {
    if (*c != '\n') json += *c;
  }
  const std::string compact =
      "{\"result\":{\"output\":{\"Operational Info\":{\"FEC\":\"RS-FEC (544,514), {a}\","
      "\"Speed\":\"IB-EDR\",\"State\":\"Active\",\"Width\":\"4x\"}}}}";
  for (const std::string& line : {json, compact}) {
    const Evidence evidence = evidence_of("$ mlxlink -d mlx5_3 --json\n" + line + "\n");
    EXPECT_EQ(said(evidence, "mlx5_3", fact::kState), "up") << line;
    EXPECT_EQ(said(evidence, "mlx5_3", fact::kRate), "100") << line;
  }
}

constexpr const char* kOperational = "Operational Info\n----------------\nState : Active\n";

TEST(Ports, MlxlinkIsOfTheDeviceOfABannerAboveIt) {
  for (const char* banner : {"=== mlx5_3 ===", "---- Device: mlx5_3 ----\n",
                             "## mlx5_3:", "mlxlink -d `mlx5_3`\n# mlx5_3",
                             "$ mlxlink -d mlx5_0\n-E- Device is not present\n=== mlx5_3 ===",
                             "== mlx5_3 ==\n# mlx5_3\n\n", "** mlx5_0\n** mlx5_1\nbelow\n## mlx5_3",
                             "run `mlxlink -d mlx5_3`", "=== mlx5_0 ===\n$ mlxlink -d mlx5_3\n",
                             "for d in mlx5_3; do mlxlink -d $d; done\n\n## mlx5_3"}) {
    const Evidence evidence = evidence_of(banner + ("\n" + std::string(kOperational)));
    EXPECT_EQ(said(evidence, "mlx5_3", fact::kState), "up") << banner;
  }
  EXPECT_EQ(
      said(evidence_of(std::string("=== mlx5_1 ===\n") + kMlxlinkJson), "mlx5_1", fact::kRate),
      "100");
}

TEST(Ports, MlxlinkIsOfNoDeviceThatIsNamedOtherwise) {
  for (const char* other :
       {"$ mlxlink -d $dev", "mlx5_0 and mlx5_1", "link down on mlx5_3", "=== mlx5_0 mlx5_1 ===",
        "$ ls /sys/class/infiniband; mlxlink -d $D\nmlx5_0\nmlx5_1\n", "mlx5_3:", "- mlx5_3",
        "$ mlxlink -d mlx5_0\n-E- Device mlx5_0 is not present\n$ mlxlink -d $dev\n",
        "=== mlx5_0 ===\n-E- Device is not present", "=== mlx5_0 ===\n$ mlxlink -d $dev",
        "** mlx5_0\n** mlx5_1", "=== mlx5_3 ===\n\n=== mlx5_1 ===\n=== mlx5_3 ===\n----\n",
        "$ mlxlink -d mlx5_0\n** mlx5_0\n** mlx5_1\n"}) {
    EXPECT_THAT(refusal_of(other + ("\n" + std::string(kOperational))),
                HasSubstr("does not say of which"))
        << other;
  }
}

TEST(Ports, MlxlinksCommandMayGoOnBehindItsDevice) {
  for (const char* command :
       {"mlxlink -d mlx5_3|jq .", "mlxlink -d mlx5_3>out", "mlxlink -d mlx5_3&>out",
        "mlxlink -d mlx5_3;date", "ssh h 'mlxlink -d mlx5_3'|tee out", "$(mlxlink -d mlx5_3)"}) {
    const Evidence evidence = evidence_of(command + ("\n" + std::string(kOperational)));
    EXPECT_EQ(said(evidence, "mlx5_3", fact::kState), "up") << command;
  }
}

TEST(Ports, MlxlinksBannersAreOfTheirHosts) {
  const Evidence evidence = evidence_of(
      "h1: === mlx5_0 ===\nh2: === mlx5_1 ===\nh1: \nh1: Operational Info\nh2: Operational Info\n"
      "h1: State : Active\nh2: State : Disable\n"
      "h1: $ mlxlink -d mlx5_2\nh2: $ mlxlink -d mlx5_3\n"
      "h1: Operational Info\nh1: State : Active\n");
  const auto hosts = [&](const std::string& nic) {
    std::vector<std::string> out;
    for (const Fact& fact : evidence.facts.all()) {
      if (fact.subject == nic && fact.what == fact::kState) out.push_back(fact.host);
    }
    return out;
  };
  EXPECT_THAT(hosts("mlx5_0"), ElementsAre("h1"));
  EXPECT_THAT(hosts("mlx5_1"), ElementsAre("h2"));
  EXPECT_THAT(hosts("mlx5_2"), ElementsAre("h1"));
  EXPECT_THAT(hosts("mlx5_3"), IsEmpty());
  std::string of_h1;  // and of no host a banner
  for (int line = 0; line < 40; ++line) of_h1 += "h1: up\n";
  of_h1 += "=== mlx5_0 ===\nh1: Operational Info\nh1: State : Active\n";
  EXPECT_THAT(refusal_of(of_h1), HasSubstr("does not say of which"));
}

}  // namespace
}  // namespace weft::test::evidence_ports
