//===- Scatter.cpp - Kernels that write by index --------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// One tile: updates may meet the same element, and they apply in order.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/Indexing.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/DeviceMoveOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

class ScatterEmitter {
public:
  ScatterEmitter(KernelBuilder &kb, device::ScatterOp op)
      : kb(kb), op(op), y(kb.resultType()), updates(kb.operandType(2)), element(y.getElementType()) {}

  void emit() {
    kb.forTiles(1, [&](Value) {
      copyRow(kb, element, y.getNumElements(), kb.operand(0), kb.constant(0), kb.result(), kb.constant(0));
      op.getNd() ? scatterSlices() : scatterElements();
    });
  }

private:
  void scatterElements() {
    int64_t axis = op.getAxis();
    kb.forLoop(0, updates.getNumElements(), 1, [&](Value item) {
      SmallVector<Value> at = delinearize(kb, item, updates.getShape());
      at[axis] = loadIndex(kb, 1, item, y.getDimSize(axis));
      update(Strides(y).offset(kb, at), item);
    });
  }

  void scatterSlices() {
    RankedTensorType indices = kb.operandType(1);
    int64_t tuple = indices.getShape().back();
    int64_t inner = product(y.getShape().drop_front(tuple));
    int64_t count = indices.getNumElements() / std::max<int64_t>(1, tuple);
    Strides strides(y);
    kb.forLoop(0, count, 1, [&](Value item) {
      Value offset = tupleOffset(kb, 1, kb.mul(item, tuple), tuple, y.getShape(), strides.dims);
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
};

} // namespace

void attachScatterModels(MLIRContext *context) { device::ScatterOp::attachInterface<ScatterModel>(*context); }

} // namespace tessera::kernels
