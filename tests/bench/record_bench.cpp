// What recording adds to a program's calls: each call through the hooks, beside the same call to
// the provider alone, which does next to nothing. The promise is 150 ns at most for a post and for
// a poll that returns a completion.
//
//   record_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
//
// The ring is emptied each 256 calls by the thread itself, so that nothing is dropped: what the
// writer costs, on a core of its own, is not in these numbers.
#include <array>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <benchmark/benchmark.h>
#include <infiniband/verbs.h>

#include "replay/record/hooks.hpp"

namespace {

using namespace weft;
using namespace weft::record;

constexpr int kCallsToARelease = 256;

int post_send(ibv_qp* pair, ibv_send_wr* list, ibv_send_wr**) {
  benchmark::DoNotOptimize(pair);
  benchmark::DoNotOptimize(list);
  return 0;
}

int post_recv(ibv_qp* pair, ibv_recv_wr* list, ibv_recv_wr**) {
  benchmark::DoNotOptimize(pair);
  benchmark::DoNotOptimize(list);
  return 0;
}

int poll_cq(ibv_cq* queue, int count, ibv_wc* out) {
  benchmark::DoNotOptimize(queue);
  for (int i = 0; i < count; ++i) {
    out[i].status = IBV_WC_SUCCESS;
    out[i].opcode = IBV_WC_RDMA_WRITE;
    out[i].qp_num = 17;
  }
  return count;
}

void wr_nothing(ibv_qp_ex* pair) { benchmark::DoNotOptimize(pair); }

/// A device, a region, a queue and a queue pair of the provider above, known to the recorder.
struct Provider {
  ibv_device device{};
  ibv_context opened{};
  ibv_pd domain{};
  ibv_cq queue{};
  ibv_qp_ex extended{};
  ibv_qp& pair{extended.qp_base};
  std::array<char, 4096> memory{};
  ibv_mr region{};
  Ring ring{4U << 20};
  Recorder& recorder{Recorder::get()};

  explicit Provider(bool is_hooked) {
    opened.device = &device;
    opened.ops.post_send = post_send;
    opened.ops.post_recv = post_recv;
    opened.ops.poll_cq = poll_cq;
    domain.context = queue.context = pair.context = &opened;
    pair.pd = &domain;
    pair.send_cq = pair.recv_cq = &queue;
    pair.qp_num = 17;
    region.context = &opened;
    region.pd = &domain;
    region.lkey = 1;
    set_builder();
    if (!is_hooked) return;
    open_context(&opened);
    add_pair(&pair, nullptr, false);
    add_region(&region, {.address = std::bit_cast<std::uint64_t>(memory.data()),
                         .length = memory.size(),
                         .memory = memory.data()});
    hook_builder(&pair, &extended, 0);
  }
  void set_builder() {
    extended.wr_start = wr_nothing;
    extended.wr_complete = [](ibv_qp_ex* p) {
      benchmark::DoNotOptimize(p);
      return 0;
    };
    extended.wr_rdma_write = [](ibv_qp_ex* p, std::uint32_t, std::uint64_t) { wr_nothing(p); };
    extended.wr_set_sge = [](ibv_qp_ex* p, std::uint32_t, std::uint64_t, std::uint32_t) {
      wr_nothing(p);
    };
  }
  ibv_sge segment() const {
    return {.addr = std::bit_cast<std::uint64_t>(memory.data()), .length = 64, .lkey = 1};
  }
};

/// Calls, and empties the ring now and then.
template <typename Call>
void repeat(benchmark::State& state, Provider& provider, Call call) {
  const Recorder::Diverted diverted(provider.recorder, provider.ring);
  int calls = 0;
  for (auto _ : state) {
    call();
    if (++calls % kCallsToARelease == 0) {
      provider.ring.release(provider.ring.head() - provider.ring.tail());
    }
  }
}

// Never destroyed: the table of the recorder's objects points into them.
Provider& provider(bool is_hooked) {
  static std::array<Provider*, 2> made{};
  Provider*& one = made[is_hooked ? 1 : 0];
  if (one == nullptr) one = new Provider(is_hooked);
  return *one;
}

void post(benchmark::State& state) {
  Provider& to = provider(state.range(0) != 0);
  std::array<ibv_send_wr, 16> list{};
  ibv_sge segment = to.segment();
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].sg_list = &segment;
    list[i].num_sge = 1;
    list[i].opcode = IBV_WR_RDMA_WRITE;
    list[i].wr.rdma.rkey = 5;
    list[i].next = static_cast<std::int64_t>(i) + 1 < state.range(1) ? &list[i + 1] : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  repeat(state, to, [&] { ibv_post_send(&to.pair, list.data(), &bad); });
}
BENCHMARK(post)->ArgNames({"recorded", "requests"})->ArgsProduct({{0, 1}, {1, 16}});

void receive(benchmark::State& state) {
  Provider& to = provider(state.range(0) != 0);
  ibv_sge segment = to.segment();
  ibv_recv_wr one{};
  one.sg_list = &segment;
  one.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  repeat(state, to, [&] { ibv_post_recv(&to.pair, &one, &bad); });
}
BENCHMARK(receive)->ArgName("recorded")->Arg(0)->Arg(1);

void build(benchmark::State& state) {
  Provider& to = provider(state.range(0) != 0);
  const ibv_sge segment = to.segment();
  repeat(state, to, [&] {
    ibv_wr_start(&to.extended);
    ibv_wr_rdma_write(&to.extended, 5, 4096);
    ibv_wr_set_sge(&to.extended, segment.lkey, segment.addr, segment.length);
    ibv_wr_complete(&to.extended);
  });
}
BENCHMARK(build)->ArgName("recorded")->Arg(0)->Arg(1);

void poll(benchmark::State& state) {
  Provider& to = provider(state.range(0) != 0);
  std::array<ibv_wc, 16> completions{};
  repeat(state, to,
         [&] { ibv_poll_cq(&to.queue, static_cast<int>(state.range(1)), completions.data()); });
}
BENCHMARK(poll)->ArgNames({"recorded", "completions"})->ArgsProduct({{0, 1}, {1, 16}});

void clock_read(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(now_ns());
}
BENCHMARK(clock_read);

}  // namespace

int main(int argc, char** argv) {
  std::string folder = (std::filesystem::temp_directory_path() / "record-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  setenv(kFileVariable, (folder + "/bench.weft").c_str(), 1);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  Recorder::end_all();
  std::filesystem::remove_all(folder);
  return 0;
}
