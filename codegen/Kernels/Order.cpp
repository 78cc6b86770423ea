//===- Order.cpp - Kernels that depend on element order -------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// ArgMax, TopK and running sums along one axis of [outer, axis, inner].
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/Order.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Requantise.h"
#include "codegen/Kernels/Rows.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tessera::kernels {

AxisView::AxisView(RankedTensorType type, int64_t dim)
    : outer(multiply(ArrayRef(Shape(type).dims()).take_front(dim))), axis(Shape(type)[dim]),
      inner(countElements(Shape(type).dropFront(dim + 1))) {}

Value comesBefore(KernelBuilder &kb, Type elementType, Value x, Value y, bool descending) {
  ImplicitLocOpBuilder &b = kb.b;
  if (!isa<FloatType>(getElementTypeOrSelf(x))) {
    bool isUnsigned = elementType.isUnsignedInteger() || elementType.isInteger(1);
    auto predicate = descending ? (isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt)
                                : (isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt);
    return arith::CmpIOp::create(b, predicate, x, y);
  }
  Value better = arith::CmpFOp::create(b, descending ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT, x, y);
  Value xNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x),
        yNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, y, y);
  Value numberBeforeNan = descending ? Value(arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, xNan, yNan))
                                     : Value(arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, yNan, xNan));
  return arith::OrIOp::create(b, better, numberBeforeNan);
}

Value isBetter(KernelBuilder &kb, Type element, Value value, Value old, bool min, bool orEqual) {
  if (isa<FloatType>(getElementTypeOrSelf(value))) {
    auto predicate = min ? (orEqual ? arith::CmpFPredicate::OLE : arith::CmpFPredicate::OLT)
                         : (orEqual ? arith::CmpFPredicate::OGE : arith::CmpFPredicate::OGT);
    return arith::CmpFOp::create(kb.b, predicate, value, old);
  }
  using P = arith::CmpIPredicate;
  bool isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
  P strict = min ? (isUnsigned ? P::ult : P::slt) : (isUnsigned ? P::ugt : P::sgt);
  P weak = min ? (isUnsigned ? P::ule : P::sle) : (isUnsigned ? P::uge : P::sge);
  return arith::CmpIOp::create(kb.b, orEqual ? weak : strict, value, old);
}

Value bitsOfMask(KernelBuilder &kb, Value mask) {
  auto lanes = cast<VectorType>(mask.getType()).getNumElements();
  auto type = VectorType::get({1}, kb.b.getIntegerType(lanes));
  return vector::ExtractOp::create(kb.b, vector::BitCastOp::create(kb.b, type, mask), int64_t(0));
}

namespace {

/// Emits all columns of |view|; a CPU processes neighbouring columns together if their number is constant. Calls
/// |emit|(outer, first column, lanes), with lanes 0 for a single column. |workPerTile| / |workPerColumn| is about the
/// number of columns per tile.
void forColumns(KernelBuilder &kb, const AxisView &view, Dim workPerColumn, int64_t workPerTile,
                function_ref<void(Value outer, Value column, unsigned lanes)> emit) {
  constexpr int64_t kMostLanes = 16, kColumnsAtOnce = 4; // a vector of lanes takes about as long as this many columns
  if (!view.inner.isKnown()) {
    return forItems(kb, view.lines(), workPerColumn, workPerTile, [&](Value item) {
      SmallVector<Value> at = delinearize(kb, item, {view.outer, view.inner});
      emit(at[0], at[1], 0);
    });
  }
  int64_t inner = view.inner.value();
  unsigned lanes = kb.target.tileIsThread || inner < 2 ? 0 : llvm::bit_floor(uint64_t(std::min(kMostLanes, inner)));
  int64_t runs = lanes ? inner / lanes : 0, rest = inner - runs * lanes;
  Dim work = lanes ? std::min<int64_t>(lanes, kColumnsAtOnce) * workPerColumn : workPerColumn;
  forItems(kb, view.outer * (runs + rest), work, workPerTile, [&](Value item) {
    SmallVector<Value> at = delinearize(kb, item, {view.outer, Dim(runs + rest)});
    auto emitRun = [&] { emit(at[0], kb.mul(at[1], lanes), lanes); };
    auto emitColumn = [&] { emit(at[0], runs ? kb.add(at[1], runs * lanes - runs) : at[1], 0); };
    if (runs == 0 || rest == 0) {
      return runs ? emitRun() : emitColumn();
    }
    Value isRun = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::slt, at[1], kb.constant(runs));
    kb.ifThen(isRun, emitRun);
    Value isColumn = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::sge, at[1], kb.constant(runs));
    kb.ifThen(isColumn, emitColumn);
  });
}

