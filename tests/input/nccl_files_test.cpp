/// NCCL and RCCL topology files as they come: every collected one, and files gone wrong.

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/input/nccl_xml.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "sim/io/json.hpp"
#include "sim/topology/fabric.hpp"
#include "tests/input/catalog.hpp"

namespace weft::test::input_nccl_files {
namespace {

using ::testing::HasSubstr;

std::size_t count_of(const std::string& text, const std::string& piece) {
  std::size_t found = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) {
    ++found;
  }
  return found;
}

/// What a file must be refused with, told from its text alone; "" if it must load.
std::string expected_refusal(const std::string& text) {
  if (count_of(text, "<graphs") > 0) return "this is an NCCL graph file";
  if (count_of(text, "<cpu") == 0) return "a fragment";
  if (count_of(text, "<gpu") == 0 && count_of(text, " class=") == 0) {
    return "no class that says which of its PCI functions are GPUs";
  }
  return "";
}

void expect_all_devices(const std::string& text, const TopologySpec& spec) {
  const Fabric fabric(spec, 2);
  const auto either = [&](const char* element, const std::string& pci_class) {
    const std::size_t elements = count_of(text, element);
    return elements > 0 ? elements : count_of(text, pci_class);
  };
  EXPECT_EQ(fabric.count(DeviceKind::kGpu), either("<gpu ", "class=\"0x03"));
  EXPECT_EQ(fabric.count(DeviceKind::kNic), either("<net ", "class=\"0x02"));
  EXPECT_EQ(fabric.count(DeviceKind::kCpu), count_of(text, "<cpu "));
  std::size_t xgmi = 0;
  for (const PeerLinkSpec& link : spec.node.links) xgmi += link.kind == LinkKind::kXgmi ? 1 : 0;
  EXPECT_EQ(2 * xgmi, count_of(text, "<xgmi ")) << "each is listed by both of its GPUs";
}

TEST(NcclFiles, EveryCapturedOneLoads) {
  int loaded = 0;
  for (const char* name : {"nccl-2.28.9.json", "nccl-2.28.9-more.json"}) {
    const std::string file = std::string(WEFT_SOURCE_DIR) + "/tests/nccl_decisions/" + name;
    const Json kept = Json::parse(read_text_file(file), file);
    for (const Json& xml : kept.at("values").at("topo_xml").items()) {
      const std::string& text = xml.as_string();
      expect_all_devices(text, parse_nccl_xml(text, "f.xml", test_catalog()));
      ++loaded;
    }
  }
  EXPECT_GE(loaded, 100);
}

// Files of others are not part of the project; what is odd about them is in the tests below and in
// nccl_xml_test.cpp.
TEST(NcclFiles, EveryCollectedOneLoadsOrSaysWhyNot) {
  const std::filesystem::path folder = std::string(WEFT_SHARED_DIR) + "/data/topo_xml";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "files of others, not in the project";
  int loaded = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".xml") continue;
    const std::string file = entry.path().string();
    SCOPED_TRACE(file);
    const std::string text = read_text_file(file);
    const std::string why_not = expected_refusal(text);
    if (!why_not.empty()) {
      EXPECT_THAT(refusal([&] { read_topology(file, test_catalog()); }),
                  AllOf(HasSubstr(file + ":"), HasSubstr(why_not)));
      continue;
    }
    expect_all_devices(text, read_topology(file, test_catalog()));
    ++loaded;
  }
  EXPECT_GE(loaded, 50);
}

