//===- ChoosePacking.h - How the weights of an op are packed ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_CHOOSEPACKING_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_CHOOSEPACKING_H

#include "codegen/X86/Transforms/ConvAlgorithm.h"
#include "top_dialect/IR/Constants.h"

#include <functional>

namespace tessera::x86 {

/// The packing of |conv| with constant |weights|, whose algorithm is chosen. Scales that are left go into the panels.
PackingAttr choosePacking(device::ConvOp conv, const top::TensorData &weights, PackingTarget target);

/// Whether a register tile multiplies |matmul| with weights that are constant.
bool hasRegisterTile(device::MatMulOp matmul, PackingTarget target);

/// The packing of |matmul|, which has a register tile, with constant |weights|.
PackingAttr choosePacking(device::MatMulOp matmul, const top::TensorData &weights, PackingTarget target);

/// Whether a register tile multiplies the states of |op| with its weights, which are constant then.
bool hasRegisterTile(device::RecurrentOp op, PackingTarget target);

/// The packing of |op|, which has a register tile and no weights of inputs, with constant |weights|.
PackingAttr choosePacking(device::RecurrentOp op, const top::TensorData &weights, PackingTarget target);

/// Writes weights in their logical order, as |op| has them, to packed ones of packedType(op, packing); the transformed
/// ones of Winograd as f32. Independent of |op| afterwards.
using Packer = std::function<void(const char *from, char *to)>;
Packer packerOf(device::ConvOp conv, PackingAttr packing);
Packer packerOf(device::MatMulOp matmul, PackingAttr packing);
Packer packerOf(device::RecurrentOp op, PackingAttr packing);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_CHOOSEPACKING_H
