/// The Python module weft._weft: Scenario as tools/weft.hpp has it, its answers as keyword
/// arguments of the package's classes. What users see, and its documentation, is in weft/*.py.

#include <cstdint>
#include <exception>
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
  return py::module_::import("weft._types").attr(type)(std::forward<Fields>(fields)...);
}

/// A tuple of what `convert` makes of each value.
template <class Value>
py::tuple tuple_of(const std::vector<Value>& values, py::object (*convert)(const Value&)) {
  py::tuple out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = convert(values[i]);
  return out;
}

py::object text_of(const std::string& text) { return py::str(text); }

py::object cause_of(const api::Cause& cause) {
  return make("Cause", "cause"_a = cause.cause, "where"_a = cause.where, "share"_a = cause.share);
}

py::object row_of(const api::Row& row) {
  return make("Row", "op"_a = row.op, "bytes"_a = row.bytes, "ranks"_a = row.ranks,
              "nodes"_a = row.nodes, "memory_path"_a = row.memory_path, "algo"_a = row.algo,
              "proto"_a = row.proto, "channels"_a = row.channels, "nccl_choice"_a = row.nccl_choice,
              "time_us"_a = row.time_us, "algbw_GBps"_a = row.algbw_gb_per_s,
              "busbw_GBps"_a = row.busbw_gb_per_s,
              "limited_by"_a = tuple_of(row.limited_by, cause_of),
              "extended_from_nodes"_a = row.extended_from_nodes, "job"_a = row.job,
              "alone_us"_a = row.alone_us);
}

py::object not_run_of(const api::NotRun& row) {
  return make("NotRun", "op"_a = row.op, "bytes"_a = row.bytes, "memory_path"_a = row.memory_path,
              "job"_a = row.job, "why"_a = row.why);
}

py::object parameter_of(const api::Parameter& p) {
  return make("Parameter", "key"_a = p.key, "unit"_a = p.unit, "range"_a = p.range,
              "fallback"_a = p.fallback, "origin"_a = p.origin, "source"_a = p.source,
              "meaning"_a = p.meaning, "also"_a = tuple_of(p.also, text_of));
}

py::object prediction_of(const api::Prediction& prediction) {
  return make("Prediction", "rows"_a = tuple_of(prediction.rows, row_of),
              "not_run"_a = tuple_of(prediction.not_run, not_run_of),
              "verdict"_a = tuple_of(prediction.verdict, text_of),
              "notes"_a = tuple_of(prediction.notes, text_of), "json"_a = prediction.json);
}

/// Runs without the interpreter's lock, and takes it now and then for Python's signal handlers, of
/// which Ctrl-C's raises, and for the caller's `stop`. What either raises is raised when the
/// prediction has ended.
py::object predict(const api::Scenario& scenario, const std::string& fidelity,
                   std::optional<std::uint64_t> seed, unsigned threads, bool force,
                   const py::object& stop) {
  std::exception_ptr raised;
  const auto asked = [&] {
    const py::gil_scoped_acquire lock;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      return !stop.is_none() && stop().cast<bool>();
    } catch (...) {
      raised = std::current_exception();
      return true;
    }
  };
  const api::RunOptions options{fidelity, seed, threads, force, asked};
  // Of its own, since without the lock another thread may set something meanwhile.
  const api::Scenario own = scenario;  // NOLINT(performance-unnecessary-copy-initialization)
  std::optional<api::Prediction> prediction;
  try {
    const py::gil_scoped_release unlocked;
    prediction = own.predict(options);
  } catch (const api::Error&) {
    if (!raised) throw;
  }
  if (raised) std::rethrow_exception(raised);
  return prediction_of(*prediction);
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
    // A message may quote any bytes of a file.
    const std::string what = e.what();
    const auto text = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(what.data(), static_cast<Py_ssize_t>(what.size()), "replace"));
    PyErr_SetObject(type.ptr(), text.ptr());
  }
}

}  // namespace
}  // namespace weft

PYBIND11_MODULE(_weft, module) {
  using namespace weft;
  py::register_local_exception_translator(translate);
  module.def("version", api::version);
  module.def("commit", api::commit);
  module.def("parameters", [] { return tuple_of(api::parameters(), parameter_of); });
  py::class_<api::Scenario>(module, "Scenario")
      .def_static("load", api::Scenario::load)
      .def_static("parse", api::Scenario::parse)
      .def("copy", [](const api::Scenario& self) { return self; })
      .def("set", [](api::Scenario& self, const std::string& key,
                     const std::string& value) { self.set(key, value); })
      .def("env", [](api::Scenario& self, const std::string& name,
                     const std::string& value) { self.env(name, value); })
      .def("predict", predict);
}
