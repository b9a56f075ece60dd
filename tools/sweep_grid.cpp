#include "tools/sweep_grid.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "models/collective/settings.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/random.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostPoints = 100'000;

}  // namespace

SweepAxis parse_axis(const std::string& text) {
  const ScenarioSetting setting = parse_setting(text);
  SweepAxis axis{setting.key, {}};
  const auto fail = [&](const std::string& why) {
    throw InputError("--set '" + text + "': " + why + "; write KEY=VALUE,VALUE,...");
  };
  if (one_line(text) != text) fail("control characters are not accepted");
  for (const std::string& written : comma_separated(setting.value)) {
    const std::string value(trimmed(written));
    if (value.empty()) fail("an empty value");
    if (std::find(axis.values.begin(), axis.values.end(), value) != axis.values.end()) {
      fail("'" + value + "' is given twice");
    }
    axis.values.push_back(value);
  }
  return axis;
}

std::vector<SweepPoint> grid_points(const std::vector<SweepAxis>& axes, const std::string& base) {
  std::size_t count = 1;
  for (auto axis = axes.begin(); axis != axes.end(); ++axis) {
    if (std::any_of(axes.begin(), axis, [&](const SweepAxis& a) { return a.key == axis->key; })) {
      throw InputError("--set: '" + axis->key + "' is given twice; write " + axis->key +
                       "=VALUE,VALUE,...");
    }
    count *= axis->values.size();
    if (count > kMostPoints) {
      throw InputError("--set: the grid has more than " + std::to_string(kMostPoints) +
                       " points; split it");
    }
  }
  std::vector<SweepPoint> points(count);
  for (std::size_t p = 0; p < count; ++p) {
    std::string content = base;
    std::size_t stride = count;
    for (const SweepAxis& axis : axes) {
      stride /= axis.values.size();
      const std::string& value = axis.values[p / stride % axis.values.size()];
      points[p].values.push_back(value);
      content += "set " + axis.key + "=" + value + '\n';
    }
    points[p].digest = fmt::format("{:016x}", fnv1a(content));
  }
  return points;
}

}  // namespace weft
