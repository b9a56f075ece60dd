#include "sim/io/file.hpp"

#include <array>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/complaint.hpp"

namespace weft::test::io_file {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Each test has a folder of its own.
class File : public ::testing::Test {
 protected:
  File() : folder_{std::filesystem::temp_directory_path() / "weft_file_test_XXXXXX"} {
    std::string name = folder_.string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
  }
  ~File() override { std::filesystem::remove_all(folder_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      out.push_back(entry.path().filename().string());
    }
    return out;
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(File, ReadsBackEveryByteThatWasWritten) {
  std::string text = "a\r\nb\tc";
  text.push_back('\0');
  text += "\xff end";
  write_text_file(path("f"), text);
  EXPECT_EQ(read_text_file(path("f")), text);
  write_text_file(path("f"), "");
  EXPECT_EQ(read_text_file(path("f")), "");
}

TEST_F(File, ReplacesWholeAndLeavesNoTemporary) {
  write_text_file(path("f"), "a long first text");
  write_text_file(path("f"), "short");
  EXPECT_EQ(read_text_file(path("f")), "short");
  EXPECT_THAT(names(), ElementsAre("f"));
}

TEST_F(File, SeveralAreReplacedOrNone) {
  write_text_file(path("one"), "old");
  std::filesystem::create_directory(path("folder"));
  for (const std::string& bad : {path("folder"), path("missing/two")}) {
    const std::array files{TextFile{path("one"), "new"}, TextFile{bad, "new"}};
    EXPECT_THROW(write_text_files(files), InputError);
    EXPECT_EQ(read_text_file(path("one")), "old");
  }
  const std::array files{TextFile{path("one"), "1"}, TextFile{path("two"), "2"}};
  write_text_files(files);
  EXPECT_EQ(read_text_file(path("one")) + read_text_file(path("two")), "12");
  EXPECT_THAT(names(), testing::UnorderedElementsAre("one", "two", "folder"));
}

// Written in pieces it takes its place at the end; if that does not come, nothing has happened.
TEST_F(File, OfPiecesTakesItsPlaceOnlyWhenItIsWhole) {
  write_text_file(path("f"), "old");
  {
    OutputFile out(path("f"));
    out.write("half");
    EXPECT_EQ(read_text_file(path("f")), "old");
  }
  EXPECT_EQ(read_text_file(path("f")), "old");
  EXPECT_THAT(names(), ElementsAre("f"));
  OutputFile out(path("f"));
  out.write("new ");
  out.write("text");
  out.commit();
  EXPECT_EQ(read_text_file(path("f")), "new text");
  EXPECT_THAT(names(), ElementsAre("f"));
}

TEST_F(File, KeepsTheOldTextWhenItCannotReplace) {
  std::filesystem::create_directory(path("d"));
  EXPECT_THAT(complaint([&] { write_text_file(path("d"), "text"); }),
              StartsWith(path("d") + ": cannot be"));
  EXPECT_THAT(names(), ElementsAre("d"));
}

TEST_F(File, SaysWhyAPlaceCannotBeWritten) {
  const std::string place = path("missing/f");
  EXPECT_EQ(complaint([&] { write_text_file(place, "text"); }),
            place + ": cannot be written: No such file or directory");
}

TEST_F(File, NeverReplacesWhatIsNoFile) {
  // "--json /dev/null" as root must not turn the device into a file. A FIFO stands for it here.
  const std::string fifo = path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const int reader = ::open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  write_text_file(fifo, "text");
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
  std::string got(8, '\0');
  EXPECT_EQ(::read(reader, got.data(), got.size()), 4);
  EXPECT_EQ(got.substr(0, 4), "text");
  ::close(reader);
}

TEST_F(File, ANameThatIsTooLongIsTheUsersError) {
  const std::string name = path(std::string(300, 'x'));
  EXPECT_THROW(write_text_file(name, "text"), InputError);
  EXPECT_THROW(read_text_file(name), InputError);
}

TEST_F(File, WritesThroughALink) {
  write_text_file(path("real"), "old");
  std::filesystem::create_symlink("real", path("link"));
  write_text_file(path("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(read_text_file(path("real")), "new");
}

TEST_F(File, MakesTheFileThatALinkLeadsTo) {
  std::filesystem::create_directory(path("d"));
  std::filesystem::create_symlink("d/second", path("first"));
  std::filesystem::create_symlink("real", path("d/second"));
  write_text_file(path("first"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("first")));
  EXPECT_TRUE(std::filesystem::is_symlink(path("d/second")));
  EXPECT_EQ(read_text_file(path("d/real")), "new");
  std::filesystem::create_symlink("loop", path("loop"));
  EXPECT_EQ(complaint([&] { write_text_file(path("loop"), "text"); }),
            path("loop") + ": cannot be written: Too many levels of symbolic links");
}

TEST_F(File, KeepsTheModeOfWhatItReplaces) {
  const auto mode = [this] {
    struct stat status {};
    EXPECT_EQ(::stat(path("f").c_str(), &status), 0);
    return status.st_mode & 07777U;
  };
  const mode_t mask = ::umask(022);
  write_text_file(path("f"), "old");
  EXPECT_EQ(mode(), 0644U);
  for (const mode_t kept : {0600U, 0664U, 0400U}) {
    ASSERT_EQ(::chmod(path("f").c_str(), kept), 0);
    write_text_file(path("f"), "new");
    EXPECT_EQ(mode(), kept);
  }
  ::umask(mask);
}

/// What stands at a name that a temporary file might take.
TEST_F(File, NeverWaitsForNorWritesToWhatHasTheTemporarysName) {
  const std::string name = path("f") + ".tmp" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
  std::filesystem::create_symlink("victim", name + ".0");
  write_text_file(path("f"), "text");
  EXPECT_EQ(read_text_file(path("f")), "text");
  EXPECT_TRUE(std::filesystem::is_fifo(name));
  EXPECT_FALSE(std::filesystem::exists(path("victim")));
}

// Whoever has the old file open keeps it whole, below /dev too.
TEST_F(File, ReplacesRegularFilesBelowDev) {
  std::string folder = "/dev/shm/weft_file_test_XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) GTEST_SKIP() << "/dev/shm cannot be written here";
  const std::string file = folder + "/f";
  write_text_file(file, "the old text");
  std::ifstream reader(file);
  write_text_file(file, "new");
  std::string seen;
  std::getline(reader, seen);
  EXPECT_EQ(seen, "the old text");
  EXPECT_EQ(read_text_file(file), "new");
  std::filesystem::remove_all(folder);
}

TEST_F(File, WritesToWhatIsOpenAsItIs) {
  // As /dev/stdout leads to a file that the shell has opened.
  const int open = ::open(path("f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(open, 0);
  write_text_file("/dev/fd/" + std::to_string(open), "text");
  std::string got(8, '\0');
  EXPECT_EQ(::read(open, got.data(), got.size()), 4);
  ::close(open);
}

TEST_F(File, SaysWhatIsNoFile) {
  EXPECT_EQ(complaint([&] { read_text_file(path("missing")); }),
            path("missing") + ": no such file");
  EXPECT_EQ(complaint([&] { read_text_file(path("")); }),
            path("") + ": is a directory, not a file");
  EXPECT_NE(complaint([&] { read_text_file(""); }), "");
}

TEST_F(File, ReadsNoMoreThanAllowed) {
  write_text_file(path("f"), std::string(1'000, 'x'));
  EXPECT_EQ(read_text_file(path("f"), 1'000).size(), 1'000U);
  EXPECT_THAT(complaint([&] { read_text_file(path("f"), 999); }),
              HasSubstr("larger than 999 bytes"));
  EXPECT_THAT(complaint([] { read_text_file("/dev/zero"); }),
              HasSubstr("larger than 64 MiB, the most that is read"));
}

TEST_F(File, DashIsStandardInputAndOutput) {
  std::istringstream in("from outside");
  std::ostringstream out;
  std::streambuf* const old_in = std::cin.rdbuf(in.rdbuf());
  std::streambuf* const old_out = std::cout.rdbuf(out.rdbuf());
  const std::string got = read_text_file("-");
  write_text_file("-", "to outside");
  std::cin.rdbuf(old_in);
  std::cout.rdbuf(old_out);
  EXPECT_EQ(got, "from outside");
  EXPECT_EQ(out.str(), "to outside");
  EXPECT_FALSE(std::filesystem::exists("-"));
}

}  // namespace
}  // namespace weft::test::io_file
