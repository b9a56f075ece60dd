#include "sim/io/journal.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace weft::test::io_journal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class JournalTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  std::string content() const {
    std::ostringstream out;
    out << std::ifstream(path_, std::ios::binary).rdbuf();
    return out.str();
  }
  void put(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("weft_journal_" + std::to_string(::getpid())))
          .string();
};

TEST_F(JournalTest, RemembersWhatWasAppended) {
  const std::string odd = std::string("12 34\n\0\n", 8);
  {
    Journal journal(path_);
    EXPECT_THAT(journal.records(), IsEmpty());
    journal.append("one\ntwo\n");
    journal.append("");
    journal.append(odd);
  }
  EXPECT_THAT(Journal(path_).records(), ElementsAre("one\ntwo\n", "", odd));
}

TEST_F(JournalTest, LosesOnlyTheRecordThatWasCutOff) {
  {
    Journal journal(path_);
    journal.append("first");
  }
  const std::size_t first_end = content().size();
  {
    Journal journal(path_);
    journal.append("second, which is longer");
  }
  const std::string whole = content();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(whole.substr(0, size));
    {
      Journal journal(path_);
      EXPECT_EQ(journal.records().size(), size >= first_end ? 1U : 0U) << size;
      journal.append("third");
    }
    EXPECT_EQ(Journal(path_).records().back(), "third") << size;
    EXPECT_EQ(Journal(path_).records().size(), size >= first_end ? 2U : 1U) << size;
  }
}

TEST_F(JournalTest, EndsAtADamagedRecord) {
  {
    Journal journal(path_);
    journal.append("first");
    journal.append("second");
    journal.append("third");
  }
  std::string damaged = content();
  damaged[damaged.find("second")] = 'S';
  put(damaged);
  EXPECT_THAT(Journal(path_).records(), ElementsAre("first"));
}

TEST_F(JournalTest, LeavesOtherFilesAlone) {
  put("someone's notes");
  EXPECT_THROW(Journal{path_}, InputError);
  EXPECT_EQ(content(), "someone's notes");
}

TEST_F(JournalTest, NeitherWaitsForNorFollowsWhatIsNoFile) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THROW(Journal{path_}, InputError);
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
  std::filesystem::remove(path_);
  std::filesystem::create_symlink(path_ + ".victim", path_);
  EXPECT_THROW(Journal{path_}, InputError);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".victim"));
}

TEST_F(JournalTest, HasOneWriterAtATime) {
  Journal journal(path_);
  EXPECT_THROW(Journal{path_}, InputError);
}

TEST_F(JournalTest, IsGoneOnceRemoved) {
  Journal journal(path_);
  journal.remove();
  EXPECT_FALSE(std::filesystem::exists(path_));
  Journal next(path_);  // although the first is still open
  EXPECT_THAT(next.records(), IsEmpty());
}

TEST_F(JournalTest, SaysWhyItCannotBeOpened) {
  EXPECT_THROW(Journal("/proc/weft_journal"), InputError);
  EXPECT_THROW(Journal(std::filesystem::temp_directory_path().string()), InputError);
}

}  // namespace
}  // namespace weft::test::io_journal
