// SPDX-License-Identifier: Apache-2.0
//===- PythonModule.cpp - Python module tessera._calibration --------------===//
//
// The observers for Python. Arrays come and go through the buffer protocol, never through numpy's
// C API, so one module serves numpy 1 and 2.
//
//===----------------------------------------------------------------------===//
#include "quant/Calibration/Histogram.h"

#include <cstring>
#include <pybind11/pybind11.h>

namespace py = pybind11;
using tessera::quant::fakeQuantise;
using tessera::quant::Histogram;

namespace {

/// The floats of a contiguous float32 buffer.
struct Floats {
  explicit Floats(const py::buffer &buffer, bool writable = false) : info(buffer.request(writable)) {
    if (info.itemsize != sizeof(float) || info.format != py::format_descriptor<float>::format()) {
      throw py::type_error("expected float32, got a buffer of format '" + info.format + "'");
    }
    py::ssize_t expected = sizeof(float);
    for (py::ssize_t i = info.ndim; i-- > 0;) {
      if (info.shape[size_t(i)] != 1 && info.strides[size_t(i)] != expected) {
        throw py::value_error("expected a contiguous buffer");
      }
      expected *= info.shape[size_t(i)];
    }
  }
  float *data() const { return static_cast<float *>(info.ptr); }
  size_t size() const { return size_t(info.size); }

  py::buffer_info info;
};

void observe(Histogram &histogram, const py::buffer &values, uint64_t sample) {
  const Floats floats(values);
  py::gil_scoped_release release;
  histogram.observe(floats.data(), floats.size(), sample);
}

/// (indices as uint32, counts as uint64), each as the bytes of an array.
py::tuple bins(const Histogram &histogram) {
  const std::vector<Histogram::Bin> list = histogram.bins();
  std::string indices(list.size() * sizeof(uint32_t), 0), counts(list.size() * sizeof(uint64_t), 0);
  for (size_t i = 0; i < list.size(); ++i) {
    reinterpret_cast<uint32_t *>(indices.data())[i] = list[i].index;
    reinterpret_cast<uint64_t *>(counts.data())[i] = list[i].count;
  }
  return py::make_tuple(py::bytes(indices), py::bytes(counts));
}

py::dict summary(const Histogram &histogram) {
  py::dict result;
  result["min"] = double(histogram.min());
  result["max"] = double(histogram.max());
  result["finite"] = histogram.finite;
  result["nan"] = histogram.nan;
  result["infinite"] = histogram.infinite;
  result["first_bad_sample"] = histogram.firstBadSample == Histogram::kNone
                                   ? py::object(py::none())
                                   : py::object(py::int_(histogram.firstBadSample));
  return result;
}

/// What setState restores: small numbers, then the bins.
py::tuple getState(const Histogram &histogram) {
  return py::make_tuple(histogram.lowest, histogram.highest, histogram.finite, histogram.nan, histogram.infinite,
                        histogram.firstBadSample, bins(histogram));
}

Histogram setState(const py::tuple &state) {
  Histogram histogram;
  if (state.size() != 7) {
    throw py::value_error("not the state of a histogram");
  }
  histogram.lowest = state[0].cast<int32_t>();
  histogram.highest = state[1].cast<int32_t>();
  histogram.finite = state[2].cast<uint64_t>();
  histogram.nan = state[3].cast<uint64_t>();
  histogram.infinite = state[4].cast<uint64_t>();
  histogram.firstBadSample = state[5].cast<uint64_t>();
  const py::tuple lists = state[6].cast<py::tuple>();
  const std::string indices = lists[0].cast<py::bytes>(), counts = lists[1].cast<py::bytes>();
  if (indices.size() / sizeof(uint32_t) != counts.size() / sizeof(uint64_t)) {
    throw py::value_error("not the state of a histogram");
  }
  for (size_t i = 0; i < indices.size() / sizeof(uint32_t); ++i) {
    uint32_t index;
    uint64_t count;
    std::memcpy(&index, indices.data() + i * sizeof(index), sizeof(index));
    std::memcpy(&count, counts.data() + i * sizeof(count), sizeof(count));
    if (index >= Histogram::kBins) {
      throw py::value_error("not the state of a histogram");
    }
    histogram.addToBin(index, count);
  }
  return histogram;
}

} // namespace

PYBIND11_MODULE(_calibration, module) {
  module.doc() = "Streaming statistics for tessera.calibration; not meant to be used directly.";
  py::class_<Histogram>(module, "Histogram", "See quant/Calibration/Histogram.h.")
      .def(py::init<>())
      .def("observe", observe, py::arg("values"), py::arg("sample") = 0)
      .def("merge", &Histogram::merge)
      .def("bins", bins)
      .def("summary", summary)
      .def(py::pickle([](const Histogram &histogram) { return getState(histogram); },
                      [](const py::tuple &state) { return setState(state); }));
  module.def(
      "fake_quantise",
      [](const py::buffer &values, float scale, int zeroPoint, int lowest, int highest) {
        const Floats floats(values, /*writable=*/true);
        if (!(scale > 0)) {
          throw py::value_error("scale must be positive");
        }
        py::gil_scoped_release release;
        fakeQuantise(floats.data(), floats.size(), scale, zeroPoint, lowest, highest);
      },
      "Rounds the values in place to scale * (q - zero_point).", py::arg("values"), py::arg("scale"),
      py::arg("zero_point"), py::arg("lowest") = -128, py::arg("highest") = 127);
  module.attr("SHIFT") = Histogram::kShift;
}
