#include "sim/input/topology_file.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/input/catalog.hpp"

namespace weft::test::input_topology_file {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

/// A file that lives as long as the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_{::testing::TempDir() + "/weft_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".txt"} {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  TemporaryFile(TemporaryFile&&) = delete;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string refused(const std::string& file) {
  return refusal([&] { read_topology(file, test_catalog()); });
}

const std::string kYaml =
    "topology: from-yaml\nnode: {devices: {c: {kind: cpu}, g: {kind: gpu, upstream: c}}}\n";
const std::string kXml =
    "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"1\" class=\"0x030200\">"
    "<gpu dev=\"0\"/></pci></cpu></system>";

TEST(TopologyFile, TellsTheFormByTheFirstCharacter) {
  EXPECT_EQ(read_topology(TemporaryFile(kYaml).path(), test_catalog()).name, "from-yaml");
  for (const std::string before : {"", "\xEF\xBB\xBF", "\n \t", "<!-- a dump -->\n"}) {
    const TopologySpec spec = read_topology(TemporaryFile(before + kXml).path(), test_catalog());
    EXPECT_EQ(spec.node.devices.size(), 2U) << before;
  }
}

TEST(TopologyFileBogus, NotAFile) {
  EXPECT_EQ(refused("/nowhere/t.yaml"), "/nowhere/t.yaml: no such file");
  EXPECT_THAT(refused(std::string(WEFT_SOURCE_DIR)), EndsWith(": is a directory, not a file"));
}

TEST(TopologyFileBogus, EmptyFile) {
  EXPECT_THAT(refused(TemporaryFile("").path()), EndsWith(": is empty"));
  EXPECT_THAT(refused(TemporaryFile("\n\n").path()), EndsWith(": is empty"));
}

TEST(TopologyFileBogus, NeitherForm) {
  EXPECT_NE(refused(TemporaryFile(std::string("\x7f"
                                              "ELF\x02\x01\x01\0\0\0",
                                              10))
                        .path()),
            "accepted");
  EXPECT_THAT(refused(TemporaryFile("{\"a\": 1}").path()), HasSubstr("unknown key"));
}

}  // namespace
}  // namespace weft::test::input_topology_file
