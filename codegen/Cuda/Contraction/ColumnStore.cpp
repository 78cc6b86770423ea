//===- ColumnStore.cpp - Stores sums of neighbouring columns --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/Contraction/ColumnStore.h"

#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tessera::cuda {

ColumnStore::ColumnStore(BlockBuilder &b)
    : b(b), kb(b.kb), epilogue(b.kb, cast<device::EpilogueInterface>(*b.kb.op())) {
  auto conv = dyn_cast<device::ConvOp>(kb.op());
  bias = conv ? conv.getBias() : cast<device::MatMulOp>(kb.op()).getBias();
  dim = conv ? 1 : kb.resultType().getRank() - 1;
  columns = kb.resultType().getDimSize(dim);
}

void ColumnStore::setGroup(Value group, int64_t count) {
  columns /= count;
  first = b.mul(group, columns), isLast = b.equal(group, count - 1);
}

Value ColumnStore::addBias(Value sums, Value column, unsigned lanes) {
  if (!bias) {
    return sums;
  }
  Type element = getElementTypeOrSelf(bias.getType()), sum = getElementTypeOrSelf(sums.getType());
  unsigned alignment = lanes ? lanes * unsigned(device::elementBytes(element)) : 0;
  Value loaded = kb.loadElements(element, lanes, kb.operand(2), column, nullptr, alignment);
  loaded = kernels::convertElement(kb, loaded, element, sum);
  return sum.isF32() ? Value(arith::AddFOp::create(kb.b, sums, loaded))
                     : Value(arith::AddIOp::create(kb.b, sums, loaded));
}

/// Stores zeros for |lanes| columns from |column| on that are padding of a channel-blocked result. |lanes| 0: a single
/// column, stored as a scalar.
void ColumnStore::storeZeros(ArrayRef<Value> indices, Value column, int64_t lanes, int64_t end) {
  device::BlockedAttr layout = device::getBlockedLayout(kb.resultType());
  int64_t all = kb.resultType().getDimSize(dim), padding = layout ? llvm::alignTo(all, layout.getBlock()) - all : 0;
  if (std::min(columns + padding, end) <= columns) {
    return;
  }
  kb.ifThen(b.both(b.below(b.add(column, -columns), padding), isLast), [&] {
    Type element = kb.resultType().getElementType(), type = kernels::registerType(element);
    Value zeros = kb.zero(lanes ? Type(VectorType::get({lanes}, type)) : type);
    kb.storeElements(element, zeros, kb.result(), kernels::Strides(kb.resultType()).offset(kb, indices));
  });
}

void ColumnStore::storePadding(SmallVector<Value> indices, Value column, int64_t lanes, int64_t end) {
  if (columns % lanes == 0) {
    indices[dim] = place(column);
    return storeZeros(indices, column, lanes, end);
  }
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value own = b.add(column, lane);
    indices[dim] = place(own);
    storeZeros(indices, own, 0, end);
  }
}

void ColumnStore::store(SmallVector<Value> indices, Value column, Value sums, int64_t end) {
  int64_t lanes = cast<VectorType>(sums.getType()).getNumElements();
  if (columns % lanes == 0) {
    indices[dim] = place(column);
    auto storeAll = [&] {
      epilogue.store(addBias(sums, indices[dim], unsigned(lanes)), indices, dim, nullptr, false, /*aligned=*/true);
    };
    end == columns ? storeAll() : kb.ifThen(b.less(column, columns), storeAll);
    return storeZeros(indices, column, lanes, end);
  }
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value own = b.add(column, lane);
    indices[dim] = place(own);
    kb.ifThen(b.less(own, columns), [&] {
      Value sum = LLVM::ExtractElementOp::create(kb.b, sums, b.constant(lane));
      epilogue.store(addBias(sum, indices[dim], 0), indices, -1, nullptr);
    });
    storeZeros(indices, own, 0, end);
  }
}

} // namespace tessera::cuda
