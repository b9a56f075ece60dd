#include "sim/base/error.hpp"

#include <gtest/gtest.h>

namespace weft::test::base_error {
namespace {

TEST(Place, SaysAsMuchAsIsKnown) {
  EXPECT_EQ((Place{"f.yaml", 3, 5}.text()), "f.yaml:3:5");
  EXPECT_EQ((Place{"f.yaml", 3, 0}.text()), "f.yaml:3");
  EXPECT_EQ((Place{"f.yaml", 0, 5}.text()), "f.yaml");  // a column without its line says nothing
  EXPECT_EQ(Place{}.text(), "");
}

TEST(InputError, BeginsWithItsPlaceWhereThereIsOne) {
  EXPECT_STREQ(InputError(Place{"f.yaml", 3, 5}, "why").what(), "f.yaml:3:5: why");
  EXPECT_STREQ(InputError(Place{}, "why").what(), "why");
  EXPECT_STREQ(InputError("why").what(), "why");
}

TEST(InputError, IsNotWeftsOwnFault) {  // main() tells exit code 2 from 70 by this
  EXPECT_FALSE((std::is_base_of_v<std::logic_error, InputError>));
  EXPECT_FALSE((std::is_base_of_v<std::logic_error, ExpectationMissed>));
  EXPECT_FALSE((std::is_base_of_v<InputError, ExpectationMissed>));
}

TEST(KnownNames, AreSortedAndCapped) {
  EXPECT_EQ(known_names({"nic1", "gpu0", "nic0"}), "gpu0, nic0, nic1");
  EXPECT_EQ(known_names({"d", "c", "b", "a"}, 2), "a, b and 2 more");
  EXPECT_EQ(known_names({}), "");
}

TEST(KnownNames, GoByTheirNumbers) {
  EXPECT_EQ(known_names({"gpu10", "gpu9", "gpu", "cpu11", "gpu1x", "gpu010"}),
            "cpu11, gpu, gpu1x, gpu9, gpu010, gpu10");
  EXPECT_EQ(known_names({"10", "9", "a", ""}), ", 9, 10, a");
}

TEST(DidYouMean, NamesWhatIsOneOrTwoLettersOff) {
  const std::vector<std::string> names{"node", "nodes", "network", "rate"};
  EXPECT_EQ(did_you_mean("nods", names), " (did you mean 'node'?)") << "the first of equally near";
  EXPECT_EQ(did_you_mean("netwrok", names), " (did you mean 'network'?)");
  EXPECT_EQ(did_you_mean("rates", names), " (did you mean 'rate'?)");
  EXPECT_EQ(did_you_mean("hosts", names), "");
  EXPECT_EQ(did_you_mean("ab", names), "");
  EXPECT_EQ(did_you_mean("", names), "");
  EXPECT_EQ(did_you_mean(std::string(1000, 'n'), names), "");
}

}  // namespace
}  // namespace weft::test::base_error
