// SPDX-License-Identifier: Apache-2.0
//===- PythonModule.cpp - Python module tessera._calibration --------------===//
//
// Exposes the observers to Python. Arrays are passed through the buffer protocol, not through numpy's C API, so one
// module works with numpy 1 and 2.
//
//===----------------------------------------------------------------------===//
#include "quant/Calibration/FeedBack.h"
#include "quant/Calibration/Histogram.h"
#include "quant/Calibration/Moments.h"
#include "quant/Calibration/Ranges.h"

#include <cstring>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace py = pybind11;
using tessera::quant::CrossMoments;
using tessera::quant::fakeQuantise;
using tessera::quant::Grid;
using tessera::quant::Groups;
using tessera::quant::Histogram;
using tessera::quant::Moments;
using tessera::quant::Patches;

namespace {

/// A contiguous float32 buffer.
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

/// Returns (indices as uint32, counts as uint64), each as the bytes of an array.
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

/// Returns the state that setState restores: scalars, then the bins.
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

template <typename T>
py::bytes bytesOf(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
}

void addRows(Moments &moments, const Patches &patches, const py::buffer &values, const std::vector<int64_t> &positions,
             std::optional<std::tuple<float, int, int>> grid) {
  const Floats floats(values);
  if (floats.size() != size_t(patches.elements()) || patches.depth() != moments.depth ||
      patches.groups() != moments.groups) {
    throw py::value_error("the buffer or the patches do not match the sizes of the moments");
  }
  for (int64_t position : positions) {
    if (position < 0 || position >= patches.positions()) {
      throw py::value_error("a position is out of range");
    }
  }
  py::gil_scoped_release release;
  std::optional<Grid> way;
  if (grid) {
    way = std::make_from_tuple<Grid>(*grid);
  }
  moments.add(patches, floats.data(), positions, way);
}

/// Returns (integers as int8 [ways, groups, rows, depth], losses as float64 [ways, groups, rows]), each as bytes.
py::tuple roundGroups(const py::buffer &weights, const py::buffer &moments, const py::buffer &damping,
                      const py::buffer &scales, int64_t run, int lowest, int highest, bool clipFirst) {
  const Floats w(weights), m(moments), d(damping), s(scales);
  if (w.info.ndim != 3 || s.info.ndim != 4) {
    throw py::value_error("expected weights [groups, rows, depth], scales [ways, groups, rows, steps]");
  }
  const Groups groups{w.data(),        m.data(),        d.data(), s.data(), w.info.shape[0], w.info.shape[1],
                      w.info.shape[2], s.info.shape[0], run,      lowest,   highest,         clipFirst};
  if (m.size() != size_t(groups.groups * groups.depth * groups.depth) || d.size() != size_t(groups.groups) ||
      s.info.shape[1] != groups.groups || s.info.shape[2] != groups.rows || groups.depth < 1 || run < 1 ||
      s.info.shape[3] != (groups.depth + run - 1) / run) {
    throw py::value_error("the shapes of weights, moments, damping and scales do not match");
  }
  const size_t rows = size_t(groups.ways * groups.groups * groups.rows);
  std::vector<int8_t> integers(rows * size_t(groups.depth));
  std::vector<double> losses(rows);
  {
    py::gil_scoped_release release;
    tessera::quant::roundGroups(groups, integers.data(), losses.data());
  }
  return py::make_tuple(bytesOf(integers), bytesOf(losses));
}

/// Returns the solution, float32 [groups, rows, depth], as bytes.
py::bytes solveGroups(const py::buffer &moments, const py::buffer &damping, const py::buffer &right) {
  const Floats m(moments), d(damping), r(right);
  if (r.info.ndim != 3) {
    throw py::value_error("expected a right side [groups, rows, depth]");
  }
  const int64_t groups = r.info.shape[0], rows = r.info.shape[1], depth = r.info.shape[2];
  if (depth < 1 || m.size() != size_t(groups * depth * depth) || d.size() != size_t(groups)) {
    throw py::value_error("the shapes of moments, damping and right side do not match");
  }
  std::vector<float> solution(size_t(groups * rows * depth));
  {
    py::gil_scoped_release release;
    tessera::quant::solveGroups(m.data(), d.data(), r.data(), groups, rows, depth, solution.data());
  }
  return bytesOf(solution);
}

/// Returns the values of a contiguous float64 buffer.
std::vector<double> doubles(const py::buffer &buffer) {
  const py::buffer_info info = buffer.request();
  if (info.ndim != 1 || info.format != py::format_descriptor<double>::format() ||
      (info.shape[0] > 1 && info.strides[0] != sizeof(double))) {
    throw py::type_error("expected contiguous float64, got a buffer of format '" + info.format + "'");
  }
  const auto *data = static_cast<const double *>(info.ptr);
  return {data, data + info.shape[0]};
}

std::vector<double> squaredErrors(const py::buffer &centres, const py::buffer &counts, const std::vector<double> &lows,
                                  const std::vector<double> &highs, int64_t steps) {
  const std::vector<double> x = doubles(centres), n = doubles(counts);
  if (x.size() != n.size() || lows.size() != highs.size() || steps < 1) {
    throw py::value_error("the sizes of bins, counts and ranges do not match");
  }
  py::gil_scoped_release release;
  std::vector<double> errors;
  for (size_t i = 0; i < lows.size(); ++i) {
    errors.push_back(tessera::quant::squaredError({x.data(), n.data(), int64_t(x.size())}, lows[i], highs[i], steps));
  }
  return errors;
}

std::vector<double> divergences(const py::buffer &histogram, const std::vector<int64_t> &ends, int64_t levels) {
  const std::vector<double> bins = doubles(histogram);
  for (int64_t end : ends) {
    if (levels < 1 || end < levels || end > int64_t(bins.size())) {
      throw py::value_error("an end is below the number of levels or above the number of bins");
    }
  }
  py::gil_scoped_release release;
  std::vector<double> result;
  for (int64_t end : ends) {
    result.push_back(tessera::quant::divergence(bins, end, levels));
  }
  return result;
}

void addCross(CrossMoments &moments, const Patches &leftPatches, const py::buffer &left, const Patches &rightPatches,
              const py::buffer &right, const std::vector<int64_t> &positions) {
  const Floats l(left), r(right);
  if (l.size() != size_t(leftPatches.elements()) || r.size() != size_t(rightPatches.elements()) ||
      leftPatches.depth() != moments.left || rightPatches.depth() != moments.right ||
      leftPatches.groups() != moments.groups || rightPatches.groups() != moments.groups) {
    throw py::value_error("the buffers or the patches do not match the sizes of the moments");
  }
  for (int64_t position : positions) {
    if (position < 0 || position >= std::min(leftPatches.positions(), rightPatches.positions())) {
      throw py::value_error("a position is out of range");
    }
  }
  py::gil_scoped_release release;
  moments.add(leftPatches, l.data(), rightPatches, r.data(), positions);
}

/// Registers the sums by which calibration compares candidates.
void addSums(py::module_ &module) {
  module.def(
      "distance",
      [](const py::buffer &wanted, const py::buffer &got) {
        const Floats a(wanted), b(got);
        if (a.size() != b.size()) {
          throw py::value_error("arrays of different sizes");
        }
        py::gil_scoped_release release;
        const tessera::quant::Distance found = tessera::quant::distance(a.data(), b.data(), a.size());
        return std::pair(found.noise, found.power);
      },
      "Sums of (got - wanted)^2 and of wanted^2 where both are finite.", py::arg("wanted"), py::arg("got"));
  module.def("squared_errors", squaredErrors, "See quant/Calibration/Ranges.h.", py::arg("centres"), py::arg("counts"),
             py::arg("lows"), py::arg("highs"), py::arg("steps"));
  module.def("divergences", divergences, "See quant/Calibration/Ranges.h.", py::arg("histogram"), py::arg("ends"),
             py::arg("levels"));
}

} // namespace

