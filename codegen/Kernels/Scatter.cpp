//===- Scatter.cpp - Kernels that write by index --------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// In place, the operand and the result are the same memory, so only the updates are written.
//
// Uses one tile, because updates may hit the same element and apply in order. If each tile is a thread, each element of
// the result has a thread, which searches for the updates of its element.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/Indexing.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/DeviceMoveOps.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

class ScatterEmitter {
public:
  ScatterEmitter(KernelBuilder &kb, device::ScatterOp op)
      : kb(kb), op(op), y(kb.resultType()), updates(kb.operandType(2)), element(y.getElementType()) {}

  void emit() {
    if (op.getInPlace()) {
      return kb.forTiles(1, [&](Value) { op.getNd() ? scatterSlices() : scatterElements(); });
    }
    if (int64_t count = countUpdates(); kb.target.tileIsThread && count <= kMostUpdates && hasKnownSizes()) {
      element = op.getReduction() == "none" ? storageElement(kb, element) : element; // pure moves keep all bits
      return forItems(kb, numElements(y), 1, 1, [&](Value item) {
        Value value = kb.loadElements(element, 0, kb.operand(0), item);
        kb.storeElements(element, op.getNd() ? updatedSlice(item, value, count) : updatedElement(item, value, count),
                         kb.result(), item);
      });
    }
    kb.forTiles(1, [&](Value) {
      copyRow(kb, element, countElements(y), kb.operand(0), kb.constant(0), kb.result(), kb.constant(0));
      op.getNd() ? scatterSlices() : scatterElements();
    });
  }

private:
  /// Maximum number of updates through which each element's thread searches; with more, a single thread applies all
  /// updates.
  static constexpr int64_t kMostUpdates = 4096;

  /// Returns true if all sizes are numbers and there are results.
  bool hasKnownSizes() const { return !hasOpenSizes(op) && numElements(y) > 0; }

  /// Returns the updates through which each element's thread searches; more than the maximum if they are not known.
  int64_t countUpdates() {
    int64_t tuple = op.getNd() ? Shape(kb.operandType(1)).back().value() : 0;
    Dim count = !op.getNd() ? Shape(updates)[op.getAxis()]
                : tuple > 0 ? countElements(Shape(kb.operandType(1)).dropBack())
                            : Dim(kMostUpdates + 1);
    return count.isKnown() ? count.value() : kMostUpdates + 1;
  }

  /// Returns element |item| of the result, initially |value|, after |count| updates along the axis.
  Value updatedElement(Value item, Value value, int64_t count) {
    int64_t axis = op.getAxis();
    SmallVector<Value> at = delinearize(kb, item, Shape(y).values());
    Value inside = arith::ConstantOp::create(kb.b, kb.b.getBoolAttr(true)), target = at[axis];
    for (int64_t d = 0; d < y.getRank(); ++d) {
      if (d != axis && Shape(updates)[d].value() < Shape(y)[d].value()) {
        inside = arith::AndIOp::create(kb.b, inside, kb.less(at[d], kb.constant(Shape(updates)[d].value())));
      }
    }
    auto walk = [&] {
      return kb.forLoop(kb.constant(0), kb.constant(count), 1, value, [&](Value k, ValueRange old) {
        at[axis] = k;
        Value from = Strides(updates).offset(kb, at);
        return SmallVector<Value>{updateIf(loadIndex(kb, 1, from, Shape(y)[axis].value()), target, from, old[0])};
      })[0];
    };
    return kb.ifElse(inside, walk, value);
  }

  /// Returns element |item| of the result, initially |value|, after |count| updates of slices.
  Value updatedSlice(Value item, Value value, int64_t count) {
    int64_t tuple = Shape(kb.operandType(1)).back().value(), inner = numElements(Shape(y).dropFront(tuple));
    Strides strides(y);
    Value place = kb.rem(item, inner), target = kb.sub(item, place);
    return kb.forLoop(kb.constant(0), kb.constant(count), 1, value, [&](Value k, ValueRange old) {
      Value offset = tupleOffset(kb, 1, kb.mul(k, tuple), tuple, Shape(y).dims(), strides.dims);
      return SmallVector<Value>{updateIf(offset, target, kb.add(kb.mul(k, inner), place), old[0])};
    })[0];
  }

