//===- Micro.cpp - Selects the micro-kernel of an op ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Micro.h"

#include "codegen/Kernels/RowMatMul.h"
#include "codegen/Kernels/Rows.h"
#include "device_dialect/IR/DeviceBlockOps.h"
#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/Exact.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

bool isMicro(device::MatMulOp op, const X86Target &target) {
  // Without FMA instructions the register tile does not fuse, which ordered sums require.
  bool fuses = target.hasFma() || !device::isOrderedContraction(op);
  return op.getPacking() || (fuses && hasMicroMatMul(op));
}

bool isOfFloats(device::MatMulOp op) {
  return llvm::all_of(op->getOperandTypes(), [](Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); });
}

/// Returns true if the f32 or bf16 micro-kernel computes |op|. The order of its fused sums depends on the register
/// tile, so exact functions do not use it. If q is bf16, too, pairs are multiplied; otherwise k and v become f32.
bool isMicro(device::AttentionOp op, const X86KernelBuilder &kb) {
  auto are = [](ValueRange values, auto isElement) {
    return llvm::all_of(values.getTypes(),
                        [&](Type type) { return isElement(cast<RankedTensorType>(type).getElementType()); });
  };
  auto isSingle = [](Type element) { return element.isF32(); };
  ValueRange operands = op->getOperands();
  bool pairs = kb.x86.bf16 && isMultipleOf(Shape(op.getQ()).back(), 2) &&
               are(operands.take_front(3), [](Type element) { return element.isBF16(); }) &&
               are(operands.drop_front(3), isSingle);
  auto isCached = [](Type element) { return element.isF32() || element.isBF16(); };
  bool widens = are(operands.take_front(1), isSingle) && are(operands.slice(1, 2), isCached) &&
                are(operands.drop_front(3), isSingle);
  return !kb.exact && !op.getViews() && op.getEpilogue().empty() && (pairs || widens) && are(op.getY(), isSingle);
}

/// Returns true if the micro-kernel of integers computes |op|; the order of their sums does not matter.
bool isOfBytes(device::AttentionOp op) {
  auto isEmpty = [](Value value) { return countElements(value).is(0); };
  return op.isOfIntegers() && llvm::none_of(op->getOperands(), isEmpty) && !isEmpty(op.getY());
}

} // namespace

FailureOr<bool> emitMicroKernel(Operation *op, X86KernelBuilder &kb) {
  if (auto conv = dyn_cast<device::ConvOp>(op); conv && conv.getPacking()) {
    return failed(emitMicroConv(conv, kb)) ? FailureOr<bool>(failure()) : true;
  }
  if (auto matmul = dyn_cast<device::MatMulOp>(op); matmul && matmul.getPacking() && kernels::hasOpenSizes(op)) {
    return failed(emitMicroMatMul(matmul, kb)) ? FailureOr<bool>(failure()) : true;
  }
  if (auto recurrent = dyn_cast<device::RecurrentOp>(op); recurrent && recurrent.getPacking()) {
    bool fails = failed(requireRowMajor(op)) || failed(emitMicroRecurrent(recurrent, kb));
    return fails ? FailureOr<bool>(failure()) : true;
  }
  if (auto matmul = dyn_cast<device::BlockMatMulOp>(op); matmul && matmul.getPacking()) {
    return failed(emitMicroBlockMatMul(matmul, kb)) ? FailureOr<bool>(failure()) : true;
  }
  auto attention = dyn_cast<device::AttentionOp>(op);
  if (kernels::hasOpenSizes(op) && !attention) {
    return false;
  }
  if (auto matmul = dyn_cast<device::MatMulOp>(op); matmul && isMicro(matmul, kb.x86)) {
    if (kernels::isRowMatMul(matmul) && isOfFloats(matmul)) {
      kernels::emitRowMatMul(kb, matmul);
      return true;
    }
    return failed(emitMicroMatMul(matmul, kb)) ? FailureOr<bool>(failure()) : true;
  }
  if (!attention || !(isOfBytes(attention) || isMicro(attention, kb))) {
    return false;
  }
  if (failed(requireRowMajor(op))) {
    return failure();
  }
  attention.isOfIntegers() ? emitMicroIntegerAttention(AttentionShape(kb)) : emitMicroAttention(AttentionShape(kb));
  return true;
}

} // namespace tessera::x86
