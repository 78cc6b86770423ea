//===- Norm.cpp - Layer and RMS normalisation kernels ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/DeviceComputeOps.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

/// Processes row by row: the mean, the mean of squared differences from it, then the result.
class NormEmitter {
public:
  NormEmitter(KernelBuilder &kb, device::NormOp op)
      : kb(kb), op(op), element(kb.operandType(0).getElementType()), type(registerType(element)) {
    SmallVector<Dim> shape = Shape(kb.operandType(0)).dims();
    rows = multiply(ArrayRef(shape).take_front(op.getAxis()));
    row = multiply(ArrayRef(shape).drop_front(op.getAxis()));
    lanes = 2 * kb.target.lanes(type.getIntOrFloatBitWidth());
    if (likelyOf(row) < lanes) {
      lanes /= 2;
    }
    lanes = kb.exact ? kExactLanes : lanes;
  }

  void emit() {
    forRows(kb, rows, row, 8192, type, lanes, [&](Value item) { emitRow(kb.mul(item, row)); });
  }

private:
  Type vectorType() { return kb.lanesOf(type, lanes); }
  Value load(Value offset, Value mask) { return kb.loadElements(element, lanes, kb.operand(0), offset, mask); }

  /// Returns the number of elements of a row as a float.
  Value count() {
    return row.isKnown() ? kb.floatConstant(type, double(row.value()))
                         : Value(arith::SIToFPOp::create(kb.b, type, kb.index(row)));
  }

  Value meanOver(Value base, function_ref<Value(Value offset, Value mask, Value sum)> accumulate) {
    Value zeros = kb.zero(vectorType());
    Value sum = overRow(kb, row, lanes, zeros, [&](Value i, Value mask, ValueRange old) {
      return SmallVector<Value>{accumulate(kb.add(base, i), mask, old[0])};
    })[0];
    Value total = reduceLanes(kb, sum, [&](Value a, Value b) { return arith::AddFOp::create(kb.b, a, b); });
    return arith::DivFOp::create(kb.b, total, count());
  }

  void emitRow(Value base) {
    Value mean;
    if (!op.getRms()) {
      mean = kb.splat(meanOver(base,
                               [&](Value offset, Value mask, Value sum) -> Value {
                                 return arith::AddFOp::create(kb.b, sum, load(offset, mask));
                               }),
                      lanes);
    }
    Value zeros = kb.zero(vectorType());
    Value variance = meanOver(base, [&](Value offset, Value mask, Value sum) {
      Value x = load(offset, mask);
      if (mean) {
        x = keepActive(kb, mask, arith::SubFOp::create(kb.b, x, mean), zeros);
      }
      return emitFma(kb, x, x, sum);
    });
    Value deviation = math::SqrtOp::create(
        kb.b, arith::AddFOp::create(kb.b, variance, kb.floatConstant(type, op.getEpsilon().convertToDouble())));
    Value factor = kb.splat(arith::DivFOp::create(kb.b, kb.floatConstant(type, 1.0), deviation), lanes);
    auto compute = [&](Value i, Value mask) {
      Value x = load(kb.add(base, i), mask);
      if (mean) {
        x = arith::SubFOp::create(kb.b, x, mean);
      }
      Value value = arith::MulFOp::create(kb.b, x, factor);
      return applyEpilogue(kb, op, applyAffine(value, i, mask));
    };
    mapRow(kb, row, lanes, compute, [&](Value i, Value mask, Value value) {
      kb.storeElements(kb.resultType().getElementType(), value, kb.result(), kb.add(base, i), mask);
    });
  }

  Value applyAffine(Value value, Value i, Value mask) {
    auto parameter = [&](unsigned index) {
      return kb.loadElements(kb.operandType(index).getElementType(), lanes, kb.operand(index), i, mask);
    };
    unsigned next = 1;
    Value scale = op.getScale() ? parameter(next++) : Value();
    Value bias = op.getBias() ? parameter(next) : Value();
    if (scale && bias) {
      return emitFma(kb, value, scale, bias);
    }
    if (scale) {
      return arith::MulFOp::create(kb.b, value, scale);
    }
    return bias ? Value(arith::AddFOp::create(kb.b, value, bias)) : value;
  }

  KernelBuilder &kb;
  device::NormOp op;
  Type element, type;
  Dim rows = 1, row = 1;
  unsigned lanes;
};

struct NormModel : KernelInterface::ExternalModel<NormModel, device::NormOp> {
  bool acceptsOpenSizes(Operation *op) const {
    auto norm = cast<device::NormOp>(op);
    SmallVector<Dim> sizes = Shape(op->getOperand(0)).dims();
    Dim row = multiply(ArrayRef(sizes).drop_front(norm.getAxis()));
    auto isOfRow = [&](Value value) { return !value || sameSize(countElements(value), row); };
    return sameSizes(op->getOperand(0), op->getResult(0)) && isOfRow(norm.getScale()) && isOfRow(norm.getBias()) &&
           cast<device::EpilogueInterface>(op).getEpilogueOperands().empty();
  }
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    if (failed(requireRowMajor(op))) {
      return failure();
    }
    NormEmitter(kb, cast<device::NormOp>(op)).emit();
    return success();
  }
};

} // namespace

void attachNormModels(MLIRContext *context) { device::NormOp::attachInterface<NormModel>(*context); }

} // namespace tessera::kernels
