//===- SizeValues.cpp - Sizes that a graph computes with ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Sizes/SizeValues.h"

#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/SizeUpdates.h"
#include "top_dialect/Import/Onnx/Sizes/IndexArithmetic.h"
#include "top_dialect/Import/Onnx/Sizes/ShapeArithmetic.h"

#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

/// Returns true if a result of |op| is computed from sizes of open dims alone. An op that binds symbols to the elements
/// of its result computes them from data.
static bool isShapeArithmetic(mlir::Operation *op) {
  bool isBound = llvm::any_of(op->getUsers(), [](mlir::Operation *user) { return mlir::isa<BindOp>(user); });
  return !(isBound && !mlir::isa<CastOp, ReshapeOp>(op)) &&
         llvm::any_of(op->getResults(), [](Value result) { return readOpenSizes(result).has_value(); });
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

/// Returns |size|, an expression, as a vector of one i64: a part of a table, or computed from those of its symbols.
static Value openSizeVector(NodeImporter &n, Dim size) {
  constexpr int64_t kLongestTable = int64_t(1) << 16;
  llvm::SmallVector<SizeStep> steps = toPostfix(size);
  if (steps.size() == 1 || (minOf(size) > -kLongestTable && maxOf(size) < kLongestTable)) {
    return openRange(n, size, size + 1, n.b.getI64Type());
  }
  Arithmetic i{n};
  llvm::SmallVector<Value> stack;
  for (const SizeStep &step : steps) {
    if (step.kind == SizeStep::Number) {
      stack.push_back(n.intVector({step.number}));
      continue;
    }
    if (step.kind == SizeStep::Symbol) {
      stack.push_back(openSizeVector(n, sizeOf(step.symbol)));
      continue;
    }
    Value b = stack.pop_back_val(), &a = stack.back();
    a = step.kind == SizeStep::Add        ? i.add(a, b)
        : step.kind == SizeStep::Multiply ? i.mul(a, b)
        : step.kind == SizeStep::FloorDiv ? i.floorDiv(a, b)
        : step.kind == SizeStep::Min      ? i.min(a, b)
                                          : i.max(a, b);
  }
  return stack.front();
}

Value sizeVector(NodeImporter &n, llvm::ArrayRef<Dim> sizes) {
  llvm::SmallVector<Value> entries = llvm::map_to_vector(
      sizes, [&](Dim size) { return size.isKnown() ? n.intVector({size.value()}) : openSizeVector(n, size); });
  return entries.size() == 1 ? entries.front() : n.create<ConcatOp>(entries, 0);
}

Value tabulateSizes(NodeImporter &n, Value value) {
  Value vector = n.cast(sizeVector(n, *readOpenSizes(value)), NodeImporter::elementType(value));
  return n.reshape(vector, NodeImporter::shape(value));
}

void replaceSizeValue(Value value, Value table) {
  value.replaceUsesWithIf(table, [](mlir::OpOperand &use) {
    return !isShapeArithmetic(use.getOwner()) && !mlir::isa<BindOp>(use.getOwner());
  });
}

} // namespace tessera::top::onnx_import