/// Returns |type| for one column (|lanes| 0) or a vector of |lanes| columns.
Type ofColumns(Type type, unsigned lanes) { return lanes ? Type(VectorType::get({int64_t(lanes)}, type)) : type; }

/// ArgMax and ArgMin along contiguous rows: the best value of a row, then the place of the first or last element that
/// equals it. A NaN is only the result if it is the row's first element, since nothing is better than that.
class ContiguousArg {
public:
  ContiguousArg(KernelBuilder &kb, device::ArgReduceOp op)
      : kb(kb), element(kb.operandType(0).getElementType()), view(kb.operandType(0), op.getAxis()), min(op.getMin()),
        last(op.getSelectLast()), lanes(maxOf(view.axis) < 256 ? kFewLanes : 4 * kFewLanes) {}

  bool fits() const {
    return !kb.target.tileIsThread && view.inner.is(1) && view.axis.isKnown() && view.axis.value() >= 2 * kFewLanes;
  }

  void emit() {
    forItems(kb, view.outer, view.axis.value() / 4, 16384, [&](Value item) {
      base = kb.mul(item, view.axis);
      Value place = placeOf(bestValue()), first = kb.loadElements(element, 0, kb.operand(0), base);
      if (isa<FloatType>(first.getType())) {
        Value isNan = arith::CmpFOp::create(kb.b, arith::CmpFPredicate::UNO, first, first);
        place = arith::SelectOp::create(kb.b, isNan, kb.constant(0), place);
      }
      kb.store(place, kb.result(), item);
    });
  }

private:
  static constexpr int64_t kFewLanes = 16;

  Value load(Value i, Value mask) { return kb.loadElements(element, lanes, kb.operand(0), kb.add(base, i), mask); }

  /// The best number of the row.
  Value bestValue() {
    auto better = [&](Value value, Value old) {
      return Value(arith::SelectOp::create(kb.b, isBetter(kb, element, value, old, min, false), value, old));
    };
    Value none = lowestValue(kb, element, VectorType::get({lanes}, registerType(element)), min);
    Value best = overRow(kb, view.axis, lanes, none, [&](Value i, Value mask, ValueRange old) {
      return SmallVector<Value>{better(keepActive(kb, mask, load(i, mask), none), old[0])};
    })[0];
    return reduceLanes(kb, best, better);
  }

  /// The place of |best|, or 0 if no element equals it.
  Value placeOf(Value best) {
    Value wanted = kb.splat(best, lanes), place = kb.constant(0);
    int64_t whole = view.axis.value() / lanes, tail = view.axis.value() % lanes;
    auto visit = [&](Value i, Value mask, Value old) {
      Value bits = bitsOfMask(kb, isEqual(load(i, mask), wanted, mask)), zero = kb.zero(bits.getType());
      Value isDefined = arith::ConstantOp::create(kb.b, kb.b.getBoolAttr(false)); // for 0
      Value count = emitIntrinsic(kb, last ? "llvm.ctlz" : "llvm.cttz", bits.getType(), {bits, isDefined});
      count = count.getType().isInteger(64) ? count : Value(arith::ExtUIOp::create(kb.b, kb.b.getI64Type(), count));
      Value found = kb.add(i, last ? kb.sub(kb.constant(lanes - 1), count) : count);
      Value isAny = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ne, bits, zero);
      return Value(arith::SelectOp::create(kb.b, isAny, found, old));
    };
    auto visitTail = [&] {
      place = tail ? visit(kb.constant(whole * lanes), kb.maskBelow(lanes, kb.constant(tail)), place) : place;
    };
    if (!last) {
      visitTail();
    }
    place = kb.forLoop(kb.constant(0), kb.constant(whole), 1, place, [&](Value step, ValueRange old) {
      Value vector = last ? step : kb.sub(kb.constant(whole - 1), step); // what is visited last counts
      return SmallVector<Value>{visit(kb.mul(vector, lanes), Value(), old[0])};
    })[0];
    if (last) {
      visitTail();
    }
    return place;
  }

  Value isEqual(Value x, Value y, Value mask) {
    Value equal = isa<FloatType>(registerType(element))
                      ? Value(arith::CmpFOp::create(kb.b, arith::CmpFPredicate::OEQ, x, y))
                      : Value(arith::CmpIOp::create(kb.b, arith::CmpIPredicate::eq, x, y));
    return mask ? Value(arith::AndIOp::create(kb.b, equal, mask)) : equal;
  }

  KernelBuilder &kb;
  Type element;
  AxisView view;
  bool min, last;
  int64_t lanes;
  Value base; ///< the row's first element
};

