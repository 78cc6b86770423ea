// SPDX-License-Identifier: Apache-2.0
//===- DlPack.cpp - Exchange of GPU tensors with other libraries ----------===//
#include "DlPack.h"

namespace py = pybind11;
using namespace dlpack;

namespace {

DataType dataTypeOf(bmrt_dtype_t dtype) {
  constexpr uint8_t kInt = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4, kBool = 6;
  const uint8_t bits = uint8_t(8 * bmrt_dtype_bytes(dtype));
  switch (dtype) {
  case BMRT_F32:
  case BMRT_F16:
  case BMRT_F64:
    return {kFloat, bits, 1};
  case BMRT_BF16:
    return {kBfloat, bits, 1};
  case BMRT_I8:
  case BMRT_I16:
  case BMRT_I32:
  case BMRT_I64:
    return {kInt, bits, 1};
  case BMRT_BOOL:
    return {kBool, bits, 1};
  case BMRT_U8:
  case BMRT_U16:
  case BMRT_U32:
  case BMRT_U64:
    break;
  }
  return {kUnsigned, bits, 1};
}

bool isContiguous(const Tensor &tensor) {
  int64_t wanted = 1;
  for (int32_t i = tensor.rank - 1; i >= 0 && tensor.strides; --i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != wanted) {
      return false;
    }
    wanted *= tensor.shape[i];
  }
  return true;
}

/// The data that a consumer of |Output| borrows.
struct Loan {
  ManagedTensor managed;
  std::shared_ptr<bmrt_chip_buffer_t> buffer;
  std::vector<int64_t> shape;
};

} // namespace

Borrowed::Borrowed(const py::object &capsule, const bmrt_tensor_info_t &info, int32_t id) {
  auto *given = static_cast<ManagedTensor *>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (!given) {
    throw py::error_already_set();
  }
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  managed.reset(given);
  const Tensor &tensor = given->tensor;
  const DataType wanted = dataTypeOf(info.dtype);
  const std::string name = std::string("input '") + info.name + "' ";
  if (tensor.device.type != kCuda || tensor.device.id != id) {
    throw py::value_error(name + "is on device " + std::to_string(tensor.device.id) + ", the model runs on GPU " +
                          std::to_string(id));
  }
  if (tensor.dtype.code != wanted.code || tensor.dtype.bits != wanted.bits || tensor.dtype.lanes != 1) {
    throw py::value_error(name + "has another type than the model expects, " + bmrt_dtype_name(info.dtype));
  }
  if (!isContiguous(tensor)) {
    throw py::value_error(name + "is not contiguous: call .contiguous()");
  }
}

uint64_t Borrowed::bytes() const {
  uint64_t total = managed->tensor.dtype.bits / 8;
  for (int64_t size : shape()) {
    total *= uint64_t(size);
  }
  return total;
}

Output::Output(bmrt_chip_buffer_t *result, const bmrt_tensor_info_t &info, int32_t id)
    : buffer(result, bmrt_chip_buffer_release), shape(info.max_shape, info.max_shape + info.rank),
      dtype(dataTypeOf(info.dtype)), id(id) {}

py::capsule Output::lend() const {
  auto loan = std::make_unique<Loan>(Loan{{}, buffer, shape});
  ManagedTensor &managed = loan->managed;
  managed.tensor = {data(), device(), int32_t(shape.size()), dtype, loan->shape.data(), nullptr, 0};
  managed.owner = loan.get();
  managed.deleter = [](ManagedTensor *each) { delete static_cast<Loan *>(each->owner); };
  PyObject *capsule = PyCapsule_New(&managed, "dltensor", [](PyObject *self) {
    if (PyCapsule_IsValid(self, "dltensor")) { // no consumer has taken it over
      auto *each = static_cast<ManagedTensor *>(PyCapsule_GetPointer(self, "dltensor"));
      each->deleter(each);
    }
  });
  if (!capsule) {
    throw py::error_already_set();
  }
  (void)loan.release(); // now owned by the capsule
  return py::reinterpret_steal<py::capsule>(capsule);
}
