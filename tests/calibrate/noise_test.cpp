#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/calibrate/calibrate.hpp"
#include "tests/calibrate/synthetic.hpp"

namespace weft::test::calibrate_noise {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

TEST(Calibrate, MissesByNoMoreThanItSays) {
  // Six draws of the noise: of 18 errors a few lie beyond 2.5 standard errors, as there are few
  // configurations, none beyond 5, and on average they are as large as they are said to be.
  double sum = 0;
  int beyond = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Calibration got =
        calibrate(request_of({synthetic(kTruth, 0.03, seed)}, kKeys), catalog());
    ASSERT_EQ(got.refusal, "");
    for (const auto& [key, truth] :
         std::vector<std::pair<std::string, double>>{{"nccl.launch_simple", 6500},
                                                     {"nccl.launch_ll", 5500},
                                                     {"gpu.sm_peer_store_rate", 40}}) {
      const FittedParam& p = param(got, key);
      const double missed = (p.value - truth) / p.standard_error.value();
      EXPECT_LT(std::abs(missed), 5) << key << ", seed " << seed;
      beyond += std::abs(missed) > 2.5 ? 1 : 0;
      sum += missed * missed;
    }
  }
  EXPECT_LE(beyond, 3);
  EXPECT_THAT(std::sqrt(sum / 18), AllOf(Ge(0.5), Le(2)));
}

TEST(Calibrate, WithoutKeysFitsWhatIsAFitAlreadyAndCounts) {
  const MeasuredTable table = synthetic({"nccl.launch_ll=5.5 us", "nccl.launch_simple=7 us"}, 0.005,
                                        1, skeleton({1, 2, 3, 4, 5, 6}));
  const Calibration got = calibrate(request_of({table}, {}), catalog());
  EXPECT_EQ(got.refusal, "");
  EXPECT_NO_THROW(param(got, "nccl.launch_ll"));
  EXPECT_NO_THROW(param(got, "nccl.launch_simple"));
  EXPECT_THROW(param(got, "nccl.launch_ll128"), std::logic_error);
  EXPECT_THAT(got.notes.at(0), HasSubstr("not fitted: no fitted row depends on "));
  EXPECT_THAT(got.notes.at(0), HasSubstr("nccl.launch_ll128"));
  // Stores to the GPU's own memory and to another's take turns: these rows tell one from the other
  // no better than from noise.
  EXPECT_NO_THROW(param(got, "gpu.sm_store_rate"));
  EXPECT_THAT(got.notes.at(1), AllOf(HasSubstr("do not tell from those that are"),
                                     HasSubstr("gpu.sm_peer_store_rate")));
}

}  // namespace
}  // namespace weft::test::calibrate_noise
