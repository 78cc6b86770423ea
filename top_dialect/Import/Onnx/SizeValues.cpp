//===- SizeValues.cpp - Sizes that a graph computes with ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/SizeValues.h"

#include "top_dialect/IR/SizeUpdates.h"
#include "top_dialect/Import/Onnx/ShapeArithmetic.h"

#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

/// Returns true if a result of |op| is computed from sizes of open dims.
static bool isShapeArithmetic(mlir::Operation *op) {
  return llvm::any_of(op->getResults(), [](Value result) { return readOpenSizes(result).has_value(); });
}

Value openRange(NodeImporter &n, Dim start, Dim limit, mlir::Type element) {
  constexpr int64_t kLongest = int64_t(1) << 20;
  int64_t first = std::min<int64_t>(minOf(start), 0), last = maxOf(limit);
  if (first < -kLongest || last > kLongest) {
    n.unsupported(llvm::formatv("the range from {0} to {1} reaches beyond -{2} or {2}: narrow --dims", toText(start),
                                toText(limit), kLongest));
    return n.scalar(element, 0);
  }
  Ints numbers(std::max<int64_t>(last - first, 0));
  std::iota(numbers.begin(), numbers.end(), first);
  return n.slice(n.cast(n.intVector(numbers), element), start - Dim(first), max(limit - start, 0), 1);
}

/// Returns true if |value| is computed from dims. Other sizes are elements that a run computes and that are bound to
/// symbols: they are data already.
static bool dependsOnDims(Value value) {
  llvm::SetVector<Value> reached;
  reached.insert(value);
  for (size_t i = 0; i < reached.size(); ++i) {
    mlir::Operation *op = reached[i].getDefiningOp();
    if (mlir::isa_and_nonnull<ShapeOp>(op)) {
      return true;
    }
    if (op) {
      reached.insert(op->operand_begin(), op->operand_end());
    }
  }
  return false;
}

llvm::SetVector<Value> findSizeValues(mlir::func::FuncOp function) {
  llvm::SetVector<Value> values;
  // Users come before the ops that they read, and ops before those in their regions, so that chains without a use
  // disappear as a whole.
  function.walk<mlir::WalkOrder::PreOrder, mlir::ReverseIterator>([&](mlir::Operation *op) {
    if (isUnused(op)) {
      op->erase();
      return mlir::WalkResult::skip();
    }
    for (Value operand : op->getOperands()) {
      if (!isShapeArithmetic(op) && !mlir::isa<BindOp>(op) && readOpenSizes(operand) && dependsOnDims(operand)) {
        values.insert(operand);
      }
    }
    return mlir::WalkResult::advance();
  });
  return values;
}

Value tabulateSizes(NodeImporter &n, Value value) {
  mlir::Type element = NodeImporter::elementType(value);
  llvm::SmallVector<Value> entries;
  auto sizes = readOpenSizes(value);
  for (Dim size : *sizes) {
    entries.push_back(size.isKnown() ? n.cast(n.intVector({size.value()}), element)
                                     : openRange(n, size, size + 1, element));
  }
  Value vector = entries.size() == 1 ? entries.front() : n.create<ConcatOp>(entries, 0);
  return n.reshape(vector, NodeImporter::shape(value));
}

void replaceSizeValue(Value value, Value table) {
  value.replaceUsesWithIf(table, [](mlir::OpOperand &use) {
    return !isShapeArithmetic(use.getOwner()) && !mlir::isa<BindOp>(use.getOwner());
  });
}

} // namespace tessera::top::onnx_import
