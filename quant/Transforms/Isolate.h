//===- Isolate.h - Every op on the values it should have had ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quant/Transforms/Equalize.h"

namespace tessera::quant {

/// Rewrites `function` so that what it gives tells every tensor's own error from the one it inherits: each float tensor
/// with a name for which `known` holds becomes an argument of that name, which all its readers get in its place, and
/// its own value becomes a result of that name. A tensor of integers, or of a smaller float, is given dequantised, and
/// its readers get the argument rounded in the same way. Tensors that hold their values divided by `factors` are given
/// and told without them. The former results are no more.
void isolateOps(mlir::func::FuncOp function, llvm::function_ref<bool(llvm::StringRef)> known,
                const TensorFactors &factors = {});

} // namespace tessera::quant
