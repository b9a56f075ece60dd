/// The Python module weft._weft: scenarios, machines, logs and options as tools/weft.hpp has them,
/// its answers as keyword arguments of the package's classes. What users see, and its
/// documentation, is in weft/*.py.

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "tools/weft.hpp"

namespace py = pybind11;

namespace weft {
namespace {

using py::literals::operator""_a;

/// Makes an object of one of the package's own classes.
template <class... Fields>
py::object make(const char* type, Fields&&... fields) {
  return py::module_::import("weft").attr(type)(std::forward<Fields>(fields)...);
}

/// A tuple of what `convert` makes of each value.
template <class Value>
py::tuple tuple_of(const std::vector<Value>& values, py::object (*convert)(const Value&)) {
  py::tuple out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = convert(values[i]);
  return out;
}

/// Texts and messages may quote any bytes of a file, and its name.
py::object text_of(const std::string& text) {
  PyObject* made =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

py::object cause_of(const api::Cause& cause) {
  return make("Cause", "cause"_a = text_of(cause.cause), "where"_a = text_of(cause.where),
              "share"_a = cause.share);
}

py::object row_of(const api::Row& row) {
  return make("Row", "op"_a = text_of(row.op), "bytes"_a = row.bytes, "ranks"_a = row.ranks,
              "nodes"_a = row.nodes, "memory_path"_a = text_of(row.memory_path),
              "algo"_a = text_of(row.algo), "proto"_a = text_of(row.proto),
              "channels"_a = row.channels, "nccl_choice"_a = text_of(row.nccl_choice),
              "time_us"_a = row.time_us, "algbw_GBps"_a = row.algbw_gb_per_s,
              "busbw_GBps"_a = row.busbw_gb_per_s,
              "limited_by"_a = tuple_of(row.limited_by, cause_of),
              "extended_from_nodes"_a = row.extended_from_nodes, "job"_a = text_of(row.job),
              "alone_us"_a = row.alone_us);
}

py::object not_run_of(const api::NotRun& row) {
  return make("NotRun", "op"_a = text_of(row.op), "bytes"_a = row.bytes,
              "memory_path"_a = text_of(row.memory_path), "job"_a = text_of(row.job),
              "why"_a = text_of(row.why));
}

py::object parameter_of(const api::Parameter& p) {
  return make("Parameter", "key"_a = text_of(p.key), "unit"_a = text_of(p.unit),
              "range"_a = text_of(p.range), "fallback"_a = text_of(p.fallback),
              "origin"_a = text_of(p.origin), "source"_a = text_of(p.source),
              "meaning"_a = text_of(p.meaning), "also"_a = tuple_of(p.also, text_of));
}

py::object prediction_of(const api::Prediction& prediction) {
  return make("Prediction", "rows"_a = tuple_of(prediction.rows, row_of),
              "not_run"_a = tuple_of(prediction.not_run, not_run_of),
              "verdict"_a = tuple_of(prediction.verdict, text_of),
              "notes"_a = tuple_of(prediction.notes, text_of), "json"_a = text_of(prediction.json));
}

py::object pair_of(const api::Pair& pair) {
  return make("Pair", "gpu"_a = text_of(pair.gpu), "nic"_a = text_of(pair.nic),
              "path_class"_a = text_of(pair.path_class), "gdr_possible"_a = pair.gdr_possible,
              "nccl_default"_a = pair.nccl_default, "why"_a = text_of(pair.why),
              "nic_writes_gpu_GBps"_a = pair.nic_writes_gpu_gb_per_s,
              "nic_reads_gpu_GBps"_a = pair.nic_reads_gpu_gb_per_s);
}

py::object shown_of(const api::Shown& shown) {
  return make("Shown", "pairs"_a = tuple_of(shown.pairs, pair_of),
              "notes"_a = tuple_of(shown.notes, text_of), "text"_a = text_of(shown.text),
              "json"_a = text_of(shown.json));
}

py::object perftest_row_of(const api::PerftestRow& row) {
  return make("PerftestRow", "bytes"_a = row.bytes, "iterations"_a = row.iterations,
              "bw_Gbps"_a = row.average_gbit_per_s, "bw_peak_Gbps"_a = row.peak_gbit_per_s,
              "msg_rate_Mpps"_a = row.messages_per_s / 1e6, "latency_us"_a = row.latency_us,
              "limited_by"_a = text_of(row.limited_by));
}

py::object perftest_of(const api::Perftest& perftest) {
  return make("Perftest", "from_"_a = text_of(perftest.from), "to"_a = text_of(perftest.to),
              "from_nic"_a = text_of(perftest.from_nic), "to_nic"_a = text_of(perftest.to_nic),
              "rows"_a = tuple_of(perftest.rows, perftest_row_of),
              "notes"_a = tuple_of(perftest.notes, text_of), "json"_a = text_of(perftest.json));
}

py::object copy_row_of(const api::CopyRow& row) {
  return make("CopyRow", "test"_a = text_of(row.test), "from_"_a = text_of(row.from),
              "to"_a = text_of(row.to), "kind"_a = text_of(row.kind), "by"_a = text_of(row.by),
              "bytes"_a = row.bytes, "copies"_a = row.copies, "time_us"_a = row.time_us,
              "GBps"_a = row.gb_per_s, "forth_GBps"_a = row.forth_gb_per_s,
              "back_GBps"_a = row.back_gb_per_s,
              "limited_by"_a = tuple_of(row.limited_by, cause_of));
}

py::object copies_of(const api::Copies& copies) {
  return make("Copies", "rows"_a = tuple_of(copies.rows, copy_row_of),
              "notes"_a = tuple_of(copies.notes, text_of), "text"_a = text_of(copies.text),
              "json"_a = text_of(copies.json));
}

py::object expected_row_of(const api::ExpectedRow& row) {
  return make("ExpectedRow", "state"_a = text_of(row.state), "op"_a = text_of(row.op),
              "bytes"_a = row.bytes, "ranks"_a = row.ranks, "nodes"_a = row.nodes,
              "memory_path"_a = text_of(row.memory_path), "algo"_a = text_of(row.algo),
              "proto"_a = text_of(row.proto), "qps"_a = row.qps, "tx_depth"_a = row.tx_depth,
              "time_us"_a = row.time_us, "busbw_GBps"_a = row.busbw_gb_per_s,
              "low_GBps"_a = row.low_gb_per_s, "high_GBps"_a = row.high_gb_per_s,
              "low_us"_a = row.low_us, "high_us"_a = row.high_us,
              "floor_GBps"_a = row.floor_gb_per_s, "basis"_a = text_of(row.basis),
              "limited_by"_a = tuple_of(row.limited_by, cause_of));
}

py::object judged_row_of(const api::JudgedRow& row) {
  return make("JudgedRow", "op"_a = text_of(row.op), "bytes"_a = row.bytes, "ranks"_a = row.ranks,
              "nodes"_a = row.nodes, "line"_a = row.line, "measured_GBps"_a = row.measured_gb_per_s,
              "verdict"_a = text_of(row.verdict), "floor_GBps"_a = row.floor_gb_per_s,
              "busbw_GBps"_a = row.busbw_gb_per_s, "low_GBps"_a = row.low_gb_per_s,
              "high_GBps"_a = row.high_gb_per_s, "found_low_GBps"_a = row.found_low_gb_per_s,
              "found_high_GBps"_a = row.found_high_gb_per_s, "basis"_a = text_of(row.basis));
}

py::object expected_of(const api::Expected& expected) {
  return make("Expected", "rows"_a = tuple_of(expected.rows, expected_row_of),
              "judged"_a = tuple_of(expected.judged, judged_row_of),
              "below_floor"_a = expected.below_floor,
              "failures"_a = tuple_of(expected.failures, text_of),
              "mended"_a = tuple_of(expected.mended, text_of),
              "notes"_a = tuple_of(expected.notes, text_of), "text"_a = text_of(expected.text),
              "json"_a = text_of(expected.json), "gate"_a = text_of(expected.gate));
}

py::object point_of(const api::ExplainedPoint& point) {
  return make("ExplainedPoint", "op"_a = text_of(point.op),
              "memory_path"_a = text_of(point.memory_path), "bytes"_a = point.bytes,
              "slow_us"_a = point.slow_us, "busbw_GBps"_a = point.busbw_gb_per_s,
              "healthy_us"_a = point.healthy_us, "predicted_us"_a = point.predicted_us,
              "gap"_a = point.gap, "sd"_a = point.sd);
}

py::object quote_of(const api::Quote& quote) {
  return make("Quote", "place"_a = text_of(quote.place), "text"_a = text_of(quote.text));
}

py::object suspect_of(const api::Suspect& suspect) {
  return make("Suspect", "id"_a = text_of(suspect.id), "what"_a = text_of(suspect.what),
              "where"_a = text_of(suspect.where), "how"_a = text_of(suspect.how),
              "changes"_a = tuple_of(suspect.changes, text_of),
              "verify"_a = text_of(suspect.verify), "weight"_a = suspect.weight,
              "said"_a = text_of(suspect.said),
              "evidence"_a = tuple_of(suspect.evidence, quote_of));
}

py::object suspects_of(const std::vector<api::Suspect>& suspects) {
  return tuple_of(suspects, suspect_of);
}

py::object number_of(const double& number) { return py::cast(number); }

py::object answer_of(const api::Answer& answer) {
  return make("Answer", "causes"_a = suspects_of(answer.causes),
              "alternatives"_a = tuple_of(answer.alternatives, suspects_of),
              "alike"_a = answer.alike, "times_less"_a = answer.times_less,
              "explains"_a = answer.explains, "low"_a = answer.low, "high"_a = answer.high,
              "chance"_a = answer.chance, "effects"_a = tuple_of(answer.effects, number_of));
}

py::object refused_of(const api::RefusedCause& cause) {
  return make("RefusedCause", "id"_a = text_of(cause.id), "where"_a = text_of(cause.where),
              "how"_a = text_of(cause.how), "why"_a = text_of(cause.why));
}

py::object absent_of(const api::AbsentCause& cause) {
  return make("AbsentCause", "id"_a = text_of(cause.id), "needs"_a = text_of(cause.needs));
}

py::object not_looked_at_of(const api::NotLookedAt& each) {
  return make("NotLookedAt", "what"_a = text_of(each.what), "why"_a = text_of(each.why));
}

py::object explanation_of(const api::Explanation& explanation) {
  return make("Explanation", "verdict"_a = text_of(explanation.verdict),
              "machine"_a = text_of(explanation.machine), "nodes"_a = explanation.nodes,
              "ranks"_a = explanation.ranks, "nccl_version"_a = text_of(explanation.nccl_version),
              "chance_if_healthy"_a = explanation.chance_if_healthy,
              "two_at_once"_a = explanation.two_at_once,
              "points"_a = tuple_of(explanation.points, point_of),
              "answers"_a = tuple_of(explanation.answers, answer_of),
              "ruled_out"_a = suspects_of(explanation.ruled_out),
              "no_effect"_a = suspects_of(explanation.no_effect),
              "refused"_a = tuple_of(explanation.refused, refused_of),
              "not_here"_a = tuple_of(explanation.not_here, absent_of),
              "not_looked_at"_a = tuple_of(explanation.not_looked_at, not_looked_at_of),
              "notes"_a = tuple_of(explanation.notes, text_of),
              "text"_a = text_of(explanation.text), "json"_a = text_of(explanation.json));
}

/// What `work` makes without the interpreter's lock, of copies of what another thread may set
/// something of meanwhile. It is given what to ask now and then, which
/// takes the lock for Python's signal handlers, of which Ctrl-C's raises, and for the caller's
/// `stop`. What either raises is raised when the work has ended.
template <class Work>
auto interruptible(const py::object& stop, Work work) {
  std::exception_ptr raised;
  const std::function<bool()> asked = [&] {
    const py::gil_scoped_acquire lock;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      return !stop.is_none() && bool{py::bool_(stop())};
    } catch (...) {
      raised = std::current_exception();
      return true;
    }
  };
  std::optional<decltype(work(asked))> out;
  try {
    const py::gil_scoped_release unlocked;
    out = work(asked);
  } catch (const api::Error&) {
    if (!raised) throw;
  }
  if (raised) std::rethrow_exception(raised);
  return *std::move(out);
}

py::object predict(const api::Scenario& scenario, const std::string& fidelity,
                   std::optional<std::uint64_t> seed, unsigned threads, bool force,
                   const py::object& stop) {
  return prediction_of(interruptible(stop, [&, own = scenario](const auto& asked) {
    return own.predict({fidelity, seed, threads, force, asked});
  }));
}

py::object show(const api::Topology& topology) {
  return shown_of([own = topology] {
    const py::gil_scoped_release unlocked;
    return own.show();
  }());
}

py::object perftest(const api::Topology& topology, api::PerftestOptions options,
                    const py::object& stop) {
  return perftest_of(interruptible(stop, [&, own = topology](const auto& asked) {
    options.stop = asked;
    return own.perftest(options);
  }));
}

py::object copies(const api::Topology& topology, api::CopiesOptions options,
                  const py::object& stop) {
  return copies_of(interruptible(stop, [&, own = topology](const auto& asked) {
    options.stop = asked;
    return own.copies(options);
  }));
}

py::object expect(const api::Topology& topology, api::ExpectOptions options,
                  const py::object& stop) {
  return expected_of(interruptible(stop, [&, own = topology](const auto& asked) {
    options.stop = asked;
    return own.expect(options);
  }));
}

py::object expect_of_files(const std::vector<std::string>& machine, api::ExpectOptions options,
                           const py::object& stop) {
  return expected_of(interruptible(stop, [&](const auto& asked) {
    options.stop = asked;
    return api::expect(machine, options);
  }));
}

py::object explain(const api::Log& slow, api::ExplainOptions options, const py::object& stop) {
  return explanation_of(interruptible(stop, [&, own = slow](const auto& asked) {
    options.stop = asked;
    return api::explain(own, options);
  }));
}

const char* name_of(api::Error::Kind kind) {
  switch (kind) {
    case api::Error::Kind::kInput:
      return "InputError";
    case api::Error::Kind::kStopped:
      return "Stopped";
    case api::Error::Kind::kInternal:
      break;
  }
  return "InternalError";
}

void translate(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const api::Error& e) {
    const py::object type = py::module_::import("weft._types").attr(name_of(e.kind()));
    PyErr_SetObject(type.ptr(), text_of(e.what()).ptr());
  }
}

/// What both have.
template <class Options>
void add_predict_options(py::class_<Options>& options) {
  options.def_readwrite("as_", &Options::as)
      .def_readwrite("set", &Options::set)
      .def_readwrite("env", &Options::env)
      .def_readwrite("gpu", &Options::gpu)
      .def_readwrite("nccl_version", &Options::nccl_version)
      .def_readwrite("launch", &Options::launch)
      .def_readwrite("seed", &Options::seed)
      .def_readwrite("threads", &Options::threads);
}

/// Written to member by member, by keywords of the package's functions.
void add_options(py::module_& module) {
  using Perftest = api::PerftestOptions;
  py::class_<Perftest>(module, "PerftestOptions")
      .def(py::init<>())
      .def_readwrite("op", &Perftest::op)
      .def_readwrite("memory", &Perftest::memory)
      .def_readwrite("post", &Perftest::post)
      .def_readwrite("from_", &Perftest::from)
      .def_readwrite("to", &Perftest::to)
      .def_readwrite("from_nic", &Perftest::from_nic)
      .def_readwrite("to_nic", &Perftest::to_nic)
      .def_readwrite("bytes", &Perftest::bytes)
      .def_readwrite("iterations", &Perftest::iterations)
      .def_readwrite("tx_depth", &Perftest::tx_depth)
      .def_readwrite("qps", &Perftest::qps)
      .def_readwrite("cq_moderation", &Perftest::cq_moderation)
      .def_readwrite("rx_depth", &Perftest::rx_depth)
      .def_readwrite("post_list", &Perftest::post_list)
      .def_readwrite("bidirectional", &Perftest::bidirectional)
      .def_readwrite("all", &Perftest::all)
      .def_readwrite("gpu", &Perftest::gpu)
      .def_readwrite("seed", &Perftest::seed);
  using Copies = api::CopiesOptions;
  py::class_<Copies>(module, "CopiesOptions")
      .def(py::init<>())
      .def_readwrite("from_", &Copies::from)
      .def_readwrite("to", &Copies::to)
      .def_readwrite("by", &Copies::by)
      .def_readwrite("fidelity", &Copies::fidelity)
      .def_readwrite("bidirectional", &Copies::bidirectional)
      .def_readwrite("blocks", &Copies::blocks)
      .def_readwrite("bytes", &Copies::bytes)
      .def_readwrite("all", &Copies::all)
      .def_readwrite("gpu", &Copies::gpu);
  using Expect = api::ExpectOptions;
  py::class_<Expect> expect_options(module, "ExpectOptions");
  expect_options.def(py::init<>())
      .def_readwrite("tool", &Expect::tool)
      .def_readwrite("op", &Expect::op)
      .def_readwrite("bytes", &Expect::bytes)
      .def_readwrite("nodes", &Expect::nodes)
      .def_readwrite("memory", &Expect::memory)
      .def_readwrite("qps", &Expect::qps)
      .def_readwrite("tx_depth", &Expect::tx_depth)
      .def_readwrite("measured", &Expect::measured);
  add_predict_options(expect_options);
  using Explain = api::ExplainOptions;
  py::class_<Explain> explain_options(module, "ExplainOptions");
  explain_options.def(py::init<>())
      .def_readwrite("healthy", &Explain::healthy)
      .def_readwrite("machine", &Explain::machine)
      .def_readwrite("evidence", &Explain::evidence);
  add_predict_options(explain_options);
}

}  // namespace
}  // namespace weft

