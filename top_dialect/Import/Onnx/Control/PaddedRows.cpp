//===- PaddedRows.cpp - Operators that pass padded rows on ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Control/PaddedRows.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/IR/Unsupported.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

using Dims = llvm::ArrayRef<int64_t>;
/// The padded axis of a result, or nothing if the op does not process rows independently.
using Axis = std::optional<int64_t>;

Dims shapeOf(Value value) { return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape(); }
int64_t rankOf(Value value) { return static_cast<int64_t>(shapeOf(value).size()); }

class Rule {
public:
  Rule(const PaddedRows &rows, mlir::Operation *op) : rows(rows), op(op) {}

  Axis apply() const {
    if (mlir::isa<ScalarInterface>(op)) {
      return elementwise();
    }
    return llvm::TypeSwitch<mlir::Operation *, Axis>(op)
        .Case([&](ReshapeOp reshape) { return reshaped(reshape); })
        .Case([&](TransposeOp transpose) {
          auto perm = transpose.getPerm();
          return Axis(llvm::find(perm, axisOf(transpose.getX())) - perm.begin());
        })
        .Case([&](SliceOp slice) { return sliced(slice); })
        .Case([&](GatherOp gather) { return gathered(gather); })
        .Case([&](GatherNdOp gather) { return gatheredTuples(gather); })
        .Case([&](ConcatOp concat) { return joined(concat); })
        .Case([&](MatMulOp product) { return multiplied(product); })
        .Case([&](ReduceOp reduce) { return reduced(reduce); })
        .Case([&](ArgReduceOp reduce) { return without(reduce.getX(), reduce.getAxis(), reduce.getKeepDims()); })
        .Case([&](SoftmaxOp softmax) { return without(softmax.getX(), softmax.getAxis(), true); })
        .Case([&](CumSumOp sum) {
          bool forward = !sum.getReverse() || axisOf(sum.getX()) != static_cast<int64_t>(sum.getAxis());
          return forward ? Axis(axisOf(sum.getX())) : Axis();
        })
        .Default(Axis());
  }

private:
  const Padding *find(Value value) const { return rows.find(value); }
  int64_t axisOf(Value value) const { return find(value)->axis; }

  /// Operands broadcast. The padded ones must have their rows in the same dim, and the others must have size 1 there.
  Axis elementwise() const {
    Axis fromEnd;
    for (Value operand : op->getOperands()) {
      if (const Padding *padding = find(operand)) {
        int64_t own = rankOf(operand) - padding->axis;
        if (fromEnd && *fromEnd != own) {
          return {};
        }
        fromEnd = own;
      }
    }
    for (Value operand : op->getOperands()) {
      int64_t axis = rankOf(operand) - *fromEnd;
      if (!find(operand) && axis >= 0 && shapeOf(operand)[axis] != 1) {
        return {};
      }
    }
    return rankOf(op->getResult(0)) - *fromEnd;
  }

  /// The dim is kept, with the same number of elements before it.
  Axis reshaped(ReshapeOp reshape) const {
    Dims from = shapeOf(reshape.getX()), to = shapeOf(reshape.getY());
    if (reshape.getDynShape() || llvm::any_of(to, mlir::ShapedType::isDynamic)) {
      return {};
    }
    auto before = [](Dims dims, int64_t axis) {
      return std::accumulate(dims.begin(), dims.begin() + axis, int64_t{1}, std::multiplies<>());
    };
    int64_t axis = axisOf(reshape.getX());
    for (int64_t d = 0; d < static_cast<int64_t>(to.size()); ++d) {
      if (to[d] == from[axis] && before(to, d) == before(from, axis)) {
        return d;
      }
    }
    return {};
  }

  Axis sliced(SliceOp slice) const {
    int64_t axis = axisOf(slice.getX());
    bool isPrefix = slice.getStarts()[axis] == 0 && slice.getSteps()[axis] == 1;
    return isPrefix ? Axis(axis) : Axis();
  }

  Axis gathered(GatherOp gather) const {
    const Padding *indices = find(gather.getIndices()), *x = find(gather.getX());
    auto axis = static_cast<int64_t>(gather.getAxis());
    if (indices) {
      return x ? Axis() : Axis(axis + indices->axis);
    }
    if (x->axis == axis) {
      return {};
    }
    return x->axis < axis ? x->axis : x->axis - 1 + rankOf(gather.getIndices());
  }