  /// Returns |value| after update |from|, if |offset|, the element that it updates, is |target|.
  Value updateIf(Value offset, Value target, Value from, Value value) {
    Value isMine = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::eq, offset, target);
    auto updated = [&] {
      Value update = kb.loadElements(element, 0, kb.operand(2), from);
      return op.getReduction() == "none" ? update : combine(value, update);
    };
    return kb.ifElse(isMine, updated, value);
  }

  void scatterElements() {
    int64_t axis = op.getAxis();
    kb.forLoop(0, countElements(updates), 1, [&](Value item) {
      SmallVector<Value> at = delinearize(kb, item, Shape(updates).dims());
      at[axis] = loadIndex(kb, 1, item, Shape(y)[axis]);
      update(Strides(y).offset(kb, at), item);
    });
  }

  void scatterSlices() {
    RankedTensorType indices = kb.operandType(1);
    int64_t tuple = Shape(indices).back().value();
    Dim inner = countElements(Shape(y).dropFront(tuple));
    Dim count = tuple > 0 ? countElements(Shape(indices).dropBack()) : Dim(0);
    Strides strides(y);
    kb.forLoop(0, count, 1, [&](Value item) {
      Value offset = tupleOffset(kb, 1, kb.mul(item, tuple), tuple, Shape(y).dims(), strides.dims);
      Value from = kb.mul(item, inner);
      if (op.getReduction() == "none") {
        return copyRow(kb, element, inner, kb.operand(2), from, kb.result(), offset);
      }
      kb.forLoop(0, inner, 1, [&](Value i) { update(kb.add(offset, i), kb.add(from, i)); });
    });
  }

  void update(Value to, Value from) {
    Value value = kb.loadElements(element, 0, kb.operand(2), from);
    if (op.getReduction() != "none") {
      value = combine(kb.loadElements(element, 0, kb.result(), to), value);
    }
    kb.storeElements(element, value, kb.result(), to);
  }

  Value combine(Value old, Value value) {
    StringRef reduction = op.getReduction();
    bool isFloat = isa<FloatType>(value.getType());
    if (reduction == "add") {
      return isFloat ? Value(arith::AddFOp::create(kb.b, old, value)) : Value(arith::AddIOp::create(kb.b, old, value));
    }
    if (reduction == "mul") {
      return isFloat ? Value(arith::MulFOp::create(kb.b, old, value)) : Value(arith::MulIOp::create(kb.b, old, value));
    }
    return emitExtremum(kb, element, old, value, /*smallest=*/reduction == "min", kb.exact);
  }

  KernelBuilder &kb;
  device::ScatterOp op;
  RankedTensorType y, updates;
  Type element;
};

struct ScatterModel : KernelInterface::ExternalModel<ScatterModel, device::ScatterOp> {
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    if (failed(requireRowMajor(op))) {
      return failure();
    }
    ScatterEmitter(kb, cast<device::ScatterOp>(op)).emit();
    return success();
  }

  bool acceptsOpenSizes(Operation *op) const {
    Shape x = op->getOperand(0), indices = op->getOperand(1), updates = op->getOperand(2);
    auto scatter = cast<device::ScatterOp>(op);
    if (!sameSizes(x, op->getResult(0))) {
      return false;
    }
    if (!scatter.getNd()) {
      return sameSizes(indices, updates);
    }
    if (!indices.back().isKnown()) {
      return false;
    }
    Dim inner = countElements(x.dropFront(size_t(indices.back().value())));
    return sameSize(countElements(updates), countElements(indices.dropBack()) * inner);
  }
};

} // namespace

void attachScatterModels(MLIRContext *context) { device::ScatterOp::attachInterface<ScatterModel>(*context); }

} // namespace tessera::kernels
