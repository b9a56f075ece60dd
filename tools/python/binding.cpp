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
    PyErr_SetObject(type.ptr(), text_of(e.what()).ptr());
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
      .def_static("load", api::Scenario::load, py::call_guard<py::gil_scoped_release>())
      .def_static("parse", api::Scenario::parse, py::call_guard<py::gil_scoped_release>())
      .def("copy", [](const api::Scenario& self) { return self; })
      .def("set", [](api::Scenario& self, const std::string& key,
                     const std::string& value) { self.set(key, value); })
      .def("env", [](api::Scenario& self, const std::string& name,
                     const std::string& value) { self.env(name, value); })
      .def("predict", predict);
}
