#include "tools/step_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/traffic_json.hpp"

namespace weft::test::tools_step_json {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What stopped a step or traffic stands in its file, which outlives what standard error said.
TEST(Incomplete, ResultsSaySo) {
  StepResult step;
  EXPECT_EQ(to_json(step).find("incomplete"), nullptr);
  EXPECT_THAT(step_text(step), Not(HasSubstr("incomplete")));
  step.not_run = {"nccl", "host-staged"};
  EXPECT_EQ(to_json(step).at("incomplete").items().at(1).as_string(), "host-staged");
  EXPECT_THAT(step_text(step), HasSubstr("# incomplete: nccl, host-staged missing"));
  TrafficResult traffic;
  EXPECT_EQ(to_json(traffic).find("incomplete"), nullptr);
  traffic.not_run = {"host-staged"};
  EXPECT_EQ(to_json(traffic).at("incomplete").items().at(0).as_string(), "host-staged");
  EXPECT_THAT(traffic_text(traffic), HasSubstr("# incomplete: host-staged missing"));
}

}  // namespace
}  // namespace weft::test::tools_step_json
