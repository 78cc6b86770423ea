//===- FloatOps.h - f32 ops as in numerics_float.h --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Operations that the device dialect specifies bit for bit: element functions, and sums in a stated order.
// Multiplications whose result is added (squares of norms, scale and bias, resizing, matmuls, attention) are fused; all
// other operations are rounded individually.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_REFERENCE_FLOATOPS_H
#define TESSERA_DEVICE_DIALECT_REFERENCE_FLOATOPS_H

#include "device_dialect/IR/DeviceComputeOps.h"
#include "top_dialect/Reference/Support.h"

namespace tessera::device::reference {

using top::reference::Inputs;

/// Tensors as inputs of f32 arithmetic: narrower floats are converted to f32, other tensors are unchanged.
class Singles {
public:
  explicit Singles(Inputs inputs);
  operator Inputs() const { return pointers; }

private:
  llvm::SmallVector<top::HostTensor, 4> widened;
  llvm::SmallVector<const top::HostTensor *, 4> pointers;
};
/// Returns true if all tensors are floats of at most 32 bits, for which bits are specified.
bool fitSingle(Inputs inputs);

/// Calls |compute| with |y| or, if its elements are narrower than f32, with an f32 tensor that is then rounded to |y|.
void inSingle(top::HostTensor &y, llvm::function_ref<void(top::HostTensor &single)> compute);
/// Softmax along |axis|. If all dims after the axis have size 1, the sum has 16 partial sums; otherwise it is
/// sequential.
void softmaxF32(const top::HostTensor &x, top::HostTensor &y, int64_t axis, bool log);
/// Running sum: each sum adds one element to the previous sum, from the first element on, or with |reverse| from the
/// last.
void cumulateF32(const top::HostTensor &x, top::HostTensor &y, int64_t axis, bool exclusive, bool reverse);
/// Normalises over the dims from the op's axis on; the means have 16 partial sums.
void normF32(NormOp op, Inputs inputs, top::HostTensor &y);
/// Computes a sum or product into `y`, whose reduced dims have size 1. If the last dim is reduced, there are 16 partial
/// results over the trailing reduced dims, each continued through all other reduced dims; otherwise one.
void reduceF32(const top::HostTensor &x, top::HostTensor &y, llvm::ArrayRef<int64_t> axes, bool product);
/// Average pooling: sums in the order of the taps, then divides once.
void averagePoolF32(PoolOp op, const top::HostTensor &x, top::HostTensor &y);
/// Resizes by `tables`, indices and weights per axis. Weights are multiplied in the order of the axes, and terms are
/// added in the order of the taps.
void resizeF32(const top::HostTensor &x, top::HostTensor &y, llvm::ArrayRef<int64_t> axes, Inputs tables);
/// Matmul a b + bias of floats: each sum starts at 0 and adds fused products in the order of k; the bias is added last.
void matmulF32(MatMulOp op, Inputs inputs, top::HostTensor &y);
/// Computes softmax(scale q k^T + mask) v for q, k, v and an optional mask, with batch dims before the matrices. Both
/// contractions are sequential sums; the softmax has 16 partial sums, and its factor scales the result.
void attentionF32(AttentionOp op, Inputs inputs, top::HostTensor &y);
/// Computes the integer attention of an op with levels.
void attentionI8(AttentionOp op, Inputs inputs, top::HostTensor &y);

} // namespace tessera::device::reference

#endif // TESSERA_DEVICE_DIALECT_REFERENCE_FLOATOPS_H
