// SPDX-License-Identifier: Apache-2.0
//===- DlPack.h - Exchange of GPU tensors with other libraries ------------===//
//
// The structs of DLPack 0.x, as in capsules named "dltensor" (https://dmlc.github.io/dlpack). Supports only CUDA
// memory.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_BMRUNTIME_PYTHON_DLPACK_H
#define TESSERA_BMRUNTIME_PYTHON_DLPACK_H

#include "bmrt/bmrt.h"

#include <cstdint>
#include <memory>
#include <pybind11/pybind11.h>
#include <string>
#include <vector>

namespace dlpack {

inline constexpr int32_t kCuda = 2;

struct Device {
  int32_t type, id;
};
struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct Tensor {
  void *data;
  Device device;
  int32_t rank;
  DataType dtype;
  int64_t *shape, *strides; ///< strides in elements; null: contiguous
  uint64_t byteOffset;
};
struct ManagedTensor {
  Tensor tensor;
  void *owner;
  void (*deleter)(ManagedTensor *);
};

/// A tensor that another library lends for the lifetime of this object.
class Borrowed {
public:
  /// Takes over |capsule|. Throws value_error if it is not a contiguous tensor of |info|'s type in the memory of GPU
  /// |id|.
  Borrowed(const pybind11::object &capsule, const bmrt_tensor_info_t &info, int32_t id);

  const void *data() const { return static_cast<const char *>(managed->tensor.data) + managed->tensor.byteOffset; }
  std::vector<int64_t> shape() const {
    return std::vector<int64_t>(managed->tensor.shape, managed->tensor.shape + managed->tensor.rank);
  }
  uint64_t bytes() const;

private:
  struct Release {
    void operator()(ManagedTensor *each) const {
      if (each->deleter) {
        each->deleter(each);
      }
    }
  };
  std::unique_ptr<ManagedTensor, Release> managed;
};

/// An output in the memory of a GPU, for libraries that support __dlpack__.
class Output {
public:
  Output(bmrt_chip_buffer_t *buffer, const bmrt_tensor_info_t &info, int32_t id);

  void *data() const { return bmrt_chip_buffer_data(buffer.get()); }
  const std::vector<int64_t> &getShape() const { return shape; }
  /// Sets the shape that the run computed for symbolic dims.
  void setShape(std::vector<int64_t> newShape) { shape = std::move(newShape); }
  Device device() const { return {kCuda, id}; }
  /// Returns a capsule that shares the memory.
  pybind11::capsule lend() const;

private:
  std::shared_ptr<bmrt_chip_buffer_t> buffer;
  std::vector<int64_t> shape;
  DataType dtype;
  int32_t id;
};

} // namespace dlpack

#endif // TESSERA_BMRUNTIME_PYTHON_DLPACK_H
