#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/doctor/checks.hpp"
#include "tests/doctor/doctor_data.hpp"

namespace weft::test {

/// What one check says.
struct Result {
  Verdict verdict;
  std::string text;  ///< of the first finding, else the outcome's
  std::vector<std::string> mended;
  std::string command;
};

inline Result run(std::string_view name, const Evidence& evidence, const std::string& gpu = {}) {
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  const Patient patient(evidence, catalog, parts, std::nullopt, gpu);
  for (const Check& check : ::weft::doctor_checks()) {
    if (check.name != name) continue;
    const Outcome outcome = check.run(patient);
    if (outcome.findings.empty()) return {outcome.verdict, outcome.text, {}, outcome.command};
    const Finding& first = outcome.findings.front();
    EXPECT_TRUE(first.mend.empty() != first.why_unpriced.empty() || first.is_error) << first.what;
    EXPECT_FALSE(first.evidence.empty()) << first.what;
    return {outcome.verdict, first.what, first.mend.lines(), ""};
  }
  throw std::logic_error("no check " + std::string(name));
}

inline Result with_lspci(std::string_view name, const std::string& pattern, const std::string& by) {
  return run(name, evidence_of_both(edited(dell_lspci(), pattern, by), dell_rest()));
}
inline Result with_rest(std::string_view name, const std::string& pattern, const std::string& by) {
  return run(name, evidence_of_both(dell_lspci(), edited(dell_rest(), pattern, by)));
}
/// With a line, or lines, more.
inline Result with_more(std::string_view name, const std::string& lines) {
  return run(name, evidence_of_both(dell_lspci(), dell_rest() + lines));
}
inline Result healthy(std::string_view name) {
  return run(name, evidence_of_both(dell_lspci(), dell_rest()));
}
inline Result lspci_alone(std::string_view name) { return run(name, evidence_of(dell_lspci())); }

#define EXPECT_SPEAKS(result, words)                     \
  do {                                                   \
    const Result said = (result);                        \
    EXPECT_EQ(said.verdict, Verdict::kFinding);          \
    EXPECT_THAT(said.text, ::testing::HasSubstr(words)); \
  } while (false)

}  // namespace weft::test
