// How much bus bandwidth is left when a link is slower: a scenario as it is, and with settings.
//
//   busbw SCENARIO.yaml [KEY=VALUE...]
#include <cstdio>
#include <string>
#include <weft/weft.hpp>

namespace {

void print(const weft::api::Prediction& prediction) {
  for (const weft::api::Row& row : prediction.rows) {
    const std::string limit = row.limited_by.empty() ? "" : row.limited_by.front().cause;
    std::printf("%s\t%lld\t%.17g\t%.17g\t%s\n", row.memory_path.c_str(),
                static_cast<long long>(row.bytes), row.time_us, row.busbw_gb_per_s, limit.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: busbw SCENARIO.yaml [KEY=VALUE...]\n");
    return 2;
  }
  try {
    weft::api::Scenario scenario = weft::api::Scenario::load(argv[1]);
    for (int i = 2; i < argc; ++i) {
      const std::string text = argv[i];
      const std::size_t equals = text.find('=');
      scenario.set(text.substr(0, equals), equals == text.npos ? "" : text.substr(equals + 1));
    }
    print(scenario.predict());
    return 0;
  } catch (const weft::api::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return e.kind() == weft::api::Error::Kind::kInput ? 2 : 70;
  }
}