struct ArgReduceModel : KernelInterface::ExternalModel<ArgReduceModel, device::ArgReduceOp> {
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    if (failed(requireRowMajor(op))) {
      return failure();
    }
    auto arg = cast<device::ArgReduceOp>(op);
    if (emitSharedArgReduce(kb, arg)) {
      return success();
    }
    if (ContiguousArg contiguous(kb, arg); contiguous.fits()) {
      contiguous.emit();
      return success();
    }
    Type element = kb.operandType(0).getElementType();
    AxisView view(kb.operandType(0), arg.getAxis());
    forColumns(kb, view, view.axis, 16384, [&](Value outer, Value column, unsigned lanes) {
      Value base = kb.add(kb.mul(outer, view.axis * view.inner), column);
      auto load = [&](Value k) {
        return kb.loadElements(element, lanes, kb.operand(0), kb.add(base, kb.mul(k, view.inner)));
      };
      SmallVector<Value> best = {load(kb.constant(0)), kb.zero(ofColumns(kb.b.getI64Type(), lanes))};
      best = kb.forLoop(kb.constant(1), kb.index(view.axis), 1, best, [&](Value k, ValueRange old) {
        Value value = load(k), index = lanes ? kb.splat(k, lanes) : k;
        Value better = isBetter(kb, element, value, old[0], arg.getMin(), arg.getSelectLast());
        return SmallVector<Value>{arith::SelectOp::create(kb.b, better, value, old[0]),
                                  arith::SelectOp::create(kb.b, better, index, old[1])};
      });
      kb.store(best[1], kb.result(), kb.add(kb.mul(outer, view.inner), column));
    });
    return success();
  }

  bool acceptsOpenSizes(Operation *op) const {
    Shape x = op->getOperand(0);
    return minOf(x[cast<device::ArgReduceOp>(op).getAxis()]) > 0;
  }
};

struct TopKModel : KernelInterface::ExternalModel<TopKModel, device::TopKOp> {
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    if (failed(requireRowMajor(op))) {
      return failure();
    }
    auto topk = cast<device::TopKOp>(op);
    if (!emitRankedTopK(kb, topk)) {
      emitSortedTopK(kb, topk);
    }
    return success();
  }

  bool acceptsOpenSizes(Operation *) const { return true; }
};

struct CumSumModel : KernelInterface::ExternalModel<CumSumModel, device::CumSumOp> {
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    if (failed(requireRowMajor(op))) {
      return failure();
    }
    auto cumsum = cast<device::CumSumOp>(op);
    if (emitSharedCumSum(kb, cumsum)) {
      return success();
    }
    Type element = kb.operandType(0).getElementType();
    Type type = registerType(element);
    AxisView view(kb.operandType(0), cumsum.getAxis());
    auto [outer, axis, inner] = view;
    forColumns(kb, view, axis, 8192, [&, axis = axis, inner = inner](Value outer, Value column, unsigned lanes) {
      Value base = kb.add(kb.mul(outer, axis * inner), column), none = kb.zero(ofColumns(type, lanes));
      kb.forLoop(kb.constant(0), kb.index(axis), 1, none, [&](Value step, ValueRange old) {
        Value k = cumsum.getReverse() ? kb.sub(kb.index(axis - 1), step) : step;
        Value offset = kb.add(base, kb.mul(k, inner));
        Value value = kb.loadElements(element, lanes, kb.operand(0), offset);
        Value sum = isa<FloatType>(type) ? Value(arith::AddFOp::create(kb.b, old[0], value))
                                         : Value(arith::AddIOp::create(kb.b, old[0], value));
        kb.storeElements(element, cumsum.getExclusive() ? old[0] : sum, kb.result(), offset);
        return SmallVector<Value>{sum};
      });
    });
    return success();
  }

  bool acceptsOpenSizes(Operation *op) const { return sameSizes(op->getOperand(0), op->getResult(0)); }
};

} // namespace

void attachOrderModels(MLIRContext *context) {
  device::ArgReduceOp::attachInterface<ArgReduceModel>(*context);
  device::TopKOp::attachInterface<TopKModel>(*context);
  device::CumSumOp::attachInterface<CumSumModel>(*context);
}

} // namespace tessera::kernels
