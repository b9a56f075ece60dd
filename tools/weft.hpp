#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// libweft, the whole of its public interface; installed as <weft/weft.hpp>. It predicts how fast
/// data moves between GPUs on different machines, and says why. What a scenario and a topology may
/// hold stands in scenarios/README.md and topologies/README.md; what may be set, `parameters()`
/// says.
///
/// Contracts that hold everywhere:
/// - Errors: every function throws Error and nothing else, and then leaves its object as it was.
/// - Units: in the names. GB/s = 1e9 bytes/s, Gb/s = 1e9 bit/s, KiB = 1024 bytes.
/// - Threads: there is no shared state. Several threads may call anything at once, const functions
///   even on the same object. What takes long starts threads of its own and joins them.
/// - Numbers: the same build gives the same bits for the same input, whatever the number of
/// threads.
///   Within a version all builds do; between versions predictions that changed stand in
///   CHANGELOG.md under "Changed predictions".
///
/// Everything is a plain value: copy it, move it, keep it as long as you like.
namespace weft::api {

/// The one exception of this library.
class Error : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    kInput,     ///< files, keys or values are wrong: says where, what, and what is allowed
    kInternal,  ///< weft's own fault, or the machine is out of memory; please report the former
    kStopped,   ///< `stop` ended it before anything that can be given was finished
  };
  Error(Kind kind, const std::string& what) : std::runtime_error{what}, kind_{kind} {}
  Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

/// "0.1.0".
std::string version();
/// The commit it was built from, with "-dirty" where files were changed; "unknown" if not from a
/// clone.
std::string commit();

/// A key of Scenario::set and Topology::set, in words for people.
struct Parameter {
  std::string key;       ///< "nic.pcie_width", "network.kind", "nodes"
  std::string unit;      ///< of its number, as it may be written; "" for words and plain numbers
  std::string range;     ///< what is allowed
  std::string fallback;  ///< the value if nobody sets it
  std::string origin;    ///< specification, published, measured, fitted, assumed, or topology
  std::string source;
  std::string meaning;
  std::vector<std::string> also;  ///< the key for one device or tier: "<nic>.pcie_width"
};

/// Every key that may be set, sorted: what `weft list-params` prints.
std::vector<Parameter> parameters();

/// A share of a run's time along its critical path.
struct Cause {
  std::string cause;  ///< the kind of thing: "PCIe uplink, switch to CPU"
  std::string where;  ///< the one of that kind that took most: "pcisw0 -> cpu0 @0"
  double share{0};    ///< 0 to 1; all shares of a row sum to 1
};

/// One operation of one size over one memory path.
struct Row {
  std::string op;           ///< "allreduce"
  std::int64_t bytes{0};    ///< as nccl-tests counts size
  std::uint32_t ranks{0};   ///< GPUs that take part
  std::uint32_t nodes{0};   ///< nodes that take part
  std::string memory_path;  ///< "gdr", "host-staged" or "nccl": as NCCL decides
  std::string algo;         ///< that ran: "Ring", "Tree", "NVLS", "NVLSTree", "P2P"
  std::string proto;        ///< that ran: "LL", "LL128", "Simple"
  std::uint32_t channels{0};
  std::string nccl_choice;  ///< what NCCL would run where weft does not execute it ("PAT"); or ""
  double time_us{0};
  double algbw_gb_per_s{0};       ///< GB/s: bytes / time
  double busbw_gb_per_s{0};       ///< GB/s, as nccl-tests defines it
  std::vector<Cause> limited_by;  ///< largest first
  /// Nodes of the largest cluster that a row's time was extended from; 0: not extended. Of a step:
  /// of the largest on which the call that grows most was run by itself, smaller than the step's.
  std::uint32_t extended_from_nodes{0};
  std::string job;     ///< of a scenario with several; "" else
  double alone_us{0};  ///< of a job: what the same takes alone on the fabric
};

/// What a scenario asks for and a prediction has no row of.
struct NotRun {
  std::string op;         ///< the first row's, if bytes is 0
  std::int64_t bytes{0};  ///< 0: no size of this memory path is run, of any job
  std::string memory_path;
  std::string job;  ///< of a scenario with several; "" else, and if bytes is 0
  std::string why;
};