PYBIND11_MODULE(_weft, module) {
  using namespace weft;
  py::register_local_exception_translator(translate);
  module.def("version", api::version);
  module.def("commit", api::commit);
  module.def("parameters", [] { return tuple_of(api::parameters(), parameter_of); });
  const py::call_guard<py::gil_scoped_release> without_lock;
  py::class_<api::Scenario>(module, "Scenario")
      .def_static("load", api::Scenario::load, without_lock)
      .def_static("parse", api::Scenario::parse, without_lock)
      .def("copy", [](const api::Scenario& self) { return self; })
      .def("set", [](api::Scenario& self, const std::string& key,
                     const std::string& value) { self.set(key, value); })
      .def("env", [](api::Scenario& self, const std::string& name,
                     const std::string& value) { self.env(name, value); })
      .def("predict", predict);
  py::class_<api::Topology>(module, "Topology")
      .def_static("load", api::Topology::load, without_lock)
      .def_static("parse", api::Topology::parse, without_lock)
      .def("copy", [](const api::Topology& self) { return self; })
      .def("set", [](api::Topology& self, const std::string& key,
                     const std::string& value) { self.set(key, value); })
      .def("show", show)
      .def("perftest", perftest)
      .def("copies", copies)
      .def("expect", expect);
  py::class_<api::Log>(module, "Log")
      .def_static("load", api::Log::load, without_lock)
      .def_static("parse", api::Log::parse);
  add_options(module);
  module.def("expect", expect_of_files);
  module.def("explain", explain);
}
