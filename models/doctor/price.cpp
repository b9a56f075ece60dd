#include "models/doctor/price.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/parallel.hpp"

namespace weft {
namespace {

std::vector<SizePrice> compared(const CasePrediction& found, const CasePrediction& mended) {
  std::vector<SizePrice> out;
  for (std::size_t i = 0; i < found.rows.size() && i < mended.rows.size(); ++i) {
    const ResultRow& before = found.rows[i];
    const ResultRow& after = mended.rows[i];
    out.push_back(
        {before.bytes, before.time_us, after.time_us, before.memory_path, after.memory_path});
  }
  return out;
}

}  // namespace

Priced set_prices(const MachineCase& found, const CaseContext& context, const PriceRequest& request,
                  std::vector<Finding>& findings) {
  std::vector<std::size_t> mendable;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (findings[i].can_be_mended()) mendable.push_back(i);
  }
  Priced out;
  if (mendable.empty()) return out;
  const auto all_but = [&](std::optional<std::size_t> left) {
    std::vector<const Change*> mends;
    for (const std::size_t i : mendable) {
      if (i != left) mends.push_back(&findings[i].mend);
    }
    return mends;
  };
  // As found, all mended, then of each finding: it alone mended, and all others.
  std::vector<std::vector<const Change*>> cases{{}, all_but(std::nullopt)};
  if (mendable.size() > 1) {
    for (const std::size_t i : mendable) {
      cases.push_back({&findings[i].mend});
      cases.push_back(all_but(i));
    }
  }
  std::map<std::size_t, std::size_t> worst_of;  // by finding, its case
  for (const std::size_t i : mendable) {
    if (!findings[i].at_worst) continue;
    worst_of[i] = cases.size();
    cases.push_back({&findings[i].at_worst->change});
  }
  std::vector<CasePrediction> results(cases.size());
  parallel_for(cases.size(), request.threads, [&](std::size_t i) {
    CasePredictor predictor(found, cases[i], context, "doctor",
                            threads_each(cases.size(), request.threads), request.stop);
    results[i] = predictor.predict({request.op, request.sizes});
  });
  out.why_not = results[0].why_not.empty() ? results[1].why_not : results[0].why_not;
  out.together = compared(results[0], results[1]);
  for (std::size_t k = 0; k < mendable.size(); ++k) {
    const CasePrediction& alone = mendable.size() > 1 ? results[2 + 2 * k] : results[1];
    const CasePrediction& others = mendable.size() > 1 ? results[3 + 2 * k] : results[0];
    FindingPrice& price = findings[mendable[k]].price;
    price.alone = compared(results[0], alone);
    price.last = compared(others, results[1]);
    if (price.alone.empty()) {
      price.why_not = results[0].why_not.empty() ? alone.why_not : results[0].why_not;
    }
    const auto worst = worst_of.find(mendable[k]);
    if (worst != worst_of.end()) price.worst = compared(results[worst->second], alone);
  }
  return out;
}

}  // namespace weft
