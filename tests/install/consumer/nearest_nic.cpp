// Which NIC each GPU reaches fastest over PCIe, and what one message size gets there.
//
//   nearest_nic TOPOLOGY
#include <cstdio>
#include <map>
#include <string>
#include <weft/weft.hpp>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: nearest_nic TOPOLOGY\n");
    return 2;
  }
  try {
    const weft::api::Topology topology = weft::api::Topology::load(argv[1]);
    std::map<std::string, weft::api::Pair> best;
    for (const weft::api::Pair& pair : topology.show().pairs) {
      const auto [at, is_new] = best.try_emplace(pair.gpu, pair);
      if (pair.nic_reads_gpu_gb_per_s > at->second.nic_reads_gpu_gb_per_s) at->second = pair;
    }
    for (const auto& [gpu, pair] : best) {
      std::printf("%s\t%s\t%s\t%.17g\n", gpu.c_str(), pair.nic.c_str(), pair.path_class.c_str(),
                  pair.nic_reads_gpu_gb_per_s);
    }
    weft::api::PerftestOptions options;
    options.bytes = {4096, 65536};
    for (const weft::api::PerftestRow& row : topology.perftest(options).rows) {
      std::printf("%lld\t%.17g\t%.17g\n", static_cast<long long>(row.bytes), row.average_gbit_per_s,
                  row.latency_us);
    }
    return 0;
  } catch (const weft::api::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return e.kind() == weft::api::Error::Kind::kInput ? 2 : 70;
  }
}
