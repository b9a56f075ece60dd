// A small program of verbs that a recorder is tried on: one process, two queue pairs that are each
// other's peers, on the first and the last device there is.
//
//   verbs_program WHAT COUNT [END]
//
// WHAT: classic  COUNT each of SEND, WRITE, WRITE_WITH_IMM, FETCH_ADD and READ by ibv_post_send
//       builder  the same by ibv_wr_* and an extended completion queue
//       shared   COUNT SENDs that take from a shared receive queue
//       lists    COUNT lists of four WRITEs of two segments, of which the last is signaled
//       failing  one WRITE to a queue pair that is not there
//       refused  a list of three of which the second is refused (the stand-in library only)
//       threads  64 threads, each with queue pairs of its own, COUNT WRITEs each
//       fork     COUNT WRITEs, then a child opens the device itself and does as many
//       endless  WRITEs until it is killed
// END:  return (default), _exit, abort, kill, pthread_exit: how it ends
//
// Built linked to libibverbs, or with WEFT_LOADED finding its functions as NCCL does: dlopen, then
// dlvsym (or dlsym, with WEFT_DLSYM too).
#include <atomic>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <pthread.h>
#include <string>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <infiniband/verbs.h>

#undef ibv_reg_mr

// clang-format off: it never settles on this list
#define FUNCTIONS(X)                    \
  X(ibv_get_device_list, "IBVERBS_1.1") \
  X(ibv_open_device, "IBVERBS_1.1")     \
  X(ibv_close_device, "IBVERBS_1.1")    \
  X(ibv_alloc_pd, "IBVERBS_1.1")        \
  X(ibv_dealloc_pd, "IBVERBS_1.1")      \
  X(ibv_reg_mr, "IBVERBS_1.1")          \
  X(ibv_dereg_mr, "IBVERBS_1.1")        \
  X(ibv_rereg_mr, "IBVERBS_1.1")        \
  X(ibv_create_cq, "IBVERBS_1.1")       \
  X(ibv_destroy_cq, "IBVERBS_1.1")      \
  X(ibv_create_srq, "IBVERBS_1.1")      \
  X(ibv_destroy_srq, "IBVERBS_1.1")     \
  X(ibv_create_qp, "IBVERBS_1.1")       \
  X(ibv_modify_qp, "IBVERBS_1.1")       \
  X(ibv_destroy_qp, "IBVERBS_1.1")      \
  X(ibv_query_gid, "IBVERBS_1.1")       \
  X(ibv_qp_to_qp_ex, "IBVERBS_1.6")
// clang-format on

namespace {

#undef ibv_get_device_list

struct Functions {
#define MEMBER(name, version) decltype(&::name) name;
  FUNCTIONS(MEMBER)
} verbs;

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "verbs_program: %s failed (errno %d)\n", what, errno);
  std::exit(1);
}

