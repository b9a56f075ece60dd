#include "replay/record/trace_file.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

#include <gtest/gtest.h>

#include "replay/record/memory.hpp"
#include "tests/record/recorded.hpp"

namespace weft::test::record_trace_file {
namespace {

namespace fs = std::filesystem;
using weft::record::TraceFile;
using weft::record::with_process;

TEST(RecordTraceFile, TheProcessStandsBeforeTheEnding) {
  EXPECT_EQ(with_process("run.weft", 17), "run.17.weft");
  EXPECT_EQ(with_process("/a.b/run", 17), "/a.b/run.17");
  EXPECT_EQ(with_process("/a/.hidden", 17), "/a/.hidden.17");
  EXPECT_EQ(with_process("x.y.weft", 17), "x.y.17.weft");
}

TEST(RecordTraceFile, NeverWritesOverAFile) {
  std::string folder = (fs::temp_directory_path() / "weft-trace-file-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string name = folder + "/run.weft";
  for (int i = 0; i < 2; ++i) {
    TraceFile file;
    trace::FileFacts facts;
    facts.tool = "test";
    file.open(name, facts);
    EXPECT_TRUE(file.is_open());
    file.end();
  }
  const std::string second = with_process(name, static_cast<std::uint64_t>(getpid()));
  for (const std::string& made : {name, second}) {
    const Recorded found = read_recorded(made);
    EXPECT_TRUE(found.is_sound && found.is_ended) << made;
  }
  fs::remove_all(folder);
}

TEST(RecordMemory, HostMemoryOfOrdinaryPages) {
  const std::array<char, 8> local{};
  EXPECT_EQ(weft::record::kind_of_memory(local.data()), trace::MemoryKind::kHost);
  EXPECT_EQ(weft::record::page_bytes_of(local.data()),
            static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(weft::record::page_bytes_of(nullptr), 0U);
}

}  // namespace
}  // namespace weft::test::record_trace_file