/// What `weft run` says of a scenario.
struct Prediction {
  std::vector<Row> rows;        ///< by size, then in the order of the scenario's memory paths
  std::vector<NotRun> not_run;  ///< memory paths that cannot be run, rows that a stop came before
  std::vector<std::string> verdict;  ///< sentences for people
  std::vector<std::string> notes;    ///< what was not run and why, choices of NCCL, warnings
  std::string json;                  ///< all of it with its provenance, as `weft run --json` writes
};

/// How a prediction is made.
struct RunOptions {
  std::string fidelity{"fluid"};  ///< "fluid": shared rates; "packet": TLP by TLP, some MiB at most
  /// Of all that is random, at most 2^53 - 1; none: what `wire.seed` is.
  std::optional<std::uint64_t> seed{};
  unsigned threads{0};  ///< 0: one a core
  bool force{false};    ///< packets: run what takes more than ten minutes, too
  /// Asked on the calling thread, at the beginning and some 20 times a second, whether to end
  /// early: the prediction then has the rows that are finished, and `not_run` the others. What
  /// it throws ends the run: an Error comes out as it is, anything else as Error, kInternal.
  std::function<bool()> stop{};
};

/// What runs on which machine.
class Scenario {
 public:
  /// Reads a scenario file, and its topology when that is needed; a relative path to it starts at
  /// the file's folder. Error: no such file, or what is wrong in it, with file, line and column.
  static Scenario load(const std::string& file);
  /// The same from text; `name` stands for the file in messages, and its folder for the file's.
  static Scenario parse(const std::string& text, const std::string& name);

  /// Sets a parameter, its value with its unit: set("wire.rate", "200 Gb/s"). Beats what file and
  /// topology say, and what was set before. Error: no such key, or a value that it does not take.
  Scenario& set(const std::string& key, const std::string& value);
  /// Sets one of NCCL's environment variables: env("NCCL_ALGO", "Ring"). Error: none of NCCL's, or
  /// a value that it does not take. One that weft does not model is named in the prediction's
  /// notes.
  Scenario& env(const std::string& name, const std::string& value);

  /// Simulates every size over every memory path. Takes seconds for a few nodes. Error: what was
  /// read and set does not go together, or would take too long.
  Prediction predict(const RunOptions& options = {}) const;

 private:
  Scenario(std::string text, std::string name);
  void check() const;

  std::string text_;
  std::string name_;
  std::vector<std::pair<std::string, std::string>> set_;
  std::map<std::string, std::string> env_;
};

/// Point-to-point RDMA as `ib_write_bw` and its kin measure it; the members are `weft perftest`'s
/// options, and messages name them so.
struct PerftestOptions {
  std::string op{"write"};                 ///< --op: "write", "read" or "send"
  std::string memory{"gpu"};               ///< --mem: "gpu" (GPUDirect RDMA), "host" or "staged"
  std::string post{"cpu"};                 ///< --post, who posts: "cpu", "gpu" (IBGDA) or "proxy"
  std::string from{"gpu0"};                ///< --from: a GPU or CPU, and its node: "gpu0@0"
  std::string to{"gpu0@1"};                ///< --to: the other end
  std::string from_nic{};                  ///< --from-nic; "": the nearest
  std::string to_nic{};                    ///< --to-nic
  std::vector<std::int64_t> bytes{65536};  ///< --size: message sizes, each 1 B to 64 MiB
  std::uint32_t iterations{0};     ///< --iters, of each queue pair; 0: until the rate is steady
  std::uint32_t tx_depth{128};     ///< --tx-depth
  std::uint32_t qps{1};            ///< --qp
  std::uint32_t cq_moderation{0};  ///< --cq-mod; 0: as perftest has it
  std::uint32_t rx_depth{512};     ///< --rx-depth
  std::uint32_t post_list{1};      ///< --post-list
  bool bidirectional{false};       ///< --bidirectional; rates are then of both ends together
  /// --all: the powers of two from 2 B to 8 MiB in place of `bytes`; completions are then moderated
  /// alike at all sizes, as perftest has it.
  bool all{false};
  std::string gpu{};                    ///< --gpu, which GPUs these are: "h100-sxm"
  std::optional<std::uint64_t> seed{};  ///< --seed, as RunOptions has it
  std::function<bool()> stop{};         ///< as RunOptions has it; then nothing is given (kStopped)
};

