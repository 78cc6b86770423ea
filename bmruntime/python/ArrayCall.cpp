// SPDX-License-Identifier: Apache-2.0
//===- ArrayCall.cpp ------------------------------------------------------===//
#include "ArrayCall.h"

#include <algorithm>

namespace py = pybind11;

namespace {

/// From this size on numpy asks for huge pages, which is worth more than what is spared here.
constexpr uint64_t kMostBytes = uint64_t(4) << 20;

} // namespace

const char *numpyName(bmrt_dtype_t dtype) {
  switch (dtype) {
  case BMRT_F32:
    return "float32";
  case BMRT_F16:
    return "float16";
  case BMRT_F64:
    return "float64";
  case BMRT_I8:
    return "int8";
  case BMRT_I16:
    return "int16";
  case BMRT_I32:
    return "int32";
  case BMRT_I64:
    return "int64";
  case BMRT_U8:
    return "uint8";
  case BMRT_U32:
    return "uint32";
  case BMRT_U64:
    return "uint64";
  case BMRT_BOOL:
    return "bool";
  case BMRT_BF16:
  case BMRT_U16:
    break;
  }
  return "uint16";
}

ArrayCall::ArrayCall(const bmrt::Model &model, uint32_t net, uint32_t stage)
    : number(stage), ndarray(py::module_::import("numpy").attr("ndarray")) {
  const bmrt_stage_info_t info = model.stageInfo(net, stage);
  for (uint32_t i = 0; i < info.input_count; ++i) {
    inputs.push_back(describe(model.inputInfo(net, stage, i)));
  }
  for (uint32_t i = 0; i < info.output_count; ++i) {
    outputs.push_back(describe(model.outputInfo(net, stage, i)));
    isSuited &= outputs.back().bytes < kMostBytes;
  }
  isSuited &= !isOpen || model.stageCount(net) == 1; // of several stages the shapes select one
  held.reserve(inputs.size());
}

ArrayCall::Port ArrayCall::describe(const bmrt_tensor_info_t &info) {
  Port port;
  port.name = py::reinterpret_steal<py::str>(PyUnicode_InternFromString(info.name));
  port.dtype = py::module_::import("numpy").attr("dtype")(numpyName(info.dtype));
  port.dims.assign(info.shape, info.shape + info.rank);
  isOpen |= std::any_of(info.shape, info.shape + info.rank, [](int64_t size) { return size < 0; });
  setShape(port, info);
  const py::object sample = py::module_::import("numpy").attr("empty")(0, port.dtype);
  port.format = py::memoryview(sample).attr("format").cast<std::string>();
  return port;
}

void ArrayCall::setShape(Port &port, const bmrt_tensor_info_t &info) {
  port.shape = py::tuple(info.rank);
  for (uint32_t i = 0; i < info.rank; ++i) {
    port.shape[i] = info.shape[i];
  }
  port.bytes = info.bytes;
}

py::object ArrayCall::bind(bmrt_context_t *context, py::handle given) {
  if (!isSuited || !hold(given) || (isOpen && !setShapes(context))) {
    release();
    return py::none();
  }
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    bmrt::check(bmrt_context_bind_input, context, i, static_cast<const void *>(held[i].buf), uint64_t(held[i].len));
  }
  py::dict arrays;
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    void *data = nullptr;
    const py::object array = allocate(outputs[i], data);
    bmrt::check(bmrt_context_bind_output, context, i, data, outputs[i].bytes);
    arrays[outputs[i].name] = array;
  }
  return std::move(arrays);
}

/// Sets the shapes of the held arrays and takes those of the outputs. Returns false if a shape is out of its range, or
/// if an output's shape depends on data.
bool ArrayCall::setShapes(bmrt_context_t *context) {
  std::vector<const int64_t *> shapes;
  std::vector<uint32_t> ranks;
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  for (const Py_buffer &view : held) {
    shapes.push_back(reinterpret_cast<const int64_t *>(view.shape));
    ranks.push_back(uint32_t(view.ndim));
  }
  if (bmrt_context_set_input_shapes(context, shapes.data(), ranks.data(), uint32_t(held.size()), nullptr) != BMRT_OK) {
    return false;
  }
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    bmrt_tensor_info_t info;
    bmrt::check(bmrt_context_output_info, context, i, &info);
    if (std::any_of(info.shape, info.shape + info.rank, [](int64_t size) { return size < 0; })) {
      return false;
    }
    setShape(outputs[i], info);
  }
  return true;
}

void ArrayCall::release() {
  for (Py_buffer &view : held) {
    PyBuffer_Release(&view);
  }
  held.clear();
}

/// Returns whether |given| has an array for each input as it is and nothing else; holds those it has looked at.
bool ArrayCall::hold(py::handle given) {
  if (!PyDict_CheckExact(given.ptr()) || size_t(PyDict_GET_SIZE(given.ptr())) != inputs.size()) {
    return false;
  }
  for (const Port &port : inputs) {
    PyObject *array = PyDict_GetItemWithError(given.ptr(), port.name.ptr());
    Py_buffer view;
    if (!array || reinterpret_cast<PyObject *>(Py_TYPE(array)) != ndarray.ptr() ||
        PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      return false;
    }
    held.push_back(view);
    if (!fits(port, view)) {
      return false;
    }
  }
  return true;
}

bool ArrayCall::fits(const Port &port, const Py_buffer &view) {
  return size_t(view.ndim) == port.dims.size() && view.format && port.format == view.format &&
         std::equal(port.dims.begin(), port.dims.end(), view.shape,
                    [](Py_ssize_t size, Py_ssize_t given) { return size < 0 || size == given; });
}

/// Returns an uninitialised array whose elements begin at |data|, where the runtime can use them in place.
py::object ArrayCall::allocate(const Port &port, void *&data) const {
  PyObject *storage = PyByteArray_FromStringAndSize(nullptr, Py_ssize_t(port.bytes + BMRT_ALIGNMENT));
  if (!storage) {
    throw py::error_already_set();
  }
  const py::object owner = py::reinterpret_steal<py::object>(storage);
  char *const bytes = PyByteArray_AS_STRING(storage);
  const size_t offset = -reinterpret_cast<uintptr_t>(bytes) % BMRT_ALIGNMENT;
  data = bytes + offset;
  PyObject *const number = PyLong_FromSize_t(offset);
  PyObject *const arguments[] = {port.shape.ptr(), port.dtype.ptr(), storage, number};
  PyObject *const array = PyObject_Vectorcall(ndarray.ptr(), arguments, 4, nullptr);
  Py_XDECREF(number);
  if (!array) {
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::object>(array);
}
