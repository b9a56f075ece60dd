// What a machine's tools print raises a cause or rules it out, with file and line.
#include "models/explain/evidence.hpp"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/doctor/doctor_data.hpp"
#include "tests/explain/explain_data.hpp"

namespace weft::test::explain_evidence {
namespace {

struct Weighed {
  ParamCatalog catalog{make_catalog()};
  PartLibrary parts{catalog};
  Evidence evidence;
  std::vector<CauseEntry> entries{catalogue()};
  std::vector<Suspect> suspects;

  explicit Weighed(Evidence given, bool as_found = true) : evidence{std::move(given)} {
    const Patient patient(evidence, catalog, parts, 2);
    const MachineCase healthy = mended_machine(patient);
    const Site site(healthy, patient.context());
    suspects = suspects_of(entries, site);
    weigh_by(patient, site, as_found, suspects);
  }

  std::vector<const Suspect*> of(std::string_view id) const {
    std::vector<const Suspect*> out;
    for (const Suspect& suspect : suspects) {
      if (suspect.entry->id == id) out.push_back(&suspect);
    }
    return out;
  }
};

TEST(WeighBy, RulesOutWhatAnOkCheckDecides) {
  const Weighed made(evidence_of_both(dell_lspci(), dell_rest()));
  for (const char* id : {"acs", "iommu", "gdr-missing", "nic-link", "nic-rate"}) {
    ASSERT_FALSE(made.of(id).empty()) << id;
    for (const Suspect* suspect : made.of(id)) {
      EXPECT_EQ(suspect->weight, 0) << id;
      EXPECT_FALSE(suspect->said.empty()) << id;
    }
  }
  EXPECT_EQ(made.of("acs").front()->quotes.front().place.rfind("lspci:", 0), 0U);
  // No check looks at proxies; one at variables says of algorithms that they are not forced by one.
  EXPECT_EQ(made.of("proxy").front()->weight, 1);
  EXPECT_EQ(made.of("channels").front()->weight, 1.0 / 20);
  EXPECT_EQ(made.of("buffers").front()->weight, 0);
}

TEST(WeighBy, RaisesWhatAFindingSaysAndAddsItAsItWasFound) {
  const std::string slow =
      edited(dell_lspci(), "(\\n1a:00.0[^]*?LnkSta:\\tSpeed 32GT/s[^,]*, Width )x16[^\\n]*",
             "$1x4 (downgraded)");
  const Weighed made(evidence_of_both(slow, dell_rest()));
  const Suspect* found = nullptr;
  for (const Suspect* suspect : made.of("nic-link")) {
    const std::vector<Change::Setting>& set = suspect->variant.change.set;
    const bool is_its = std::any_of(set.begin(), set.end(), [](const Change::Setting& each) {
      return each.parameter == "trained_width" && each.device == "mlx5_0";
    });
    EXPECT_EQ(suspect->weight > 1, is_its) << suspect->variant.where << suspect->variant.how;
    if (suspect->variant.how == "as found") found = suspect;
  }
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->variant.change.lines(), std::vector<std::string>{"mlx5_0.trained_width=4"});
  EXPECT_EQ(found->quotes.front().place.rfind("lspci:", 0), 0U);
  for (const Suspect* suspect : made.of("acs")) EXPECT_EQ(suspect->weight, 0);
}

TEST(WeighBy, AFindingIsOfItsDeviceAlone) {
  const std::string slow =
      edited(dell_lspci(), "(\\n1a:00.0[^]*?LnkSta:\\tSpeed 32GT/s[^,]*, Width )x16[^\\n]*",
             "$1x4 (downgraded)");
  const Weighed made(evidence_of_both(slow, dell_rest()));
  for (const char* id : {"gpu-link", "switch-link"}) {
    ASSERT_FALSE(made.of(id).empty()) << id;
    for (const Suspect* suspect : made.of(id)) {
      EXPECT_EQ(suspect->weight, 1) << id << " " << suspect->variant.where;
      EXPECT_TRUE(suspect->quotes.empty()) << id;
    }
  }
  // A link as found is no other NIC's, and of the others those that are as mlx5_0 is.
  std::size_t raised = 0;
  for (const Suspect* suspect : made.of("nic-link")) {
    if (suspect->weight <= 1 || suspect->variant.how == "as found") continue;
    ++raised;
    EXPECT_TRUE(suspect->variant.where.starts_with("all ") ||
                suspect->variant.where.starts_with("mlx5_0"))
        << suspect->variant.where;
  }
  EXPECT_GE(raised, 1U);
}

TEST(WeighBy, KeepsToTheGivenMachineWhereThatIsAnother) {
  const std::string slow =
      edited(dell_lspci(), "(\\n1a:00.0[^]*?LnkSta:\\tSpeed 32GT/s[^,]*, Width )x16[^\\n]*",
             "$1x4 (downgraded)");
  const Weighed made(evidence_of_both(slow, dell_rest()), false);
  for (const Suspect& suspect : made.suspects) EXPECT_NE(suspect.variant.how, "as found");
}

TEST(WeighBy, AVariableThatIsSetIsASuspect) {
  const std::string rest =
      dell_rest() + "h1:1:1 [0] NCCL INFO NCCL_NET_GDR_LEVEL set by environment to LOC\n";
  const Weighed made(evidence_of_both(dell_lspci(), rest));
  bool is_raised = false;
  for (const Suspect* suspect : made.of("gdr-level")) {
    is_raised = is_raised || (suspect->weight > 1 && suspect->variant.how == "as found");
  }
  EXPECT_TRUE(is_raised);
}

TEST(WeighBy, GdrThatNcclUsedRulesOutWhatWouldTurnItOff) {
  const std::string rest =
      dell_rest() + "h1:1:1 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0/GDRDMA\n";
  const Weighed made(evidence_of_both(dell_lspci(), rest));
  for (const char* id : {"staged", "gdr-missing", "gdr-level", "bar1", "flat-guest"}) {
    ASSERT_FALSE(made.of(id).empty()) << id;
    for (const Suspect* suspect : made.of(id)) EXPECT_EQ(suspect->weight, 0) << id;
  }
}

TEST(WeighBy, ConnectionsSayWhetherPeerToPeerIsOff) {
  const std::string channel = "h1:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via ";
  const Weighed used(evidence_of_both(dell_lspci(), dell_rest() + channel + "P2P/CUMEM/read\n"));
  ASSERT_EQ(used.of("p2p-off").size(), 1U);
  EXPECT_EQ(used.of("p2p-off").front()->weight, 0);
  const std::size_t line =
      1 + static_cast<std::size_t>(std::count(dell_rest().begin(), dell_rest().end(), '\n'));
  EXPECT_EQ(used.of("p2p-off").front()->quotes.front().place, "rest:" + std::to_string(line));
  const Weighed shm(evidence_of_both(dell_lspci(), dell_rest() + channel + "SHM/direct/direct\n"));
  ASSERT_EQ(shm.of("p2p-off").size(), 1U);
  for (const Suspect* suspect : shm.of("p2p-off")) EXPECT_GT(suspect->weight, 1);
}

/// Of a machine with PCIe switches, whatever the evidence shows of them.
std::vector<Suspect> guests(const Evidence& evidence) {
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  const Patient patient(evidence, catalog, parts, 2);
  MachineCase healthy;
  healthy.spec = parse_topology(kSmallMachine, "small.yaml", catalog);
  const Site site(healthy, patient.context());
  static const std::vector<CauseEntry> kEntries = catalogue();
  std::vector<Suspect> out = suspects_of(kEntries, site);
  weigh_by(patient, site, false, out);
  std::erase_if(out, [](const Suspect& each) { return each.entry->id != "flat-guest"; });
  return out;
}

/// GPUs and NICs at the CPUs, as topo -m has it.
const std::string kFlat =
    "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV18\tPHB\tSYS\t0-55\t0\n"
    "GPU1\tNV18\t X \tSYS\tPHB\t56-111\t1\n"
    "NIC0\tPHB\tSYS\t X \tSYS\n"
    "NIC1\tSYS\tPHB\tSYS\t X \n"
    "NIC Legend:\n"
    "  NIC0: mlx5_0\n"
    "  NIC1: mlx5_1\n";

TEST(WeighBy, AnIommuThatDoesNotTranslateInTheGuestMakesAFlatGuestLessLikely) {
  const std::vector<Suspect> open = guests(evidence_of(kFlat, "topo"));
  ASSERT_FALSE(open.empty());
  for (const Suspect& each : open) EXPECT_EQ(each.weight, 1) << each.said;
  const std::vector<Suspect> out = guests(
      evidence_of_both(kFlat, "BOOT_IMAGE=/vmlinuz-5.15 root=/dev/sda1 intel_iommu=on iommu=pt\n"));
  ASSERT_FALSE(out.empty());
  for (const Suspect& each : out) {
    EXPECT_GT(each.weight, 0);
    EXPECT_LT(each.weight, 1);
    EXPECT_FALSE(each.quotes.empty());
  }
}

TEST(WeighBy, APcieSwitchRulesOutAFlatGuest) {
  const std::vector<Suspect> out = guests(evidence_of(edited(kFlat, "\tPHB\t", "\tPIX\t"), "topo"));
  ASSERT_FALSE(out.empty());
  for (const Suspect& each : out) {
    EXPECT_EQ(each.weight, 0);
    EXPECT_EQ(each.said, "there are PCIe switches");
    EXPECT_FALSE(each.quotes.empty());
  }
}

TEST(WeighBy, TheFirstQuoteIsOfWhatRulesOut) {
  const std::string log =
      dell_rest() + "h1:1:1 [0] NCCL INFO NCCL_DEBUG set by environment to INFO\n";
  const Weighed made(evidence_of_both(dell_lspci(), log));
  const auto line_of = [](const std::string& text, const std::string& place) {
    std::istringstream lines(text);
    std::string line;
    for (int i = std::stoi(place.substr(place.find(':') + 1)); i > 0; --i)
      std::getline(lines, line);
    return line;
  };
  struct Case {
    const char* id;
    const char* file;
    const char* words;
  };
  for (const Case& each :
       {Case{"flat-guest", "lspci", "Express (v2) Upstream Port"}, Case{"acs", "lspci", "ACSCtl:"},
        Case{"iommu", "rest", "iommu=pt"}, Case{"nic-link", "lspci", "LnkSta:"},
        Case{"gpu-link", "lspci", "LnkSta:"}, Case{"port-down", "rest", "State: Active"},
        Case{"nic-rate", "rest", "Rate: 400"}, Case{"payload", "lspci", "MaxPayload"},
        Case{"read-requests", "lspci", "MaxReadReq 4096"}, Case{"ordering", "lspci", "RlxdOrd+"},
        Case{"bar1", "lspci", "size=128G"}, Case{"gdr-missing", "rest", "nvidia_peermem"},
        Case{"pxn-off", "rest", "NCCL version"}}) {
    const std::vector<const Suspect*> suspects = made.of(each.id);
    ASSERT_FALSE(suspects.empty()) << each.id;
    ASSERT_FALSE(suspects.front()->quotes.empty()) << each.id;
    EXPECT_EQ(suspects.front()->weight, 0) << each.id;
    const std::string& place = suspects.front()->quotes.front().place;
    ASSERT_EQ(place.rfind(std::string(each.file) + ":", 0), 0U) << each.id << " " << place;
    EXPECT_NE(
        line_of(each.file == std::string("lspci") ? dell_lspci() : log, place).find(each.words),
        std::string::npos)
        << each.id << " " << place;
  }
}

TEST(WeighBy, TheFirstQuoteIsOfTheCausesOwnDevice) {
  const Weighed made(evidence_of_both(dell_lspci(), dell_rest()));
  ASSERT_FALSE(made.of("nic-link").empty());
  ASSERT_FALSE(made.of("switch-link").empty());
  for (const Suspect* suspect : made.of("nic-link")) {
    ASSERT_FALSE(suspect->quotes.empty());
    const std::string& text = suspect->quotes.front().text;
    EXPECT_TRUE(text.starts_with("0000:1a:00.0: ") || text.starts_with("0000:9c:00.0: ")) << text;
  }
  for (const Suspect* suspect : made.of("switch-link")) {
    ASSERT_FALSE(suspect->quotes.empty());
    const std::string& text = suspect->quotes.front().text;
    EXPECT_TRUE(text.starts_with("0000:16:00.0: ") || text.starts_with("0000:98:00.0: ")) << text;
  }
}

TEST(WeighBy, AFindingOfNoEntryIsShownAsItWasFound) {
  for (const char* variable : {"NCCL_MAX_CTAS", "NCCL_P2P_LEVEL"}) {
    const std::string value = std::string(variable) == "NCCL_MAX_CTAS" ? "2" : "LOC";
    const Weighed made(evidence_of_both(dell_lspci(), dell_rest() + "h1:1:1 [0] NCCL INFO " +
                                                          variable + " set by environment to " +
                                                          value + "\n"));
    const std::vector<const Suspect*> found = made.of("found");
    ASSERT_EQ(found.size(), 1U) << variable;
    EXPECT_EQ(found.front()->variant.change.env.count(variable), 1U);
    for (const Suspect* suspect : made.of("gdr-level")) {
      EXPECT_NE(suspect->variant.how, "as found") << variable;
    }
  }
}

TEST(WeighBy, GdrThatTheRuleLeavesOffRulesNothingOut) {
  const std::string rest = dell_rest() +
                           "h1:1:1 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0\n"
                           "h1:1:1 [0] NCCL INFO NCCL_NET_GDR_LEVEL set by environment to LOC\n";
  const Weighed made(evidence_of_both(dell_lspci(), rest));
  for (const Suspect* suspect : made.of("staged")) {
    EXPECT_GE(suspect->weight, 1) << suspect->said;
  }
}

TEST(WeighBy, AVariableThatIsSetIsNotRuledOutByItsCheck) {
  const std::string rest =
      dell_rest() + "h1:1:1 [0] NCCL INFO NCCL_CROSS_NIC set by environment to 1\n";
  Weighed made(evidence_of_both(dell_lspci(), rest));
  const Patient patient(made.evidence, made.catalog, made.parts, 2);
  MachineCase plain = mended_machine(patient);
  plain.env.clear();  // as --machine has it
  const Site site(plain, patient.context());
  std::vector<Suspect> suspects = suspects_of(made.entries, site);
  weigh_by(patient, site, false, suspects);
  std::size_t seen = 0;
  for (const Suspect& suspect : suspects) {
    if (suspect.entry->id != "cross-nic") continue;
    ++seen;
    EXPECT_EQ(suspect.weight > 0, suspect.variant.how == "NCCL_CROSS_NIC=1");
  }
  EXPECT_EQ(seen, 2U);
}

}  // namespace
}  // namespace weft::test::explain_evidence
