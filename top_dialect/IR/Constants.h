//===- Constants.h - Reading and creating constant tensors ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include <memory>
#include <optional>
#include <vector>

namespace tessera::top {

/// Constants up to this size stand in the module (`top.constant`), larger ones in the weight store.
inline constexpr int64_t kMaxInlineBytes = 1024;

/// A constant's value: row-major, little endian, i1 one byte per element (0 or 1).
/// `bytes` lives as long as the weight store's entry, or as `owner` where the data had to be unpacked.
struct TensorData {
  mlir::RankedTensorType type;
  llvm::ArrayRef<char> bytes;
  std::shared_ptr<const std::vector<char>> owner;

  template <typename T>
  llvm::ArrayRef<T> data() const {
    return {reinterpret_cast<const T *>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

/// Bytes of a tensor of static type (elements times `elementBytes`); -1 if a dim is dynamic or the
/// product overflows.
int64_t byteSize(mlir::RankedTensorType type);

/// The value of `top.constant` or `top.weight`; nothing for other values, or if the store lacks the key.
std::optional<TensorData> getConstantData(mlir::Value value);

/// True if the value is a `top.constant` or `top.weight`.
bool isConstant(mlir::Value value);

/// The elements of a constant integer tensor (i1, i8 .. i64, signed or not) as i64.
std::optional<llvm::SmallVector<int64_t>> getConstantInts(mlir::Value value);

/// The elements of a constant tensor of any real type as double (for small tensors: it converts each).
std::optional<llvm::SmallVector<double>> getConstantDoubles(mlir::Value value);

/// The one value all elements of a float constant have.
std::optional<double> getSplatDouble(mlir::Value value);

/// Creates `top.constant`, or beyond `kMaxInlineBytes` adds to the weight store and creates `top.weight`.
/// `hint` is the wanted key, made unique. `bytes` as in TensorData.
mlir::Value createConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                           llvm::ArrayRef<char> bytes, llvm::StringRef hint);

/// The same, taking over the bytes.
mlir::Value createConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                           std::vector<char> bytes, llvm::StringRef hint);

/// A rank-1 i64 constant.
mlir::Value createIntVector(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<int64_t> values);

/// A rank-0 constant of a float or integer type; integers truncate, and wrap to their width.
mlir::Value createScalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type elementType, double value);

} // namespace tessera::top