/// One message size of a perftest.
struct PerftestRow {
  std::int64_t bytes{0};
  std::uint64_t iterations{0};   ///< messages that were simulated, of all queue pairs
  double average_gbit_per_s{0};  ///< Gb/s of payload, while steady
  double peak_gbit_per_s{0};     ///< Gb/s of payload
  double messages_per_s{0};
  double latency_us{0};  ///< of one message alone
  std::string limited_by;
};

struct Perftest {
  std::string from;  ///< with its node: "gpu0@0"
  std::string to;
  std::string from_nic;
  std::string to_nic;
  std::vector<PerftestRow> rows;   ///< one a size, in the order given
  std::vector<std::string> notes;  ///< what the reader had to assume, what had no effect
  std::string
      json;  ///< all but the notes, and more of each row, as `weft perftest --json` writes it
};

/// Copies as nvbandwidth measures them; the members are `weft copies`'s options, and messages name
/// them so.
struct CopiesOptions {
  std::string from{};             ///< --from: "gpu0", "cpu0,cpu1", "all", "cpu"; "" with `to` "":
  std::string to{};               ///< --to    nvbandwidth's matrices
  std::string by{"engine"};       ///< --by: "engine" (cudaMemcpyAsync) or "kernel"
  std::string fidelity{"fluid"};  ///< --fidelity: "fluid" or "packet"
  bool bidirectional{false};      ///< --bidirectional; rates are then of both ways together
  std::uint32_t blocks{0};        ///< --blocks of a kernel; 0: one for each SM
  std::vector<std::int64_t> bytes{};  ///< --size; none: 512 MiB, on packets 4 MiB
  bool all{false};               ///< --all: the powers of two from 64 B to 1 GiB; without `bytes`
  std::string gpu{};             ///< --gpu, which GPUs these are: "h100-sxm"
  std::function<bool()> stop{};  ///< as RunOptions has it; then nothing is given (kStopped)
};

/// One pair and size of copies.
struct CopyRow {
  std::string test;  ///< nvbandwidth's, of a matrix; "" else
  std::string from;
  std::string to;
  std::string kind;          ///< "h2d", "d2h", "d2d" or "bidirectional"
  std::string by;            ///< "engine" or "kernel"
  std::int64_t bytes{0};     ///< of a copy, each way
  std::uint64_t copies{0};   ///< that were simulated, one after another, each way
  double time_us{0};         ///< of a copy
  double gb_per_s{0};        ///< GB/s of payload; of both ways twice that of the slower
  double forth_gb_per_s{0};  ///< GB/s from `from` to `to`
  std::optional<double> back_gb_per_s{};  ///< GB/s the other way, if it runs
  std::vector<Cause> limited_by;          ///< largest first
};

struct Copies {
  std::vector<CopyRow> rows;       ///< size by size, in the order of the pairs
  std::vector<std::string> notes;  ///< what the reader had to assume, what had no effect
  std::string text;                ///< as `weft copies` prints it
  std::string json;                ///< with its provenance, as `weft copies --json` writes it
};

/// A GPU and a NIC of a node.
struct Pair {
  std::string gpu;
  std::string nic;
  std::string path_class;             ///< `nvidia-smi topo -m`'s: PIX, PXB, PHB, NODE, SYS
  bool gdr_possible{false};           ///< GPUDirect RDMA can work
  bool nccl_default{false};           ///< NCCL would use it, by default
  std::string why;                    ///< why not, or what to know
  double nic_writes_gpu_gb_per_s{0};  ///< GB/s over PCIe alone; 0 if it is not possible
  double nic_reads_gpu_gb_per_s{0};
};

struct Shown {
  std::vector<Pair> pairs;         ///< every GPU and NIC of a node, GPUs first
  std::vector<std::string> notes;  ///< what the reader had to assume
  std::string text;                ///< tree, matrix and pairs, as `weft show` prints them
  std::string json;                ///< the same, as `weft show --format json` does
};