/// A file that lives as long as the test.
class SparseFile {
 public:
  SparseFile(const std::string& text, std::uintmax_t size)
      : path_{::testing::TempDir() + "/weft_sparse.xml"} {
    std::ofstream(path_, std::ios::binary) << text;
    std::filesystem::resize_file(path_, size);
  }
  ~SparseFile() { std::filesystem::remove(path_); }
  SparseFile(const SparseFile&) = delete;
  SparseFile& operator=(const SparseFile&) = delete;
  SparseFile(SparseFile&&) = delete;
  SparseFile& operator=(SparseFile&&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(NcclFilesBogus, AFileOfOneGigabyteIsNotRead) {
  const SparseFile file("<system version=\"1\">", 1'000'000'000);
  EXPECT_THAT(refusal([&] { read_topology(file.path(), test_catalog()); }),
              HasSubstr("the most that is read"));
  EXPECT_THAT(refusal([&] { read_nccl_xml(file.path(), test_catalog()); }),
              HasSubstr("16 MiB, the most that is read"));
}

const std::string kSkeleton = R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="2.5 GT/s PCIe" link_width="1">
      <pci busid="0001:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"/>
      <pci busid="0101:00:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"/>
      <pci busid="0101:00:00.1" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"/>
    </pci>
  </cpu>
  <cpu numaid="1"/>
</system>
)";
const std::string kRccl = R"(<system version="2">
  <cpu numaid="0" host_hash="0x1" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <pci busid="0000:63:00.0" class="0x038000" link_speed="16 GT/s" link_width="16">
      <gpu dev="0" sm="120" gcn="908" arch="38911" rank="0" gdr="1">
        <xgmi target="0000:43:00.0" count="1" tclass="0x038000"/>
        <c2c bw="56376" count="7"/>
      </gpu>
    </pci>
    <pci busid="0000:43:00.0" class="0x038000" link_speed="16 GT/s" link_width="16">
      <gpu dev="1" sm="120" gcn="908" arch="38911" rank="1" gdr="1">
        <xgmi target="0000:63:00.0" count="1" tclass="0x038000"/>
      </gpu>
    </pci>
    <nic>
      <net name="eth0" dev="0" speed="100000" port="1" gdr="0"/>
    </nic>
  </cpu>
</system>
)";

/// A text with one thing gone wrong.
class Vandal {
 public:
  explicit Vandal(std::uint64_t seed) : random_{seed} {}

  std::string spoil(std::string text) {
    switch (below(6)) {
      case 0:
        return text.substr(0, below(text.size()));
      case 1:
        text[below(text.size())] = static_cast<char>(below(256));
        return text;
      case 2:
        return spoil_line(text, 2);
      case 3:
        return spoil_line(text, 0);
      case 4:
        return spoil_value(text, {});
      default:
        return spoil_value(text, kOdd.at(below(kOdd.size())));
    }
  }

 private:
  static constexpr std::array<std::string_view, 9> kOdd{
      "-1", "0", "0x", "99999999999999999999", "4294967296", "1e9", "&b;", "<", "0000:43:00.0"};

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  /// One line `times` times instead of once.
  std::string spoil_line(const std::string& text, int times) {
    const std::size_t at = below(text.size());
    const std::size_t start = text.rfind('\n', at) == std::string::npos ? 0 : text.rfind('\n', at);
    const std::size_t end = std::min(text.find('\n', at + 1), text.size());
    const std::string line = text.substr(start, end - start);
    std::string out = text.substr(0, start);
    for (int i = 0; i < times; ++i) out += line;
    return out + text.substr(end);
  }

  /// Another value for some attribute, or without `by` no attribute.
  std::string spoil_value(const std::string& text, std::optional<std::string_view> by) {
    const std::size_t equals = text.find("=\"", below(text.size()));
    if (equals == std::string::npos) return text;
    const std::size_t name = text.rfind(' ', equals);
    const std::size_t end = text.find('"', equals + 2);
    if (name == std::string::npos || end == std::string::npos) return text;
    if (!by) return text.substr(0, name) + text.substr(end + 1);
    return text.substr(0, equals + 2) + std::string(*by) + text.substr(end);
  }

  std::mt19937_64 random_;
};

/// Loads, or is refused as the user's: nothing else may come of any text.
bool loads(const std::string& text) {
  try {
    const Fabric fabric(parse_topology(text, "f", test_catalog()), 2);
    return fabric.count(DeviceKind::kGpu) > 0;
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("f")) << text;
    return false;
  }
}

TEST(NcclFilesBogus, AnySpoiledFileLoadsOrIsRefused) {
  const std::string dump =
      read_text_file(std::string(WEFT_SOURCE_DIR) + "/topologies/h200-vm-pix.2x2.xml");
  const std::string yaml =
      read_text_file(std::string(WEFT_SOURCE_DIR) + "/topologies/hgx-h100-4nic.yaml");
  Vandal vandal(20261121);
  for (const std::string& text : {dump, kSkeleton, kRccl, yaml}) {
    ASSERT_TRUE(loads(text));
    int loaded = 0;
    constexpr int kVariants = 250;
    for (int i = 0; i < kVariants; ++i) {
      std::string spoiled = vandal.spoil(text);
      if (i % 2 == 1 && !spoiled.empty()) spoiled = vandal.spoil(spoiled);
      loaded += loads(spoiled) ? 1 : 0;
    }
    EXPECT_GT(loaded, 0);
    EXPECT_LT(loaded, kVariants);
  }
}

}  // namespace
}  // namespace weft::test::input_nccl_files
