// `weft record` as a user meets it, on a program of verbs and a stand-in for libibverbs.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/record/recorded.hpp"

namespace weft::test::record_recording {
namespace {

namespace fs = std::filesystem;
using trace::Opcode;
using trace::RecordType;

class Recording : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "weft-recording-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    trace_ = (folder_ / "run.weft").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  const std::string& trace() const { return trace_; }
  std::vector<fs::path> traces() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() == ".weft") out.push_back(entry.path());
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  std::string said() const {
    std::ifstream in(folder_ / "stderr");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Starts `weft record OPTIONS -- PROGRAM ARGUMENTS`; the program is in the tests' folder.
  pid_t start(const std::vector<std::string>& options, const std::string& program,
              const std::vector<std::string>& arguments, rlim_t file_limit = RLIM_INFINITY) {
    std::vector<std::string> words{WEFT_PROGRAM, "record", "-o", trace()};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", std::string(WEFT_VERBS_FOLDER) + "/" + program});
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const std::string said_file = (folder_ / "stderr").string();
    const pid_t child = fork();
    if (child != 0) return child;
    const rlimit limit{file_limit, file_limit};
    setrlimit(RLIMIT_FSIZE, &limit);
    setenv("LD_LIBRARY_PATH", WEFT_FAKE_FOLDER, 1);
    if (freopen(said_file.c_str(), "w", stderr) == nullptr ||
        freopen("/dev/null", "w", stdout) == nullptr) {
      _exit(90);
    }
    execv(pointers[0], pointers.data());
    _exit(91);
  }
  int wait(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  }
  /// Its exit code; 128 and the signal's number where one ended it.
  int run(const std::vector<std::string>& options, const std::string& program,
          const std::vector<std::string>& arguments, rlim_t file_limit = RLIM_INFINITY) {
    const int status = wait(start(options, program, arguments, file_limit));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  fs::path folder_;
  std::string trace_;
};

void expect_each(const Recorded& found, std::size_t count, bool is_builder) {
  EXPECT_TRUE(found.is_sound && found.is_ended);
  for (const Opcode opcode : {Opcode::kSend, Opcode::kWrite, Opcode::kWriteWithImmediate,
                              Opcode::kFetchAndAdd, Opcode::kRead}) {
    EXPECT_EQ(found.count(opcode), count) << static_cast<int>(opcode);
  }
  EXPECT_EQ(found.count(Opcode::kReceive), 2 * count);
  ASSERT_EQ(found.completions().size(), 7 * count);
  std::uint64_t bytes = 0;
  std::set<std::uint64_t> ids;
  for (const trace::Post& post : found.posts()) {
    if (post.opcode == Opcode::kReceive) continue;
    bytes += post.bytes;
    ids.insert(post.id);
    EXPECT_EQ((post.flags & trace::kBuilder) != 0, is_builder);
    EXPECT_NE(post.flags & trace::kSignaled, 0);
    EXPECT_EQ(post.segments, 1);
  }
  EXPECT_EQ(bytes, count * (100 + 5000 + 300 + 8 + 4096));
  EXPECT_EQ(ids.size(), 5 * count) << "wr_id as it was before the call";
  EXPECT_EQ(*ids.begin(), 1000U);
}

TEST_F(Recording, EveryOperationOfEachProgramAndInterface) {
  for (const char* program : {"verbs_program", "verbs_program_dlvsym", "verbs_program_dlsym"}) {
    for (const char* what : {"classic", "builder"}) {
      ASSERT_EQ(run({}, program, {what, "10"}), 0) << program << ' ' << what << said();
      expect_each(read_recorded(trace()), 10, std::string(what) == "builder");
      EXPECT_EQ(said(), "");
      fs::remove(trace());
    }
  }
}

TEST_F(Recording, ObjectsAndTheirEnds) {
  ASSERT_EQ(run({}, "verbs_program", {"classic", "1"}), 0);
  const Recorded found = read_recorded(trace());
  EXPECT_EQ(found.all<trace::Host>(RecordType::kHost).size(), 1U);
  EXPECT_EQ(found.all<trace::Thread>(RecordType::kThread).size(), 1U);
  EXPECT_EQ(found.all<trace::Device>(RecordType::kDevice).size(), 2U);
  EXPECT_EQ(found.all<trace::Device>(RecordType::kDevice)[0].vendor, 0x15b3U);
  ASSERT_EQ(found.all<trace::Port>(RecordType::kPort).size(), 2U);
  EXPECT_EQ(found.all<trace::Port>(RecordType::kPort)[0].active_mtu, 5);
  EXPECT_EQ(found.all<trace::ProtectionDomain>(RecordType::kProtectionDomain).size(), 2U);
  const std::vector<trace::Region> regions = found.all<trace::Region>(RecordType::kRegion);
  ASSERT_EQ(regions.size(), 2U) << "ibv_reg_mr calls another exported function";
  EXPECT_EQ(regions[0].length, 65536U);
  EXPECT_EQ(regions[0].kind, trace::MemoryKind::kHost);
  EXPECT_EQ(regions[0].page_bytes, static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(found.all<trace::CompletionQueue>(RecordType::kCompletionQueue).size(), 2U);
  const std::vector<trace::QueuePair> pairs = found.all<trace::QueuePair>(RecordType::kQueuePair);
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].send_depth, 128U);
  EXPECT_EQ(pairs[0].is_unseen, 0);
  const std::vector<trace::QueuePairState> states =
      found.all<trace::QueuePairState>(RecordType::kQueuePairState);
  ASSERT_EQ(states.size(), 6U);
  EXPECT_EQ(states[2].state, 3) << "IBV_QPS_RTS";
  EXPECT_EQ(states[2].path_mtu, 3) << "what was set before stays";
  EXPECT_EQ(states[2].peer_number, pairs[1].number);
  EXPECT_EQ(found.all<trace::End>(RecordType::kEnd).size(), 10U);
  EXPECT_GT(found.head.post_ns, 0U);
  EXPECT_GT(found.head.poll_ns, 0U);
}

TEST_F(Recording, PostsNameTheirRegionsAndCompletionsTheirPairs) {
  ASSERT_EQ(run({}, "verbs_program", {"lists", "3"}), 0);
  const Recorded found = read_recorded(trace());
  const std::uint32_t region = found.all<trace::Region>(RecordType::kRegion)[0].region;
  const std::uint32_t pair = found.all<trace::QueuePair>(RecordType::kQueuePair)[0].pair;
  std::size_t posts = 0;
  for (const std::vector<std::byte>& record : found.records) {
    trace::Post post{};
    std::memcpy(&post, record.data(), sizeof post.head);
    if (post.head.type != RecordType::kPost) continue;
    std::memcpy(&post, record.data(), sizeof post);
    trace::Segment segments[2];
    ASSERT_EQ(record.size(), sizeof post + sizeof segments);
    std::memcpy(segments, record.data() + sizeof post, sizeof segments);
    EXPECT_EQ(post.list_index, posts++ % 4);
    EXPECT_EQ(post.id, post.list_index);
    EXPECT_EQ((post.flags & trace::kSignaled) != 0, post.list_index == 3);
    EXPECT_EQ(post.bytes, 128U);
    EXPECT_EQ(post.queue, pair);
    EXPECT_EQ(segments[0].region, region);
    EXPECT_EQ(segments[0].offset, 0U);
    EXPECT_EQ(segments[1].offset, 4096U);
    EXPECT_EQ(segments[1].length, 28U);
  }
  EXPECT_EQ(posts, 12U);
  ASSERT_EQ(found.completions().size(), 3U);
  for (const trace::Completion& one : found.completions()) {
    EXPECT_EQ(one.pair, pair);
    EXPECT_EQ(one.opcode, Opcode::kWrite);
  }
}

TEST_F(Recording, SharedReceiveQueues) {
  ASSERT_EQ(run({}, "verbs_program_dlvsym", {"shared", "5"}), 0);
  const Recorded found = read_recorded(trace());
  const auto queues = found.all<trace::SharedReceiveQueue>(RecordType::kSharedReceiveQueue);
  ASSERT_EQ(queues.size(), 2U);
  EXPECT_EQ(queues[1].depth, 128U);
  for (const trace::Post& post : found.posts()) {
    if (post.opcode != Opcode::kReceive) continue;
    EXPECT_EQ(post.queue, queues[1].queue);
    EXPECT_NE(post.flags & trace::kShared, 0);
  }
  EXPECT_EQ(found.count(Opcode::kReceive), 5U);
}

TEST_F(Recording, FailuresAndRefusals) {
  ASSERT_EQ(run({}, "verbs_program", {"failing", "1"}), 0) << said();
  const std::vector<trace::Completion> failed = read_recorded(trace()).completions();
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].status, 12) << "IBV_WC_RETRY_EXC_ERR";
  EXPECT_EQ(failed[0].vendor_error, 0x81U);
  EXPECT_EQ(failed[0].opcode, Opcode::kOther);
  fs::remove(trace());

  ASSERT_EQ(run({}, "verbs_program", {"refused", "1"}), 0) << said();
  std::vector<bool> refused;
  for (const trace::Post& post : read_recorded(trace()).posts()) {
    refused.push_back((post.flags & trace::kRefused) != 0);
  }
  EXPECT_THAT(refused, ::testing::ElementsAre(false, true, true));
}