/// What a tool printed, or a measured table (scenarios/README.md): nccl-tests or perftest, its text
/// or its JSON. Read where it is used, which says what is wrong in it; as ExpectOptions::measured
/// it has 16 MiB at most.
class Log {
 public:
  /// Error: no such file, or over 64 MiB.
  static Log load(const std::string& file);
  /// A text; `name` stands for the file in messages.
  static Log parse(const std::string& text, const std::string& name);

  const std::string& text() const { return text_; }
  const std::string& name() const { return name_; }

 private:
  Log(std::string text, std::string name);

  std::string text_;
  std::string name_;
};

/// What a healthy machine should give; the members are `weft expect`'s options, and messages name
/// them so.
struct ExpectOptions {
  std::string tool{"nccl-tests"};  ///< --tool: "nccl-tests" or "perftest"
  std::vector<std::string> op{};   ///< --op; none: allreduce, of perftest write_bw
  /// --size, ascending; none: the powers of two from 8 B to 8 GiB, of perftest 8 KiB to 8 MiB.
  std::vector<std::int64_t> bytes{};
  std::uint32_t nodes{0};  ///< --nodes; 0: the machine's number
  /// --memory: "gdr" or "host-staged", of perftest "gdr" or "host"; "": NCCL's choice.
  std::string memory{};
  std::uint32_t qps{1};         ///< --qps, of perftest
  std::uint32_t tx_depth{128};  ///< --tx-depth, of perftest
  /// --measured, held against the floors: its rows of `op`, `bytes` and `nodes`, if given.
  std::optional<Log> measured{};
  std::string as{};  ///< --as: columns that it leaves out, "ranks=16,hosts=2"
  std::vector<std::pair<std::string, std::string>> set{};  ///< --set, after the Topology's own
  std::map<std::string, std::string> env{};                ///< --env: NCCL's variables
  std::string gpu{};                                       ///< --gpu: "h100-sxm"
  std::string nccl_version{};                              ///< --nccl-version: "2.27.3"
  std::string launch{};                 ///< --launch: "back-to-back", "graph", "single"; "": as set
  std::optional<std::uint64_t> seed{};  ///< --seed, as RunOptions has it
  unsigned threads{0};                  ///< --threads; 0: one a core
  std::function<bool()> stop{};         ///< as RunOptions has it; then nothing is given (kStopped)
};

/// One operation of one size, and how far off its prediction may be.
struct ExpectedRow {
  std::string state;  ///< "healthy", or "found": the machine as it is
  std::string op;     ///< of perftest its program: "write_bw"
  std::int64_t bytes{0};
  std::uint32_t ranks{0};  ///< GPUs of all nodes together
  std::uint32_t nodes{0};
  std::string memory_path;         ///< "gdr", "host-staged", "nccl" (either, by pair); "host"
  std::string algo;                ///< of nccl-tests; "" else
  std::string proto;               ///< likewise
  std::int64_t qps{0};             ///< of perftest; 0 else
  std::int64_t tx_depth{0};        ///< likewise
  double time_us{0};               ///< predicted
  double busbw_gb_per_s{0};        ///< GB/s, predicted
  double low_gb_per_s{0};          ///< the interval of busbw; eight healthy sites of ten lie in it
  double high_gb_per_s{0};         ///< where `basis` is "validated" or "wider"
  std::optional<double> low_us{};  ///< of perftest's latency tests, the interval of time_us
  std::optional<double> high_us{};
  /// The lower end of busbw, rounded down; none: nothing validates one.
  std::optional<double> floor_gb_per_s{};
  std::string basis;              ///< "validated: ...", "wider: ...", "not validated: ..."
  std::vector<Cause> limited_by;  ///< largest first
};

