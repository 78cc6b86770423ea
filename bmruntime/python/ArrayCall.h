// SPDX-License-Identifier: Apache-2.0
//===- ArrayCall.h - Runs on numpy arrays that need no conversion ---------===//
//
// Binds the most frequent kind of call: a dict of contiguous arrays with shapes and types of the stage. It
// is recognised and bound here in less than a microsecond; tessera/runtime.py does the same for everything else that it
// accepts, with messages for what it does not.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_BMRUNTIME_PYTHON_ARRAYCALL_H
#define TESSERA_BMRUNTIME_PYTHON_ARRAYCALL_H

#include "bmrt/bmrt.hpp"

#include <pybind11/pybind11.h>
#include <vector>

/// numpy has no bfloat16: its bits travel as uint16.
const char *numpyName(bmrt_dtype_t dtype);

/// The inputs and outputs of one stage in numpy's terms.
class ArrayCall {
public:
  ArrayCall(const bmrt::Model &model, uint32_t net, uint32_t stage);
  ~ArrayCall() { release(); }
  ArrayCall(const ArrayCall &) = delete;
  ArrayCall &operator=(const ArrayCall &) = delete;

  uint32_t stage() const { return number; }

  /// Binds the arrays of the dict |inputs| and new arrays for the outputs, and returns these as a dict; returns none
  /// if |inputs| is no such dict, or the stage does not suit. The arrays stay alive until `release`.
  pybind11::object bind(bmrt_context_t *context, pybind11::handle inputs);
  /// Gives the input arrays back.
  void release();

private:
  struct Port {
    pybind11::str name;
    pybind11::object dtype;       ///< numpy's
    pybind11::tuple shape;        ///< in this call
    std::vector<Py_ssize_t> dims; ///< of the stage; -1: known at run time only
    std::string format;           ///< that numpy's buffers of the type have
    uint64_t bytes;
  };

  Port describe(const bmrt_tensor_info_t &info);
  static void setShape(Port &port, const bmrt_tensor_info_t &info);
  bool setShapes(bmrt_context_t *context);
  bool hold(pybind11::handle inputs);
  static bool fits(const Port &port, const Py_buffer &view);
  pybind11::object allocate(const Port &port, void *&data) const;

  uint32_t number;
  pybind11::object ndarray;
  std::vector<Port> inputs, outputs;
  std::vector<Py_buffer> held;
  bool isOpen = false;  ///< a size is known at run time only
  bool isSuited = true; ///< the stage can be run here
};

#endif // TESSERA_BMRUNTIME_PYTHON_ARRAYCALL_H
