//===- ShapeArithmetic.cpp - Known values of shapes with open dims --------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/ShapeArithmetic.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopOps.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Shapes are short. Longer vectors are data.
constexpr int64_t kMaxElements = 32;

PartialInts dimsOf(ShapeOp op) {
  PartialInts dims;
  auto shape = mlir::cast<mlir::RankedTensorType>(op.getX().getType()).getShape();
  for (int64_t dim : shape.slice(op.getStart(), op.getEnd() - op.getStart())) {
    dims.push_back(mlir::ShapedType::isDynamic(dim) ? std::nullopt : std::optional(dim));
  }
  return dims;
}

std::optional<PartialInts> gathered(GatherOp op, unsigned depth) {
  auto table = knownInts(op.getX(), depth);
  auto indices = getConstantInts(op.getIndices());
  if (!table || !indices || mlir::cast<mlir::RankedTensorType>(op.getX().getType()).getRank() != 1) {
    return std::nullopt;
  }
  PartialInts result;
  auto size = static_cast<int64_t>(table->size());
  for (int64_t index : *indices) {
    int64_t position = index < 0 ? index + size : index;
    if (position < 0 || position >= size) {
      return std::nullopt;
    }
    result.push_back((*table)[position]);
  }
  return result;
}

std::optional<PartialInts> sliced(SliceOp op, unsigned depth) {
  auto all = knownInts(op.getX(), depth);
  if (!all || op.getStarts().size() != 1 || op.getSizes()[0] < 0) {
    return std::nullopt;
  }
  PartialInts result;
  for (int64_t i = 0; i < op.getSizes()[0]; ++i) {
    result.push_back((*all)[op.getStarts()[0] + i * op.getSteps()[0]]);
  }
  return result;
}

std::optional<PartialInts> joined(ConcatOp op, unsigned depth) {
  PartialInts result;
  for (Value input : op.getInputs()) {
    auto part = knownInts(input, depth);
    if (!part) {
      return std::nullopt;
    }
    llvm::append_range(result, *part);
  }
  return result;
}

/// Applies an elementwise op to operands of the same size, or with a single element on one side.
template <typename Combine>
std::optional<PartialInts> combined(mlir::Operation *op, unsigned depth, Combine combine) {
  auto a = knownInts(op->getOperand(0), depth);
  auto b = knownInts(op->getOperand(1), depth);
  if (!a || !b || a->empty() || b->empty() || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) {
    return std::nullopt;
  }
  PartialInts result;
  for (size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
    std::optional<int64_t> x = (*a)[a->size() == 1 ? 0 : i];
    std::optional<int64_t> y = (*b)[b->size() == 1 ? 0 : i];
    result.push_back(x && y ? combine(*x, *y) : std::nullopt);
  }
  return result;
}

std::optional<int64_t> add(int64_t a, int64_t b) {
  int64_t result = 0;
  return llvm::AddOverflow(a, b, result) ? std::nullopt : std::optional(result);
}

std::optional<int64_t> subtract(int64_t a, int64_t b) {
  int64_t result = 0;
  return llvm::SubOverflow(a, b, result) ? std::nullopt : std::optional(result);
}

std::optional<int64_t> multiply(int64_t a, int64_t b) {
  int64_t result = 0;
  return llvm::MulOverflow(a, b, result) ? std::nullopt : std::optional(result);
}

std::optional<int64_t> divide(int64_t a, int64_t b) { return b > 0 ? std::optional(a / b) : std::nullopt; }

} // namespace

std::optional<PartialInts> knownInts(Value value, unsigned depth) {
  auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
  if (!type.getElementType().isSignlessInteger(64) || !type.hasStaticShape() || type.getRank() > 1 ||
      type.getNumElements() > kMaxElements) {
    return std::nullopt;
  }
  if (auto constant = getConstantInts(value)) {
    return PartialInts(constant->begin(), constant->end());
  }
  mlir::Operation *op = value.getDefiningOp();
  if (!op || depth == 0) {
    return std::nullopt;
  }
  --depth;
  using Result = std::optional<PartialInts>;
  return llvm::TypeSwitch<mlir::Operation *, Result>(op)
      .Case([&](ShapeOp shape) { return dimsOf(shape); })
      .Case([&](GatherOp gather) { return gathered(gather, depth); })
      .Case([&](SliceOp slice) { return sliced(slice, depth); })
      .Case([&](ConcatOp concat) { return joined(concat, depth); })
      .Case([&](ReshapeOp reshape) { return knownInts(reshape.getX(), depth); })
      .Case([&](CastOp cast) { return knownInts(cast.getX(), depth); })
      .Case([&](AddOp) { return combined(op, depth, add); })
      .Case([&](SubOp) { return combined(op, depth, subtract); })
      .Case([&](MulOp) { return combined(op, depth, multiply); })
      .Case([&](DivOp) { return combined(op, depth, divide); })
      .Default(Result());
}

} // namespace tessera::top::onnx_import
