//===- NarrowAttention.cpp - Rounds attention operands to bf16 ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/Passes.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/Transforms/RoundOperands.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::x86 {
#define GEN_PASS_DEF_NARROWATTENTIONPASS
#include "codegen/X86/Transforms/Passes.h.inc"
} // namespace tessera::x86

using namespace mlir;

namespace tessera::x86 {
namespace {

/// Returns true if the bf16 kernel supports |op|, and its only user is a map that rounds to bf16.
bool canNarrow(device::AttentionOp op) {
  auto isSingle = [](Type type) { return cast<RankedTensorType>(type).getElementType().isF32(); };
  auto map = op->hasOneUse() ? dyn_cast<device::MapOp>(*op->user_begin()) : device::MapOp();
  Type rounded = map ? device::roundedBy(map) : Type();
  return rounded && rounded.isBF16() && !op.getViews() && op.getEpilogue().empty() &&
         llvm::all_of(op->getOperandTypes(), isSingle) &&
         llvm::all_of(op->getOperands(), [](Value value) { return Shape(value).isDetermined(); }) &&
         isMultipleOf(Shape(op.getQ()).back(), 2);
}

class NarrowAttention : public impl::NarrowAttentionPassBase<NarrowAttention> {
public:
  using NarrowAttentionPassBase::NarrowAttentionPassBase;

  void runOnOperation() override {
    if (getOperation()->hasAttr(device::kExactAttr)) {
      return;
    }
    SmallVector<device::AttentionOp> ops;
    getOperation().walk([&](device::AttentionOp op) { ops.push_back(op); });
    for (device::AttentionOp op : llvm::make_filter_range(ops, canNarrow)) {
      for (unsigned i = 0; i < 3; ++i) {
        device::roundOperand(op->getOpOperand(i), BFloat16Type::get(op.getContext()));
      }
      ++numNarrow;
    }
  }
};

} // namespace
} // namespace tessera::x86