  Axis gatheredTuples(GatherNdOp gather) const {
    const Padding *indices = find(gather.getIndices());
    bool rowsOfTuples = indices && !find(gather.getX()) && indices->axis < rankOf(gather.getIndices()) - 1 &&
                        static_cast<int64_t>(gather.getBatchDims()) <= 0;
    return rowsOfTuples ? Axis(indices->axis) : Axis();
  }

  /// All parts have the same padded rows, and the concatenation is along another dim.
  Axis joined(ConcatOp concat) const {
    Axis axis;
    for (Value part : concat.getInputs()) {
      const Padding *padding = find(part);
      if (!padding || (axis && *axis != padding->axis) || padding->axis == static_cast<int64_t>(concat.getAxis())) {
        return {};
      }
      axis = padding->axis;
    }
    return axis;
  }

  Axis multiplied(MatMulOp product) const {
    Value a = product.getA();
    bool rowsOfA = find(a) && !find(product.getB()) && !(product.getBias() && find(product.getBias())) &&
                   !product.getTransA() && axisOf(a) == rankOf(a) - 2;
    return rowsOfA ? Axis(rankOf(product.getY()) - 2) : Axis();
  }

  Axis reduced(ReduceOp reduce) const {
    int64_t axis = axisOf(reduce.getX());
    if (llvm::is_contained(reduce.getAxes(), axis)) {
      return {};
    }
    return reduce.getKeepDims() ? axis : axis - llvm::count_if(reduce.getAxes(), [&](int64_t d) { return d < axis; });
  }

  /// For an op that works along dim |other| and keeps or removes it.
  Axis without(Value x, int64_t other, bool keeps) const {
    int64_t axis = axisOf(x);
    return axis == other ? Axis() : Axis(!keeps && other < axis ? axis - 1 : axis);
  }

  const PaddedRows &rows;
  mlir::Operation *op;
};

llvm::Error rejected(mlir::Operation *op, const Padding &padding) {
  return unsupported(llvm::formatv(
      "it reads a tensor whose size along axis {0} is only known at run time: {1} produces at most this many rows, and "
      "'{2}' "
      "would read the padding rows; cut the network before it with --output_names and do the rest outside",
      padding.axis, padding.source, op->getName()));
}

/// Returns |count|, or the size of the result of |op| along |axis| if that is smaller because only the first rows are
/// kept.
Value countWithin(mlir::Operation *op, int64_t axis, Value count) {
  int64_t size = shapeOf(op->getResult(0))[axis];
  if (size == shapeOf(op->getOperand(0))[axis]) {
    return count;
  }
  mlir::OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value most = createScalar(builder, op->getLoc(), builder.getI64Type(), static_cast<double>(size));
  return MinOp::create(builder, op->getLoc(), count.getType(), count, most);
}

} // namespace

const Padding *PaddedRows::find(Value value) const {
  auto it = paddings.find(value);
  return it == paddings.end() ? nullptr : &it->second;
}

llvm::Error PaddedRows::propagate(mlir::Operation *op) {
  // Values yielded by a region would lose their padding.
  llvm::SmallVector<Value> read(op->getOperands());
  for (mlir::Region &region : op->getRegions()) {
    llvm::append_range(read, region.front().getTerminator()->getOperands());
  }
  const Padding *first = nullptr;
  for (Value value : read) {
    const Padding *padding = find(value);
    if (padding && first && padding->count != first->count) {
      return rejected(op, *padding);
    }
    first = padding ? padding : first;
  }
  if (!first) {
    return llvm::Error::success();
  }
  Axis axis = op->getNumRegions() == 0 && op->getNumResults() == 1 ? Rule(*this, op).apply() : Axis();
  if (!axis) {
    return rejected(op, *first);
  }
  Value count = mlir::isa<SliceOp>(op) ? countWithin(op, *axis, first->count) : first->count;
  Padding padding{*axis, count, first->source, first->filled && mlir::isa<ReshapeOp, TransposeOp, SliceOp>(op)};
  mark(op->getResult(0), std::move(padding));
  return llvm::Error::success();
}

} // namespace tessera::top::onnx_import
