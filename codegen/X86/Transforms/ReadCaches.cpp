//===- ReadCaches.cpp - Attention over caches of narrow types -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/Passes.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/CacheMatrices.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Iterators.h"

namespace tessera::x86 {
#define GEN_PASS_DEF_READCACHESPASS
#include "codegen/X86/Transforms/Passes.h.inc"
} // namespace tessera::x86

using namespace mlir;

namespace tessera::x86 {
namespace {

/// Returns the input of |map| if the map only converts bf16 to f32; otherwise null.
Value widenedBy(device::MapOp map) {
  Block &body = map.getBody().front();
  auto widen = dyn_cast<arith::ExtFOp>(body.front());
  bool isOnly = widen && widen->getNextNode() == body.getTerminator() && map.getInputs().size() == 1 &&
                body.getTerminator()->getOperand(0) == widen.getOut() && widen.getType().isF32();
  return isOnly && typeOf(map.getInputs()[0]).getElementType().isBF16() ? map.getInputs()[0] : Value();
}

/// Returns the state of bf16 that |matrices|, k or v of an attention, are the f32 of; null if they are not.
Value cachedRows(OpBuilder &builder, Value matrices) {
  auto map = device::withoutReshapes(matrices).getDefiningOp<device::MapOp>();
  Value narrow = map ? widenedBy(map) : Value();
  return narrow ? device::wholeMatrices(builder, narrow, typeOf(matrices)) : Value();
}

class ReadCaches : public impl::ReadCachesPassBase<ReadCaches> {
public:
  using ReadCachesPassBase::ReadCachesPassBase;

  void runOnOperation() override {
    if (getOperation()->hasAttr(device::kExactAttr)) {
      return;
    }
    SmallVector<device::AttentionOp> ops;
    getOperation().walk([&](device::AttentionOp op) { ops.push_back(op); });
    for (device::AttentionOp op : ops) {
      readInPlace(op);
    }
    getOperation().walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) { // the conversions
      if (isa<device::MapOp, device::CopyOp, device::ReshapeOp>(op) && op->use_empty()) {
        op->erase();
      }
    });
  }

private:
  void readInPlace(device::AttentionOp op) {
    Dim keys = op.viewSizes(1).end()[-2];
    if (op.getViews() || op.getKeys() || !keys.isSymbolic() || !typeOf(op.getQ()).getElementType().isF32()) {
      return;
    }
    OpBuilder builder(op);
    Value k = cachedRows(builder, op.getK()), v = cachedRows(builder, op.getV());
    if (!k || !v) {
      return;
    }
    op.getKMutable().set(k);
    op.getVMutable().set(v);
    op.setKeysAttr(keys.expression());
    ++numInPlace;
  }
};

} // namespace
} // namespace tessera::x86
