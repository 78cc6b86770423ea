//===- Constants.h - Reading and creating constant tensors ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_CONSTANTS_H
#define TESSERA_TOP_DIALECT_IR_CONSTANTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include <memory>
#include <optional>
#include <vector>

namespace tessera::top {

/// Constants up to this size are printed in the module (`top.constant`); larger ones are in the weight store.
inline constexpr int64_t kMaxInlineBytes = 1024;

/// A constant's value: row-major, little endian, i1 as one byte per element (0 or 1).
/// `owner` keeps `bytes` alive if the data had to be unpacked; otherwise they live as long as the attribute or the
/// weight store's entry.
struct TensorData {
  mlir::RankedTensorType type;
  llvm::ArrayRef<char> bytes;
  std::shared_ptr<const std::vector<char>> owner;

  template <typename T>
  llvm::ArrayRef<T> data() const {
    return {reinterpret_cast<const T *>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

/// Returns the number of bytes of a tensor of static type (elements times `elementBytes`); -1 if a dim is dynamic or
/// the size overflows.
int64_t byteSize(mlir::RankedTensorType type);

/// Returns the value of a `top.constant` or `top.weight`; nothing for other values, or if the store lacks the key.
std::optional<TensorData> getConstantData(mlir::Value value);

/// Returns true if getConstantData() returns a value, without computing the bytes of a lazy weight.
bool hasConstantData(mlir::Value value);

/// Checks that the value is a `top.constant` or `top.weight`.
bool isConstant(mlir::Value value);

/// Returns the elements of a constant integer tensor (i1, i8 .. i64, signed or not) as i64.
std::optional<llvm::SmallVector<int64_t>> getConstantInts(mlir::Value value);

/// Returns the elements of a constant tensor of any real type as double. It converts each one: use it for small
/// tensors.
std::optional<llvm::SmallVector<double>> getConstantDoubles(mlir::Value value);

/// Returns the value that all elements of a constant float tensor share; nothing if they differ, or if the tensor is a
/// lazy weight, which is large.
std::optional<double> getSplatDouble(mlir::Value value);

/// Creates a `top.constant`, or, beyond `kMaxInlineBytes`, adds the data to the weight store and creates a
/// `top.weight`. `hint` is the wanted key, which is made unique. The format of `bytes` is that of TensorData.
mlir::Value createConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                           llvm::ArrayRef<char> bytes, llvm::StringRef hint);

/// Creates a constant that takes ownership of the bytes.
mlir::Value createConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                           std::vector<char> bytes, llvm::StringRef hint);

/// Creates a rank-1 i64 constant.
mlir::Value createIntVector(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<int64_t> values);

/// Creates a rank-0 constant of a float or integer type. Values of integers are truncated and wrap to the width.
mlir::Value createScalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type elementType, double value);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_CONSTANTS_H