PYBIND11_MODULE(_calibration, module) {
  module.doc() = "Streaming statistics for tessera.calibration; not meant to be used directly.";
  py::class_<Histogram>(module, "Histogram", "See quant/Calibration/Histogram.h.")
      .def(py::init<>())
      .def("observe", observe, py::arg("values"), py::arg("sample") = 0)
      .def("merge", &Histogram::merge)
      .def("merge_sample", &Histogram::mergeSample)
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
  py::class_<Patches>(module, "Patches", "See quant/Calibration/Moments.h.")
      .def(py::init([](std::vector<int64_t> shape, int64_t groups, std::vector<int64_t> kernel,
                       std::vector<int64_t> strides, std::vector<int64_t> pads, std::vector<int64_t> dilations) {
             return Patches(std::move(shape),
                            {groups, std::move(kernel), std::move(strides), std::move(pads), std::move(dilations)});
           }),
           py::arg("shape"), py::arg("groups"), py::arg("kernel"), py::arg("strides"), py::arg("pads"),
           py::arg("dilations"))
      .def_property_readonly("positions", &Patches::positions)
      .def_property_readonly("depth", &Patches::depth);
  py::class_<Moments>(module, "Moments", "See quant/Calibration/Moments.h.")
      .def(py::init<int64_t, int64_t, bool>(), py::arg("groups"), py::arg("depth"), py::arg("second"))
      .def("add", addRows, py::arg("patches"), py::arg("values"), py::arg("positions"), py::arg("grid"))
      .def_readonly("count", &Moments::count)
      .def_property_readonly("exact", [](const Moments &m) { return bytesOf(m.exact); })
      .def_property_readonly("rounded", [](const Moments &m) { return bytesOf(m.rounded); })
      .def("products", [](const Moments &m) { return bytesOf(m.products()); });
  py::class_<CrossMoments>(module, "CrossMoments", "See quant/Calibration/Moments.h.")
      .def(py::init<int64_t, int64_t, int64_t>(), py::arg("groups"), py::arg("left"), py::arg("right"))
      .def("add", addCross, py::arg("left_patches"), py::arg("left"), py::arg("right_patches"), py::arg("right"),
           py::arg("positions"))
      .def_readonly("count", &CrossMoments::count)
      .def("products", [](const CrossMoments &m) { return bytesOf(m.products()); });
  module.def("solve_groups", solveGroups, "See quant/Calibration/FeedBack.h.", py::arg("moments"), py::arg("damping"),
             py::arg("right"));
  module.def("round_groups", roundGroups, "See quant/Calibration/FeedBack.h.", py::arg("weights"), py::arg("moments"),
             py::arg("damping"), py::arg("scales"), py::arg("run"), py::arg("lowest"), py::arg("highest"),
             py::arg("clip_first"));
  addSums(module);
  module.attr("SHIFT") = Histogram::kShift;
}
