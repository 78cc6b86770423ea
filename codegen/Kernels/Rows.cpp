//===- Rows.cpp - Vectorised iteration over contiguous rows ---------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {

SmallVector<Value> overRow(KernelBuilder &kb, Dim size, unsigned lanes, ArrayRef<Value> carried,
                           function_ref<SmallVector<Value>(Value, Value, ValueRange)> body) {
  Dim rest = mod(size, lanes), whole = size - rest;
  SmallVector<Value> values = kb.forLoop(kb.constant(0), kb.index(whole), lanes, carried,
                                         [&](Value i, ValueRange old) { return body(i, Value(), old); });
  auto last = [&] { return body(kb.index(whole), kb.maskBelow(lanes, kb.index(rest)), values); };
  if (rest.isKnown()) {
    return rest.is(0) ? values : last();
  }
  Value hasRest = kb.less(kb.constant(0), kb.index(rest));
  if (carried.empty()) {
    kb.ifThen(hasRest, [&] { last(); });
    return values;
  }
  return kb.ifElseAll(hasRest, last, values);
}

void overRow(KernelBuilder &kb, Dim size, unsigned lanes, function_ref<void(Value, Value)> body) {
  overRow(kb, size, lanes, {}, [&](Value i, Value mask, ValueRange) {
    body(i, mask);
    return SmallVector<Value>();
  });
}

int64_t itemsPerTile(const KernelBuilder &kb, Dim count, Dim workPerItem, int64_t workPerTile) {
  if (kb.target.tileIsThread) {
    return 1;
  }
  int64_t perTile = std::max<int64_t>(1, workPerTile / std::max<int64_t>(1, likelyOf(workPerItem)));
  return std::max<int64_t>(perTile, llvm::divideCeil(likelyOf(count), 256)); // more tiles would only cost time
}

void forItems(KernelBuilder &kb, Dim count, Dim workPerItem, int64_t workPerTile, function_ref<void(Value)> body) {
  int64_t perTile = itemsPerTile(kb, count, workPerItem, workPerTile);
  kb.forTiles(max(1, ceilDiv(count, perTile)), [&](Value tile) {
    Value first = kb.mul(tile, perTile);
    kb.forLoop(first, kb.min(kb.add(first, perTile), kb.index(count)), 1, body);
  });
}

void forRows(KernelBuilder &kb, Dim count, Dim workPerRow, int64_t workPerTile, Type element, unsigned &lanes,
             function_ref<void(Value)> body) {
  if (!kb.target.shuffle || element.getIntOrFloatBitWidth() != 32 || count.is(0)) {
    return forItems(kb, count, workPerRow, workPerTile, body);
  }
  lanes = kRowThreads;
  kb.forSharedRows(count, body);
}

LogicalResult requireRowMajor(Operation *op) {
  auto isBlocked = [](Type type) { return device::isBlocked(type); };
  if (llvm::any_of(op->getOperandTypes(), isBlocked) || llvm::any_of(op->getResultTypes(), isBlocked)) {
    return op->emitError("internal error: the kernel of '") << op->getName() << "' needs row-major tensors";
  }
  return success();
}

Value keepActive(KernelBuilder &kb, Value mask, Value value, Value other) {
  return mask ? Value(arith::SelectOp::create(kb.b, mask, value, other)) : value;
}

} // namespace tessera::kernels
