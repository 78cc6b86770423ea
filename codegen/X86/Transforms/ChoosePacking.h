//===- ChoosePacking.h - Chooses the packing of an op's weights ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_CHOOSEPACKING_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_CHOOSEPACKING_H

#include "codegen/X86/Transforms/ConvAlgorithm.h"
#include "top_dialect/IR/Constants.h"

#include <functional>

namespace tessera::x86 {

/// Returns the packing of |conv| with constant |weights|, whose x86.algorithm is set. If it has scales, they go into
/// the panels.
PackingAttr choosePacking(device::ConvOp conv, const top::TensorData &weights, PackingTarget target);

/// Returns true if a register tile supports |matmul| with constant weights.
bool hasRegisterTile(device::MatMulOp matmul, PackingTarget target);

/// Returns the packing of |matmul|, for which hasRegisterTile() is true, with constant |weights|.
PackingAttr choosePacking(device::MatMulOp matmul, const top::TensorData &weights, PackingTarget target);

/// Returns true if a register tile supports the matmul of the states and weights of |op|; the weights are then
/// constant.
bool hasRegisterTile(device::RecurrentOp op, PackingTarget target);

/// Returns the packing of |op|, for which hasRegisterTile() is true and whose inputs are hoisted, with constant
/// |weights|.
PackingAttr choosePacking(device::RecurrentOp op, const top::TensorData &weights, PackingTarget target);

/// A function that packs weights from their logical order in |op| to packedType(op, packing). Winograd weights are read
/// and written as f32. The function does not refer to |op|.
using Packer = std::function<void(const char *from, char *to)>;
Packer packerOf(device::ConvOp conv, PackingAttr packing);
Packer packerOf(device::MatMulOp matmul, PackingAttr packing);
Packer packerOf(device::RecurrentOp op, PackingAttr packing);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_CHOOSEPACKING_H
