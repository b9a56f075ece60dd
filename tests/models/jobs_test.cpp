#include "models/collective/jobs.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/stop.hpp"
#include "sim/report/csv_report.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_jobs {
namespace {

using ::testing::ElementsAre;

Scenario two_jobs() {
  return parse_scenario(R"(scenario: jobs
topology: ../topologies/hgx-h100-8nic.yaml
nodes: 4
jobs:
  - {job: a, nodes: 0-1, op: alltoall, size: 1 KiB}
  - {job: b, nodes: 2-3, op: allreduce, size: 2 KiB}
memory_paths: [gdr, host-staged]
set: {gpu.count: 1, nic.count: 1}
)",
                        shipped("scenarios/jobs.yaml"));
}

TEST(Jobs, StoppedAfterOneMemoryPathTheyKeepItsRows) {
  Stop stop;
  std::vector<std::size_t> heard;
  PredictOptions options;
  options.stop = &stop;
  options.on_progress = [&](const RunProgress& p) {
    heard.push_back(p.rows_done);
    EXPECT_EQ(p.rows, 4);
    EXPECT_DOUBLE_EQ(p.work_done / p.work, static_cast<double>(p.rows_done) / 4);
    if (p.rows_done == 2) stop.request();
  };
  const RunResult stopped = predict(two_jobs(), options, make_catalog());
  EXPECT_THAT(heard, ElementsAre(0, 2));
  ASSERT_EQ(stopped.rows.size(), 2);
  ASSERT_EQ(stopped.not_run.size(), 2);
  EXPECT_EQ(stopped.not_run[0].job, "a");
  EXPECT_EQ(stopped.not_run[1].job, "b");
  EXPECT_EQ(stopped.not_run[1].op, "allreduce");
  EXPECT_EQ(stopped.not_run[1].bytes, 2048);
  EXPECT_EQ(stopped.not_run[1].memory_path, "host-staged");
  EXPECT_EQ(to_json(stopped).at("incomplete").items()[0].at("job").as_string(), "a");
  const RunResult whole = predict(two_jobs(), {}, make_catalog());
  ASSERT_EQ(whole.rows.size(), 4);
  EXPECT_EQ(whole.rows[1].trajectory, stopped.rows[1].trajectory);
  // Lines of one length, whether run or not.
  EXPECT_THAT(csv_text(stopped),
              ::testing::EndsWith("\nallreduce,2048,,,host-staged,,,,,,,,,,,b,\n"));
}

TEST(Jobs, StoppedBeforeAnyRowTheyHaveNothingToKeep) {
  Stop stop;
  stop.request();
  PredictOptions options;
  options.stop = &stop;
  EXPECT_THROW(predict(two_jobs(), options, make_catalog()), Stopped);
}

}  // namespace
}  // namespace weft::test::models_jobs