TEST_F(Recording, SegmentsThatNoDeviceTakesAreNotLookedAt) {
  ASSERT_EQ(run({}, "verbs_program", {"segments", "1"}), 0) << said();
  const std::vector<trace::Post> posts = read_recorded(trace()).posts();
  ASSERT_EQ(posts.size(), 2U);
  for (const trace::Post& post : posts) {
    EXPECT_NE(post.flags & trace::kRefused, 0);
    EXPECT_EQ(post.segments, 0);
  }
}

// What a call does not change is as it was, and a post after it names the new region.
TEST_F(Recording, ARegionThatIsRegisteredAnew) {
  ASSERT_EQ(run({"--keep-names"}, "verbs_program", {"rereg", "1"}), 0) << said();
  const Recorded found = read_recorded(trace());
  const auto regions = found.all<trace::Region>(RecordType::kRegion);
  ASSERT_EQ(regions.size(), 4U);
  EXPECT_EQ(regions[2].length, 8192U);
  EXPECT_EQ(regions[3].length, 4095U);
  const auto posts = found.posts();
  ASSERT_EQ(posts.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(regions[2 + i].access, regions[0].access);
    EXPECT_NE(regions[2 + i].access, 0U);
    trace::Segment segment{};
    for (const auto& record : found.records) {
      if (std::memcmp(record.data(), &posts[i], sizeof posts[i]) != 0) continue;
      std::memcpy(&segment, record.data() + sizeof posts[i], sizeof segment);
    }
    EXPECT_EQ(segment.region, regions[2 + i].region);
    EXPECT_EQ(segment.offset, 10U);
  }
}

