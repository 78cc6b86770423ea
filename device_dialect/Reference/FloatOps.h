//===- FloatOps.h - f32 ops in the order of bmodel/numerics_float.h -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// What the device dialect specifies to the bit: element functions, and sums in a stated order. Products that are added
// (squares of norms, scale and bias, resizing, matrix products, attention) are fused, everything else is rounded at
// once.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_REFERENCE_FLOATOPS_H
#define TESSERA_DEVICE_DIALECT_REFERENCE_FLOATOPS_H

#include "device_dialect/IR/DeviceComputeOps.h"
#include "top_dialect/Reference/Support.h"

namespace tessera::device::reference {

using top::reference::Inputs;

/// Tensors of narrower floats as f32, which all arithmetic is in; others as they are.
class Singles {
public:
  explicit Singles(Inputs inputs);
  operator Inputs() const { return pointers; }

private:
  llvm::SmallVector<top::HostTensor, 4> widened;
  llvm::SmallVector<const top::HostTensor *, 4> pointers;
};
/// Whether all tensors are floats of at most 32 bits: what is specified to the bit.
bool fitSingle(Inputs inputs);

/// Calls compute with |y|, or, where its numbers are narrower, with a tensor of f32 that is rounded to it.
void inSingle(top::HostTensor &y, llvm::function_ref<void(top::HostTensor &single)> compute);
/// Along the dims from which on all are of size 1 the sum has 16 partial sums; along others it is sequential.
void softmaxF32(const top::HostTensor &x, top::HostTensor &y, int64_t axis, bool log);
/// Each sum is that of the element before and one more element, from the first one on, or from the last one back.
void cumulateF32(const top::HostTensor &x, top::HostTensor &y, int64_t axis, bool exclusive, bool reverse);
/// Over the dims from the op's axis on, whose means have 16 partial sums.
void normF32(NormOp op, Inputs inputs, top::HostTensor &y);
/// Sum or product into `y`, whose reduced dims are 1. If the last dim is reduced, 16 partial results over the trailing
/// reduced dims, each through all other reduced dims; else one.
void reduceF32(const top::HostTensor &x, top::HostTensor &y, llvm::ArrayRef<int64_t> axes, bool product);
/// Sums in the order of the taps, then one division.
void averagePoolF32(PoolOp op, const top::HostTensor &x, top::HostTensor &y);
/// `tables`: indices and weights per axis. Weights are multiplied in the order of the axes, products added in that of
/// the taps.
void resizeF32(const top::HostTensor &x, top::HostTensor &y, llvm::ArrayRef<int64_t> axes, Inputs tables);
/// a b + bias of floats: each sum starts at 0 and takes the fused products in the order of k, the bias comes last.
void matmulF32(MatMulOp op, Inputs inputs, top::HostTensor &y);
/// softmax(scale q k^T + mask) v of q, k, v and a mask, if any, with batch dims before the matrices. Both products are
/// sequential sums; the softmax between them has 16 partial sums, its factor scales the result.
void attentionF32(AttentionOp op, Inputs inputs, top::HostTensor &y);
/// The same of integers, as the op with levels has it.
void attentionI8(AttentionOp op, Inputs inputs, top::HostTensor &y);

} // namespace tessera::device::reference

#endif // TESSERA_DEVICE_DIALECT_REFERENCE_FLOATOPS_H
