//===- Isolate.h - Feeds every op the exact values of its operands --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_ISOLATE_H
#define TESSERA_QUANT_TRANSFORMS_ISOLATE_H

#include "quant/Transforms/Equalize/Equalize.h"

namespace tessera::quant {

/// Rewrites `function` so that it shows each tensor's own error, without the error inherited from its operands. Each
/// named float tensor for which `known` holds becomes an argument of that name, which its readers use instead, and the
/// value that its op computes becomes a result of that name. A tensor of integers, or of a narrower float type, is
/// returned as f32, and its readers get the argument rounded like the tensor. Tensors that hold values divided by
/// `factors` are passed and returned undivided. The former results are removed.
void isolateOps(mlir::func::FuncOp function, llvm::function_ref<bool(llvm::StringRef)> known,
                const TensorFactors &factors = {});

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_ISOLATE_H
