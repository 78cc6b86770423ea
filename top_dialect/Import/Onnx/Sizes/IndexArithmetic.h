//===- IndexArithmetic.h - Arithmetic on sizes and positions ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// For operators whose sizes or positions a run computes: they become ops that compute with vectors, and moves by
// indices.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_INDEXARITHMETIC_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_INDEXARITHMETIC_H

#include "top_dialect/Import/Onnx/NodeImporter.h"

namespace tessera::top::onnx_import {

/// Arithmetic on vectors of one element type, i64 unless |element| says otherwise. The vectors broadcast.
struct Arithmetic {
  NodeImporter &n;
  mlir::Type element = n.b.getI64Type();

  mlir::Value number(double value) {
    return element.isInteger(64) ? n.intVector({int64_t(value)}) : n.reshape(n.scalar(element, value), {1});
  }
  mlir::Value add(mlir::Value a, mlir::Value b) { return n.create<AddOp>(a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return n.create<SubOp>(a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return n.create<MulOp>(a, b); }
  /// Returns the quotient; integers are rounded towards zero.
  mlir::Value div(mlir::Value a, mlir::Value b) { return n.create<DivOp>(a, b); }
  mlir::Value min(mlir::Value a, mlir::Value b) { return n.create<MinOp>(a, b); }
  mlir::Value max(mlir::Value a, mlir::Value b) { return n.create<MaxOp>(a, b); }
  mlir::Value is(mlir::Value a, CompareKind kind, mlir::Value b) { return n.create<CompareOp>(a, b, kind); }
  mlir::Value where(mlir::Value flag, mlir::Value a, mlir::Value b) { return n.create<WhereOp>(flag, a, b); }
  mlir::Value reduce(mlir::Value a, ReduceKind kind) { return n.create<ReduceOp>(a, kind, Ints{0}, true); }
  /// Returns |a| limited to |low|..|high|.
  mlir::Value clamp(mlir::Value a, mlir::Value low, mlir::Value high) { return min(max(a, low), high); }
  /// Returns the quotient of a number and a positive number, rounded down.
  mlir::Value floorDiv(mlir::Value a, mlir::Value b) {
    mlir::Value least = add(sub(a, b), number(1));
    return where(is(a, CompareKind::lt, number(0)), div(least, b), div(a, b));
  }
  /// Returns the remainder of floorDiv().
  mlir::Value mod(mlir::Value a, mlir::Value b) { return sub(a, mul(floorDiv(a, b), b)); }
  /// Counts negative entries from |size| on.
  mlir::Value fromEnd(mlir::Value a, mlir::Value size) {
    return where(is(a, CompareKind::lt, number(0)), add(a, size), a);
  }
  mlir::Value at(mlir::Value vector, int64_t i) { return n.slice(vector, {Dim(i)}, {Dim(1)}, {1}); }
};

/// Returns the numbers from 0 to |size| - 1.
mlir::Value iotaTo(NodeImporter &n, Dim size);
/// Returns the sizes of |x| as a vector of i64.
mlir::Value shapeVector(NodeImporter &n, mlir::Value x);
/// Returns |sizes| as a vector of i64.
mlir::Value sizeVector(NodeImporter &n, llvm::ArrayRef<Dim> sizes);
/// Returns |vector| as [size, 1, ...] that aligns with dim |axis| of a tensor of |rank| dims.
mlir::Value alignWith(NodeImporter &n, mlir::Value vector, int64_t axis, int64_t rank);
/// Returns the first |size| elements of |x| along |axis|; its last one again where a run asks for more than it has.
mlir::Value takeFront(NodeImporter &n, mlir::Value x, int64_t axis, Dim size);
/// Returns input |i| as a vector of i64.
mlir::Value vectorInput(NodeImporter &n, unsigned i);
/// Returns the number of entries of a vector.
inline int64_t countOf(mlir::Value vector) { return NodeImporter::dim(vector, 0); }
/// Returns axes from 0 to |rank| - 1 for a vector of axes that may be negative.
mlir::Value normalAxes(NodeImporter &n, mlir::Value axes, int64_t rank);
/// Replaces the entries of |base| at |axes| by |values|; without axes, those from the front.
mlir::Value spread(NodeImporter &n, mlir::Value base, mlir::Value axes, mlir::Value values);

/// Returns the largest sizes of |x|, whose sizes must be numbers or expressions.
std::optional<Ints> largestSizes(NodeImporter &n, mlir::Value x);
/// Returns element |axis| of |sizes|, the size of that dim of output |output|. If it is not known, it becomes a symbol
/// from 0 to |most|.
Dim bindDim(NodeImporter &n, mlir::Value sizes, int64_t axis, int64_t most, unsigned output = 0);
/// Returns bindDim() of all dims of output 0.
llvm::SmallVector<Dim> bindDims(NodeImporter &n, mlir::Value sizes, llvm::ArrayRef<int64_t> most);
/// Makes the run fail unless the single element of |value| is |wanted|: binds a symbol that can be 0 or 1 to 0 or 2.
void require(NodeImporter &n, mlir::Value value, int64_t wanted, llvm::StringRef what);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_INDEXARITHMETIC_H