/// A measured row beside what was expected of it.
struct JudgedRow {
  std::string op;
  std::int64_t bytes{0};
  std::int64_t ranks{0};
  std::int64_t nodes{0};
  int line{0};                  ///< in the log
  double measured_gb_per_s{0};  ///< GB/s of bus bandwidth, as all that follow
  /// "ok", "below the floor", "above the interval", "no floor" or "not predicted".
  std::string verdict;
  std::optional<double> floor_gb_per_s{};
  std::optional<double> busbw_gb_per_s{};  ///< expected, where it is known, with its interval
  std::optional<double> low_gb_per_s{};
  std::optional<double> high_gb_per_s{};
  std::optional<double> found_low_gb_per_s{};  ///< of the machine as found, where that is another
  std::optional<double> found_high_gb_per_s{};
  std::string basis;  ///< as of ExpectedRow, or why it is not predicted
};

/// What `weft expect` says of a machine.
struct Expected {
  std::vector<ExpectedRow> rows;  ///< healthy; then as found, where any of these differs
  std::vector<JudgedRow> judged;  ///< instead, if something was measured
  std::uint64_t below_floor{0};   ///< so many of these
  /// Why what was measured is not to be trusted, whatever the verdicts: errors, wrong values.
  std::vector<std::string> failures;
  std::vector<std::string> mended;  ///< what the healthy machine has otherwise
  std::vector<std::string> notes;   ///< what had to be assumed, choices of NCCL, warnings
  std::string text;                 ///< as `weft expect` prints it
  std::string json;                 ///< as `weft expect --json` writes it
  std::string gate;  ///< the floors, as `weft expect --gate` writes them; "" if there are none
};

struct ExplainOptions;
struct Explanation;

/// A machine.
class Topology {
 public:
  /// Reads weft's YAML or NCCL's topology XML. Error: no such file, or what is wrong in it.
  static Topology load(const std::string& file);
  /// The same from text; `name` stands for the file in messages.
  static Topology parse(const std::string& text, const std::string& name);

  /// As Scenario::set.
  Topology& set(const std::string& key, const std::string& value);

  /// Measures one pair of GPUs or sockets, on packets. Error: no such devices, no way between them,
  /// GPUDirect RDMA that cannot work (with the reason), options out of range.
  Perftest perftest(const PerftestOptions& options = {}) const;
  /// Copies between host memory and GPUs, or between GPUs, of all pairs at once. Error: no such
  /// devices, no way between them, options out of range.
  Copies copies(const CopiesOptions& options = {}) const;
  /// Predicts every operation and size where nothing is wrong, and as the machine is where that
  /// differs, each with an interval from published runs; or holds what was measured against it.
  /// Error: options out of range, what does not go together, no row is of what was asked for.
  Expected expect(const ExpectOptions& options = {}) const;
  /// Describes the machine: which NIC can reach which GPU's memory, how fast, and why not.
  Shown show() const;

 private:
  friend Explanation explain(const Log& slow, const ExplainOptions& options);
  Topology(std::string text, std::string name);
  void check() const;

  std::string text_;
  std::string name_;
  std::vector<std::pair<std::string, std::string>> set_;
};

/// The same of the machine that evidence shows: files with what its tools print, or tars of it, as
/// `weft import` takes them, "FILE" or "HOST=FILE"; of a topology's file; or, with `measured`, of a
/// gate's. Error: as Topology::expect; no such file, what is wrong in one, evidence that no machine
/// can be made of.
Expected expect(const std::vector<std::string>& machine, const ExpectOptions& options = {});

/// What a slow run is held against; the members are `weft explain`'s second argument and its
/// options, and messages name them so. `machine`, `evidence` or both must be given.
struct ExplainOptions {
  std::optional<Log> healthy{};       ///< a healthy run of the same machine
  std::optional<Topology> machine{};  ///< --machine: as it should be; none: the evidence's, mended
  std::vector<std::string> evidence{};  ///< --evidence: files of one host, "FILE" or "HOST=FILE"
  std::string as{};  ///< --as: columns that runs leave out, "ranks=16,hosts=2,op=allreduce"
  std::vector<std::pair<std::string, std::string>> set{};  ///< --set, after the Topology's own
  std::map<std::string, std::string> env{};                ///< --env: NCCL's variables
  std::string gpu{};                                       ///< --gpu: "h100-sxm"
  std::string nccl_version{};                              ///< --nccl-version: "2.27.3"
  std::string launch{};                                    ///< --launch, as ExpectOptions has it
  std::optional<std::uint64_t> seed{};                     ///< --seed, as RunOptions has it
  unsigned threads{0};                                     ///< --threads; 0: one a core
  std::function<bool()> stop{};  ///< as RunOptions has it; then nothing is given (kStopped)
};