TEST_F(Recording, ARingThatFindsNoMemoryIsSaid) {
  ASSERT_EQ(run({"--buffer", "1GiB"}, "verbs_program", {"crowded", "50"}), 0) << said();
  const Recorded found = read_recorded(trace());
  EXPECT_TRUE(found.is_sound && found.is_ended);
  EXPECT_TRUE(found.posts().empty());
  const auto drops = found.all<trace::Drop>(RecordType::kDrop);
  ASSERT_EQ(drops.size(), 1U);
  EXPECT_GE(drops[0].records, 100U) << "posts and completions";
}

// The recorder holds its lock, and the handler of a signal posts in that very thread.
TEST_F(Recording, AHandlersFirstPostIsCounted) {
  ASSERT_EQ(run({}, "verbs_program", {"handler", "1"}), 0) << said();
  const Recorded found = read_recorded(trace());
  EXPECT_TRUE(found.is_sound && found.is_ended);
  EXPECT_EQ(found.count(Opcode::kWrite), 1U);
  EXPECT_EQ(found.completions().size(), 2U);
  const auto drops = found.all<trace::Drop>(RecordType::kDrop);
  ASSERT_EQ(drops.size(), 1U);
  EXPECT_EQ(drops[0].records, 1U);
}

TEST_F(Recording, LookingAtMemoryHoldsUpNobody) {
  ASSERT_EQ(run({}, "verbs_program", {"beside", "1"}), 0) << said();
  EXPECT_EQ(read_recorded(trace()).all<trace::Region>(RecordType::kRegion).size(), 3U);
}

