// What a machine should give, and why a run on two nodes of it is slow.
//
//   slow_run TOPOLOGY LOG
#include <cstdio>
#include <string>
#include <weft/weft.hpp>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: slow_run TOPOLOGY LOG\n");
    return 2;
  }
  try {
    weft::api::ExpectOptions asked;
    asked.nodes = 2;
    asked.bytes = {1 << 20, 64 << 20};
    for (const weft::api::ExpectedRow& row : weft::api::expect({argv[1]}, asked).rows) {
      std::printf("%lld\t%.17g\t%.17g\n", static_cast<long long>(row.bytes), row.busbw_gb_per_s,
                  row.floor_gb_per_s.value_or(0));
    }
    weft::api::ExplainOptions options;
    options.machine = weft::api::Topology::load(argv[1]);
    const weft::api::Explanation explanation =
        weft::api::explain(weft::api::Log::load(argv[2]), options);
    std::printf("%s\n", explanation.verdict.c_str());
    for (const weft::api::Answer& answer : explanation.answers) {
      std::printf("%s\n", answer.causes.front().id.c_str());
    }
    return 0;
  } catch (const weft::api::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return e.kind() == weft::api::Error::Kind::kInput ? 2 : 70;
  }
}