/// One size that was looked at.
struct ExplainedPoint {
  std::string op;
  std::string memory_path;  ///< "host-staged" where it was forced; "" else
  std::int64_t bytes{0};
  double slow_us{0};                   ///< measured
  double busbw_gb_per_s{0};            ///< GB/s, of the slow run
  std::optional<double> healthy_us{};  ///< measured; none without a healthy run
  double predicted_us{0};              ///< where nothing is wrong
  double gap{0};                       ///< ln(slow / healthy, or predicted where there is none)
  double sd{0};                        ///< standard deviation of a gap where nothing is wrong
};

/// What evidence says.
struct Quote {
  std::string place;  ///< file and line; "" where several places say it together
  std::string text;
};

/// What can make a run slow, at one place of the machine.
struct Suspect {
  std::string id;                    ///< entry of the catalogue: "acs"
  std::string what;                  ///< the cause
  std::string where;                 ///< of the machine
  std::string how;                   ///< how much, or to which value
  std::vector<std::string> changes;  ///< what is otherwise than on the healthy machine
  std::string verify;                ///< what to run or to change
  double weight{1};  ///< by which evidence makes it more likely, or less; 0: it is ruled out
  std::string said;  ///< what the check of evidence came to; "" if that says nothing of it
  std::vector<Quote> evidence;
};

/// What explains a run.
struct Answer {
  std::vector<Suspect> causes;                     ///< one, or two at once
  std::vector<std::vector<Suspect>> alternatives;  ///< that predict the same: one each, or two
  bool alike{false};                               ///< it cannot be told from the first answer
  double times_less{1};                            ///< likely than that; 1e12: or more
  /// Share of the gap over all sizes; none where that is within its error, as of the next two.
  std::optional<double> explains;
  std::optional<double> low;  ///< of 80 % of its likely values
  std::optional<double> high;
  double chance{0};             ///< of numbers that fit worse if it is the cause
  std::vector<double> effects;  ///< ln(with it / healthy) by point, predicted
};

/// A cause that weft cannot predict here.
struct RefusedCause {
  std::string id;
  std::string where;
  std::string how;
  std::string why;
};

/// A cause that cannot be on this machine.
struct AbsentCause {
  std::string id;
  std::string needs;  ///< what a machine must have for it
};

/// What can make a run slow, too, and is not looked at.
struct NotLookedAt {
  std::string what;
  std::string why;
};

/// What `weft explain` says of a run.
struct Explanation {
  std::string verdict;  ///< "not slower" (than it should be), "explained", "none" (of the causes)
  std::string machine;  ///< its file, or "the evidence's machine, mended"
  std::int64_t nodes{0};
  std::int64_t ranks{0};        ///< GPUs of all nodes together
  std::string nccl_version;     ///< whose decisions were followed
  double chance_if_healthy{0};  ///< of numbers that are off as far where nothing is wrong
  bool two_at_once{false};      ///< the first answer is two causes
  std::vector<ExplainedPoint> points;
  std::vector<Answer> answers;     ///< likeliest first; of "none" the nearest, which do not suffice
  std::vector<Suspect> ruled_out;  ///< by evidence
  std::vector<Suspect> no_effect;  ///< they change no time by 1 % at the sizes where predicted
  std::vector<RefusedCause> refused;
  std::vector<AbsentCause> not_here;
  std::vector<NotLookedAt> not_looked_at;
  std::vector<std::string> notes;  ///< what had to be assumed
  std::string text;                ///< as `weft explain` prints it
  std::string json;                ///< as `weft explain --json` writes it
};

/// Compares a slow run with a healthy one, or with what the machine should give, and predicts what
/// each cause that weft knows would do to it. Error: no collectives, runs of other machines or
/// without a size in common, a machine that cannot be predicted.
Explanation explain(const Log& slow, const ExplainOptions& options = {});

}  // namespace weft::api