// Whose libibverbs has another name: its functions are those that the recorder stands before.
TEST_F(Recording, ALibraryOfAnotherName) {
  ASSERT_EQ(run({}, "verbs_program_other", {"classic", "3"}), 0) << said();
  expect_each(read_recorded(trace()), 3, false);
}

TEST_F(Recording, SixtyFourThreadsPostAtOnce) {
  ASSERT_EQ(run({}, "verbs_program", {"threads", "500"}), 0);
  const Recorded found = read_recorded(trace());
  EXPECT_TRUE(found.is_sound && found.is_ended);
  EXPECT_EQ(found.all<trace::Thread>(RecordType::kThread).size(), 64U);
  EXPECT_EQ(found.count(Opcode::kWrite), 64U * 500);
  EXPECT_EQ(found.completions().size(), 64U * 500);
  std::map<std::uint32_t, std::uint64_t> last;
  for (const trace::Post& post : found.posts()) {
    EXPECT_GE(post.head.time_ns, last[post.head.thread]);
    last[post.head.thread] = post.head.time_ns;
  }
  EXPECT_EQ(last.size(), 64U);
}

// The least buffer, and more posts than the writer takes: what lacks is counted, to the byte.
TEST_F(Recording, WhatIsDroppedIsCounted) {
  ASSERT_EQ(run({"--buffer", "256KiB"}, "verbs_program", {"lists", "100000"}), 0);
  const Recorded found = read_recorded(trace());
  EXPECT_TRUE(found.is_sound && found.is_ended);
  std::uint64_t posts = found.posts().size();
  std::uint64_t completions = found.completions().size();
  std::uint64_t bytes = 128 * posts;
  for (const trace::Drop& drop : found.all<trace::Drop>(RecordType::kDrop)) {
    EXPECT_EQ(drop.records, drop.posts + drop.completions);
    EXPECT_LE(drop.first_ns, drop.head.time_ns);
    posts += drop.posts;
    completions += drop.completions;
    bytes += drop.posted_bytes;
  }
  EXPECT_EQ(posts, 400'000U);
  EXPECT_EQ(completions, 100'000U);
  EXPECT_EQ(bytes, 128U * 400'000);
}

TEST_F(Recording, AChildThatOpensADeviceHasATraceOfItsOwn) {
  ASSERT_EQ(run({}, "verbs_program", {"fork", "20"}), 0) << said();
  ASSERT_EQ(traces().size(), 2U);
  std::vector<std::size_t> writes;
  std::set<std::uint32_t> processes;
  for (const fs::path& file : traces()) {
    const Recorded found = read_recorded(file.string());
    EXPECT_TRUE(found.is_sound && found.is_ended) << file;
    writes.push_back(found.count(Opcode::kWrite));
    processes.insert(found.all<trace::Host>(RecordType::kHost).at(0).process);
  }
  EXPECT_THAT(writes, ::testing::UnorderedElementsAre(40, 20));
  EXPECT_EQ(processes.size(), 2U);
}

// What ends a program without its destructors costs what was not flushed yet.
TEST_F(Recording, TheProgramsEndIsItsOwn) {
  for (const auto& [end, code] : {std::pair{"_exit", 3}, std::pair{"abort", 128 + SIGABRT}}) {
    EXPECT_EQ(run({}, "verbs_program", {"lists", "100000", end}), code);
    const Recorded found = read_recorded(trace());
    EXPECT_TRUE(found.is_sound);
    EXPECT_FALSE(found.is_ended);
    EXPECT_GT(found.posts().size(), 1000U);
    fs::remove(trace());
  }
  EXPECT_EQ(run({}, "verbs_program", {"nothing", "1"}), 1);
}

// A process ends with its last thread, which the recorder's must not be.
TEST_F(Recording, AProgramWhoseFirstThreadEndsEndsToo) {
  EXPECT_EQ(run({}, "verbs_program", {"lists", "1000", "pthread_exit"}), 0);
  EXPECT_TRUE(read_recorded(trace()).is_ended);
}

// At any time the file holds whole blocks, up to a flush at most a round and 100 ms ago.
TEST_F(Recording, KilledAtRandomPoints) {
  for (int i = 0; i < 12; ++i) {
    const pid_t child = start({}, "verbs_program", {"endless", "1"});
    std::this_thread::sleep_for(std::chrono::milliseconds(30 + 37 * i));
    kill(child, SIGKILL);
    const int status = wait(child);
    ASSERT_TRUE(WIFSIGNALED(status));
    if (!fs::exists(trace())) continue;  // before it opened a device
    const Recorded found = read_recorded(trace());
    EXPECT_FALSE(found.is_ended);
    if (i > 8) {
      EXPECT_GT(found.posts().size(), 1000U);
    }
    fs::remove(trace());
  }
}

TEST_F(Recording, AFullDiskEndsTheRecordingNotTheProgram) {
  EXPECT_EQ(run({}, "verbs_program", {"lists", "100000"}, 100'000), 0);
  const Recorded found = read_recorded(trace());
  EXPECT_TRUE(found.is_sound);
  EXPECT_LE(fs::file_size(trace()), 100'000U);
  EXPECT_THAT(said(), ::testing::HasSubstr("recording ends here: File too large"));
  const auto marks = found.all<trace::Mark>(RecordType::kMark);
  EXPECT_LE(marks.size(), 1U);
}

TEST_F(Recording, NoPlaceForTheFileEndsTheRecordingNotTheProgram) {
  trace_ = "/proc/run.weft";
  EXPECT_EQ(run({}, "verbs_program", {"classic", "10"}), 0);
  EXPECT_THAT(said(), ::testing::HasSubstr("/proc/run.weft: recording ends here"));
}

TEST_F(Recording, HidesWhatSaltIsForAndKeepsItWhereAsked) {
  ASSERT_EQ(run({"--salt", "a job's"}, "verbs_program", {"classic", "1"}), 0);
  const Recorded first = read_recorded(trace());
  fs::remove(trace());
  ASSERT_EQ(run({"--salt", "a job's"}, "verbs_program", {"classic", "1"}), 0);
  const Recorded second = read_recorded(trace());
  fs::remove(trace());
  ASSERT_EQ(run({"--keep-names"}, "verbs_program", {"classic", "1"}), 0);
  const Recorded plain = read_recorded(trace());
  const auto guid = [](const Recorded& of) {
    return of.all<trace::Device>(RecordType::kDevice).at(0).guid;
  };
  EXPECT_EQ(guid(plain), 0x0123456789abcdefU);
  EXPECT_NE(guid(first), guid(plain));
  EXPECT_EQ(guid(first), guid(second));
  EXPECT_EQ(plain.all<trace::Port>(RecordType::kPort).at(0).lid, 7U);
  EXPECT_EQ(first.head.is_salted, 1);
  EXPECT_EQ(plain.head.is_salted, 0);
}

TEST_F(Recording, WhatIsWrongIsSaidBeforeTheProgramRuns) {
  ASSERT_EQ(run({}, "verbs_program", {"classic", "1"}), 0);
  EXPECT_EQ(run({}, "verbs_program", {"classic", "1"}), 2);
  EXPECT_THAT(said(), ::testing::HasSubstr("exists already"));
  fs::remove(trace());
  EXPECT_EQ(run({"--buffer", "1KiB"}, "verbs_program", {"classic", "1"}), 2);
  EXPECT_THAT(said(), ::testing::HasSubstr("out of range"));
  EXPECT_EQ(run({"--topology", "/no/such.yaml"}, "verbs_program", {"classic", "1"}), 2);
  EXPECT_EQ(run({}, "no_such_program", {}), 2);
  EXPECT_THAT(said(), ::testing::HasSubstr("No such file"));
}

TEST_F(Recording, OthersThatArePreloadedFindWhoIsBehindThem) {
  setenv("LD_PRELOAD", WEFT_NEXT_WRAPPER, 1);
  const int code = run({}, "verbs_program_dlsym", {"classic", "2"});
  unsetenv("LD_PRELOAD");
  EXPECT_EQ(code, 0);
  expect_each(read_recorded(trace()), 2, false);
}

}  // namespace
}  // namespace weft::test::record_recording
