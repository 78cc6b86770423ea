//===- PanelTile.cpp - Register tiles over panels of columns --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Native/PanelTile.h"

#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/MathApprox.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::native {

using namespace kernels;

static bool isFactor(Type type, Type sum) {
  if (sum.isF32()) {
    return type.isF32() || type.isF16() || type.isBF16();
  }
  return sum.isInteger(32) && (type.isInteger(8) || (type.isInteger(16) && !type.isUnsignedInteger()));
}

bool PanelTile::supports(KernelBuilder &kb, Type accumulator) {
  RankedTensorType types[] = {kb.operandType(0), kb.operandType(1), kb.resultType()};
  auto isPlain = [](RankedTensorType type) { return !device::isBlocked(type) && !countElements(type).is(0); };
  return !hasOpenSizes(kb.op()) && llvm::all_of(types, isPlain) &&
         llvm::all_of(ArrayRef(types, 2), [&](RankedTensorType type) {
           return isFactor(type.getElementType(), registerType(accumulator));
         });
}

Type PanelTile::panelElement() const { return sum.isF32() ? sum : kb.b.getI16Type(); }

int64_t PanelTile::panelBytes() const { return depth * kColumns * panelElement().getIntOrFloatBitWidth() / 8; }

void PanelTile::pack(Value values, Value at) {
  kb.store(convertElement(kb, values, column, panelElement()), kb.scratch(), at);
}

Value PanelTile::product(Value factor, Value columns, Value old) {
  Value factors = kb.splat(factor, kColumns);
  if (!this->sum.isF32()) { // both are widened as vectors, which instructions do that multiply 16-bit integers
    factors = arith::ExtSIOp::create(kb.b, old.getType(), factors);
    columns = arith::ExtSIOp::create(kb.b, old.getType(), columns);
  }
  return emitMultiplyAdd(kb, factors, columns, old);
}

SmallVector<Value> PanelTile::multiply(Value base, ArrayRef<Value> rows, Value panel, int64_t stride,
                                       SmallVector<Value> sums) {
  auto terms = VectorType::get({kColumns}, panelElement());
  // Adds |count| terms from |k| on; |count| is 0 for a single one.
  auto addTerms = [&](Value k, unsigned count, ValueRange old) {
    SmallVector<Value> factors, next(old);
    for (Value offset : rows) {
      factors.push_back(convertElement(kb, kb.loadElements(row, count, base, kb.add(offset, k)), row, panelElement()));
    }
    for (int64_t i = 0; i < std::max<int64_t>(1, count); ++i) {
      Value columns = kb.load(terms, panel, kb.mul(kb.add(k, i), stride));
      for (auto [factor, each] : llvm::zip_equal(factors, next)) {
        Value scalar = count ? Value(vector::ExtractOp::create(kb.b, factor, i)) : factor;
        each = product(scalar, columns, each);
      }
    }
    return next;
  };
  const int64_t step = 128 / panelElement().getIntOrFloatBitWidth(), whole = depth / step * step;
  sums = kb.forLoop(kb.constant(0), kb.constant(whole), step, sums,
                    [&](Value k, ValueRange old) { return addTerms(k, step, old); });
  return kb.forLoop(kb.constant(whole), kb.constant(depth), 1, sums,
                    [&](Value k, ValueRange old) { return addTerms(k, 0, old); });
}

FailureOr<KernelModule> emitPanelKernel(Operation *op, const VectorTarget &vectors, StringRef symbol,
                                        KernelFrame &frame) {
  KernelBuilder kb(vectors, op, symbol);
  auto matmul = dyn_cast<device::MatMulOp>(op);
  auto conv = dyn_cast<device::ConvOp>(op);
  bool isEmitted = (matmul && emitPanelMatMul(kb, matmul)) || (conv && emitPanelConv(kb, conv));
  if (!isEmitted && failed(emitLoops(kb))) {
    return failure();
  }
  return takeKernel(kb, frame);
}

} // namespace tessera::native
