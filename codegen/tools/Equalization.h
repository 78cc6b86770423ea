//===- Equalization.h - Equalises a model by its channels' statistics -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace tessera::tool {

struct EqualizationOptions {
  std::string
      statistics;      ///< safetensors: "TENSOR:low", "TENSOR:high", "TENSOR:power", f32 vectors, one number a channel
  std::string factors; ///< file to write: "TENSOR:factors" of the tensors where they begin
  std::vector<std::string> kinds; ///< of products whose inputs are scaled: conv, matmul
};

/// Chooses factors (quant/Transforms/Equalize.h), writes them, and applies them to `function`. Tensors must have names.
/// Returns how many tensors are scaled, and the noise expected before and after.
llvm::Expected<llvm::json::Object> equalizeByStatistics(mlir::func::FuncOp function,
                                                        const EqualizationOptions &options);

} // namespace tessera::tool