void load() {
#ifdef WEFT_LOADED
  void* const library = dlopen("libibverbs.so.1", RTLD_NOW);  // RTLD_LOCAL, as NCCL
  check(library != nullptr, "dlopen");
#ifdef WEFT_DLSYM
#define FIND(name, version) verbs.name = std::bit_cast<decltype(&::name)>(dlsym(library, #name));
#else
#define FIND(name, version) \
  verbs.name = std::bit_cast<decltype(&::name)>(dlvsym(library, #name, version));
#endif
  FUNCTIONS(FIND)
  check(dlsym(library, "ibv_no_such_function") == nullptr, "a function that is not there");
#else
#define TAKE(name, version) verbs.name = ::name;
  FUNCTIONS(TAKE)
#endif
}

constexpr std::size_t kBuffer = 65536;
constexpr int kDepth = 128;
constexpr unsigned kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                             IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

enum class Kind { kClassic, kBuilder, kShared };

struct Side {
  Kind kind{};
  ibv_context* context{};
  ibv_pd* domain{};
  ibv_mr* region{};
  ibv_cq* queue{};
  ibv_cq_ex* extended_queue{};
  ibv_srq* shared{};
  ibv_qp* pair{};
  ibv_qp_ex* builder{};
  ibv_gid gid{};
  char* buffer{};

  std::uint64_t address() const { return std::bit_cast<std::uint64_t>(buffer); }
};

void make_queues(Side& side) {
  if (side.kind == Kind::kBuilder) {
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = kDepth;
    wanted.wc_flags = IBV_WC_STANDARD_FLAGS;
    side.extended_queue = ibv_create_cq_ex(side.context, &wanted);
    check(side.extended_queue != nullptr, "ibv_create_cq_ex");
    side.queue = ibv_cq_ex_to_cq(side.extended_queue);
    return;
  }
  side.queue = verbs.ibv_create_cq(side.context, kDepth, nullptr, nullptr, 0);
  check(side.queue != nullptr, "ibv_create_cq");
  if (side.kind != Kind::kShared) return;
  ibv_srq_init_attr wanted{};
  wanted.attr.max_wr = kDepth;
  wanted.attr.max_sge = 1;
  side.shared = verbs.ibv_create_srq(side.domain, &wanted);
  check(side.shared != nullptr, "ibv_create_srq");
}

void make_pair(Side& side) {
  const ibv_qp_cap caps{kDepth, kDepth, 2, 1, 0};
  if (side.kind != Kind::kBuilder) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = side.queue;
    wanted.srq = side.shared;
    wanted.cap = caps;
    wanted.qp_type = IBV_QPT_RC;
    side.pair = verbs.ibv_create_qp(side.domain, &wanted);
    check(side.pair != nullptr, "ibv_create_qp");
    return;
  }
  ibv_qp_init_attr_ex wanted{};
  wanted.send_cq = wanted.recv_cq = side.queue;
  wanted.cap = caps;
  wanted.qp_type = IBV_QPT_RC;
  wanted.pd = side.domain;
  wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  wanted.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
                          IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
                          IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  side.pair = ibv_create_qp_ex(side.context, &wanted);
  check(side.pair != nullptr, "ibv_create_qp_ex");
  side.builder = verbs.ibv_qp_to_qp_ex(side.pair);
}

void open(Side& side, ibv_device* device, Kind kind) {
  side.kind = kind;
  side.context = verbs.ibv_open_device(device);
  check(side.context != nullptr, "ibv_open_device");
  side.domain = verbs.ibv_alloc_pd(side.context);
  side.buffer = static_cast<char*>(std::aligned_alloc(4096, kBuffer));
  std::memset(side.buffer, 0, kBuffer);
  side.region = verbs.ibv_reg_mr(side.domain, side.buffer, kBuffer, static_cast<int>(kAccess));
  check(side.region != nullptr, "ibv_reg_mr");
  make_queues(side);
  make_pair(side);
  check(verbs.ibv_query_gid(side.context, 1, 1, &side.gid) == 0, "ibv_query_gid");
}

void connect(Side& side, const ibv_gid& gid, std::uint32_t peer) {
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.port_num = 1;
  to.qp_access_flags = kAccess;
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  check(verbs.ibv_modify_qp(side.pair, &to, mask) == 0, "ibv_modify_qp to INIT");
  to = {};
  to.qp_state = IBV_QPS_RTR;
  to.path_mtu = IBV_MTU_1024;
  to.dest_qp_num = peer;
  to.max_dest_rd_atomic = 1;
  to.min_rnr_timer = 12;
  to.ah_attr.is_global = 1;
  to.ah_attr.port_num = 1;
  to.ah_attr.grh.dgid = gid;
  to.ah_attr.grh.sgid_index = 1;
  to.ah_attr.grh.hop_limit = 8;
  mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  check(verbs.ibv_modify_qp(side.pair, &to, mask) == 0, "ibv_modify_qp to RTR");
  to = {};
  to.qp_state = IBV_QPS_RTS;
  to.max_rd_atomic = 1;
  to.retry_cnt = 2;
  to.rnr_retry = 7;
  to.timeout = 17;
  mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
         IBV_QP_MAX_QP_RD_ATOMIC;
  check(verbs.ibv_modify_qp(side.pair, &to, mask) == 0, "ibv_modify_qp to RTS");
}

ibv_wc_status await_extended(Side& side, std::uint64_t id) {
  ibv_poll_cq_attr attributes{};
  int result = ENOENT;
  while (result == ENOENT) result = ibv_start_poll(side.extended_queue, &attributes);
  check(result == 0 && side.extended_queue->wr_id == id, "ibv_start_poll");
  const ibv_wc_status status = side.extended_queue->status;
  ibv_end_poll(side.extended_queue);
  return status;
}

ibv_wc_status await(Side& side, std::uint64_t id) {
  if (side.kind == Kind::kBuilder) return await_extended(side, id);
  ibv_wc completion{};
  int got = 0;
  while (got == 0) got = ibv_poll_cq(side.queue, 1, &completion);
  check(got == 1 && completion.wr_id == id, "ibv_poll_cq");
  return completion.status;
}

void build(Side& from, const Side& to, ibv_wr_opcode code, std::uint64_t id, std::uint32_t bytes) {
  ibv_qp_ex* const pair = from.builder;
  const std::uint32_t key = to.region->rkey;
  ibv_wr_start(pair);
  pair->wr_id = id;
  pair->wr_flags = IBV_SEND_SIGNALED;
  switch (code) {
    case IBV_WR_SEND:
      ibv_wr_send(pair);
      break;
    case IBV_WR_RDMA_WRITE:
      ibv_wr_rdma_write(pair, key, to.address());
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      ibv_wr_rdma_write_imm(pair, key, to.address(), 1);
      break;
    case IBV_WR_RDMA_READ:
      ibv_wr_rdma_read(pair, key, to.address());
      break;
    default:
      ibv_wr_atomic_fetch_add(pair, key, to.address(), 1);
  }
  ibv_wr_set_sge(pair, from.region->lkey, from.address(), bytes);
  check(ibv_wr_complete(pair) == 0, "ibv_wr_complete");
}

ibv_send_wr request(const Side& to, ibv_wr_opcode code, std::uint64_t id, ibv_sge* segments,
                    int count) {
  ibv_send_wr out{};
  out.wr_id = id;
  out.sg_list = segments;
  out.num_sge = count;
  out.opcode = code;
  out.send_flags = IBV_SEND_SIGNALED;
  if (code == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    out.wr.atomic.remote_addr = to.address();
    out.wr.atomic.compare_add = 1;
    out.wr.atomic.rkey = to.region->rkey;
  } else {
    out.wr.rdma.remote_addr = to.address();
    out.wr.rdma.rkey = to.region->rkey;
  }
  return out;
}

void post(Side& from, const Side& to, ibv_wr_opcode code, std::uint64_t id, std::uint32_t bytes) {
  if (from.kind == Kind::kBuilder) {
    build(from, to, code, id, bytes);
    return;
  }
  ibv_sge segment{from.address(), bytes, from.region->lkey};
  ibv_send_wr one = request(to, code, id, &segment, 1);
  ibv_send_wr* bad = nullptr;
  check(ibv_post_send(from.pair, &one, &bad) == 0, "ibv_post_send");
}

void receive(Side& side, std::uint64_t id) {
  ibv_sge segment{side.address(), kBuffer, side.region->lkey};
  ibv_recv_wr one{};
  one.wr_id = id;
  one.sg_list = &segment;
  one.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  const int result = side.shared != nullptr ? ibv_post_srq_recv(side.shared, &one, &bad)
                                            : ibv_post_recv(side.pair, &one, &bad);
  check(result == 0, "a post of a receive");
}

struct Both {
  Side a;
  Side b;

  explicit Both(Kind kind) {
    int count = 0;
    ibv_device** const devices = verbs.ibv_get_device_list(&count);
    check(devices != nullptr && count > 0, "ibv_get_device_list");
    open(a, devices[0], kind);
    open(b, devices[count - 1], kind);
    connect(a, b.gid, b.pair->qp_num);
    connect(b, a.gid, a.pair->qp_num);
  }
  ~Both() {
    for (Side* side : {&a, &b}) {
      check(verbs.ibv_destroy_qp(side->pair) == 0, "ibv_destroy_qp");
      if (side->shared != nullptr) verbs.ibv_destroy_srq(side->shared);
      check(verbs.ibv_destroy_cq(side->queue) == 0, "ibv_destroy_cq");
      check(verbs.ibv_dereg_mr(side->region) == 0, "ibv_dereg_mr");
      check(verbs.ibv_dealloc_pd(side->domain) == 0, "ibv_dealloc_pd");
      check(verbs.ibv_close_device(side->context) == 0, "ibv_close_device");
      std::free(side->buffer);
    }
  }
  Both(const Both&) = delete;
  Both& operator=(const Both&) = delete;

  void one(ibv_wr_opcode code, std::uint64_t id, std::uint32_t bytes) {
    const bool takes = code == IBV_WR_SEND || code == IBV_WR_RDMA_WRITE_WITH_IMM;
    if (takes) receive(b, id);
    post(a, b, code, id, bytes);
    check(await(a, id) == IBV_WC_SUCCESS, "an operation");
    if (takes) check(await(b, id) == IBV_WC_SUCCESS, "a receive");
  }
};

void each(Kind kind, int count) {
  Both both(kind);
  std::uint64_t id = 1000;
  for (int i = 0; i < count; ++i) both.one(IBV_WR_SEND, id++, 100);
  if (kind == Kind::kShared) return;
  for (int i = 0; i < count; ++i) both.one(IBV_WR_RDMA_WRITE, id++, 5000);
  for (int i = 0; i < count; ++i) both.one(IBV_WR_RDMA_WRITE_WITH_IMM, id++, 300);
  for (int i = 0; i < count; ++i) both.one(IBV_WR_ATOMIC_FETCH_AND_ADD, id++, 8);
  for (int i = 0; i < count; ++i) both.one(IBV_WR_RDMA_READ, id++, 4096);
}

void lists(int count) {
  Both both(Kind::kClassic);
  for (int i = 0; i < count; ++i) {
    ibv_sge segments[2] = {{both.a.address(), 100, both.a.region->lkey},
                           {both.a.address() + 4096, 28, both.a.region->lkey}};
    ibv_send_wr list[4];
    for (int k = 0; k < 4; ++k) {
      list[k] = request(both.b, IBV_WR_RDMA_WRITE, static_cast<std::uint64_t>(k), segments, 2);
      list[k].send_flags = k == 3 ? IBV_SEND_SIGNALED : 0;
      list[k].next = k == 3 ? nullptr : &list[k + 1];
    }
    ibv_send_wr* bad = nullptr;
    check(ibv_post_send(both.a.pair, list, &bad) == 0, "a list");
    check(await(both.a, 3) == IBV_WC_SUCCESS, "a list");
  }
}

void failing() {
  Both both(Kind::kClassic);
  Side alone;
  int count = 0;
  ibv_device** const devices = verbs.ibv_get_device_list(&count);
  open(alone, devices[0], Kind::kClassic);
  connect(alone, both.b.gid, 0xfffff);
  post(alone, both.b, IBV_WR_RDMA_WRITE, 5, 64);
  check(await(alone, 5) == IBV_WC_RETRY_EXC_ERR, "retry exceeded");
}

void refused() {
  Both both(Kind::kClassic);
  ibv_sge segment{both.a.address(), 10, both.a.region->lkey};
  ibv_send_wr list[3];
  for (int k = 0; k < 3; ++k) {
    list[k] = request(both.b, IBV_WR_RDMA_WRITE, static_cast<std::uint64_t>(k), &segment, 1);
    list[k].next = k == 2 ? nullptr : &list[k + 1];
  }
  list[1].send_flags |= 0x100;
  ibv_send_wr* bad = nullptr;
  errno = 0;
  const int result = ibv_post_send(both.a.pair, list, &bad);
  check(result == EINVAL && errno == EBADMSG && bad == &list[1], "a refusal as it is");
  check(await(both.a, 0) == IBV_WC_SUCCESS, "the first of the list");
}

// Numbers of segments that no device takes: refused, and not looked at by anybody.
void segments() {
  Both both(Kind::kClassic);
  ibv_sge segment{both.a.address(), 10, both.a.region->lkey};
  for (const int count : {-1, 1 << 28}) {
    ibv_send_wr one = request(both.b, IBV_WR_RDMA_WRITE, 7, &segment, 1);
    one.num_sge = count;
    ibv_send_wr* bad = nullptr;
    check(ibv_post_send(both.a.pair, &one, &bad) == EINVAL && bad == &one, "a refusal");
  }
}

// A region's memory becomes another part of the buffer, its access stays; then the same, where the
// call says that fork() was not told.
void registered_anew() {
  Both both(Kind::kClassic);
  for (const std::size_t length : {8192, 4095}) {
    const int result = verbs.ibv_rereg_mr(both.a.region, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr,
                                          both.a.buffer + 4096, length, 0);
    check(result == 0 || result == IBV_REREG_MR_ERR_DO_FORK_OLD, "ibv_rereg_mr");
    ibv_sge segment{both.a.address() + 4096 + 10, 100, both.a.region->lkey};
    ibv_send_wr one = request(both.b, IBV_WR_RDMA_WRITE, length, &segment, 1);
    ibv_send_wr* bad = nullptr;
    check(ibv_post_send(both.a.pair, &one, &bad) == 0, "a write");
    check(await(both.a, length) == IBV_WC_SUCCESS, "a write");
  }
}

// What is to happen within the next call that the recorder makes: of prctl, which it asks a
// thread's name under its lock, and of sysconf, which it asks the size of a page.
std::atomic<const std::function<void()>*> within_prctl{nullptr};
std::atomic<const std::function<void()>*> within_sysconf{nullptr};

void run_once(std::atomic<const std::function<void()>*>& what) {
  if (const auto* const todo = what.exchange(nullptr)) (*todo)();
}

std::function<void()> on_signal;

// A signal comes while the recorder makes this thread known, and its handler posts.
void handler() {
  Both both(Kind::kClassic);
  on_signal = [&] { post(both.a, both.b, IBV_WR_RDMA_WRITE, 2, 64); };
  std::signal(SIGUSR1, [](int) { on_signal(); });
  std::thread([&] {
    const std::function<void()> interrupt = [] { raise(SIGUSR1); };
    within_prctl = &interrupt;
    post(both.a, both.b, IBV_WR_RDMA_WRITE, 1, 64);
    check(within_prctl == nullptr, "the recorder's look at a thread's name");
    check(await(both.a, 2) == IBV_WC_SUCCESS, "the handler's write");
    check(await(both.a, 1) == IBV_WC_SUCCESS, "the thread's write");
  }).join();
}

// Another thread makes an object while the recorder looks at a region's memory, which may take
// long.
void beside() {
  Both both(Kind::kClassic);
  const std::function<void()> another = [&] {
    std::thread([&] {
      ibv_pd* const domain = verbs.ibv_alloc_pd(both.a.context);
      check(domain != nullptr && verbs.ibv_dealloc_pd(domain) == 0, "another thread's domain");
    }).join();
  };
  within_sysconf = &another;
  const std::vector<char> memory(100);
  ibv_mr* const region = verbs.ibv_reg_mr(both.a.domain, const_cast<char*>(memory.data()), 100,
                                          static_cast<int>(kAccess));
  check(within_sysconf == nullptr, "the recorder's look at the memory");
  check(region != nullptr && verbs.ibv_dereg_mr(region) == 0, "a region");
}

// With no address space left for a ring.
void crowded(int count) {
  Both both(Kind::kClassic);
  const rlimit limit{512U << 20, 512U << 20};
  check(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
  for (int i = 0; i < count; ++i) both.one(IBV_WR_RDMA_WRITE, 1, 64);
}

void writes(int count) {
  Both both(Kind::kClassic);
  for (int i = 0; i < count; ++i) {
    both.one(IBV_WR_RDMA_WRITE, static_cast<std::uint64_t>(i), 64);
  }
}

void threads(int count) {
  std::vector<std::thread> all;
  for (int i = 0; i < 64; ++i) all.emplace_back(writes, count);
  for (std::thread& thread : all) thread.join();
}

void forked(int count) {
  Both both(Kind::kClassic);
  for (int i = 0; i < count; ++i) both.one(IBV_WR_RDMA_WRITE, 1, 64);
  const pid_t child = fork();
  if (child == 0) {
    writes(count);
    std::exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  check(status == 0, "the child");
  for (int i = 0; i < count; ++i) both.one(IBV_WR_RDMA_WRITE, 1, 64);
}

void run(const std::string& what, int count) {
  if (what == "classic") return each(Kind::kClassic, count);
  if (what == "builder") return each(Kind::kBuilder, count);
  if (what == "shared") return each(Kind::kShared, count);
  if (what == "lists") return lists(count);
  if (what == "failing") return failing();
  if (what == "refused") return refused();
  if (what == "segments") return segments();
  if (what == "rereg") return registered_anew();
  if (what == "crowded") return crowded(count);
  if (what == "handler") return handler();
  if (what == "beside") return beside();
  if (what == "threads") return threads(count);
  if (what == "fork") return forked(count);
  if (what == "endless") {
    for (;;) writes(1000);
  }
  check(false, "finding what to do");
}

}  // namespace

// In the place of the C library's, for the recorder too.
extern "C" int prctl(int option, ...) noexcept {
  va_list arguments;
  va_start(arguments, option);
  const auto argument = va_arg(arguments, unsigned long);  // of all that are asked for here
  va_end(arguments);
  run_once(within_prctl);
  return static_cast<int>(syscall(SYS_prctl, option, argument, 0, 0, 0));
}
extern "C" long sysconf(int name) noexcept {
  static const auto kTrue = std::bit_cast<long (*)(int)>(dlsym(RTLD_NEXT, "sysconf"));
  run_once(within_sysconf);
  return kTrue(name);
}

int main(int argc, char** argv) {
  check(argc >= 3, "reading the arguments");
  const std::string end = argc > 3 ? argv[3] : "return";
  load();
  run(argv[1], std::atoi(argv[2]));
  check(getppid() > 0, "getppid");  // which another preloaded library may have wrapped
  std::printf("verbs_program %s: ok\n", argv[1]);
  std::fflush(stdout);
  if (end == "_exit") _exit(3);
  if (end == "abort") std::abort();
  if (end == "kill") raise(SIGKILL);
  if (end == "pthread_exit") pthread_exit(nullptr);
  return 0;
}
