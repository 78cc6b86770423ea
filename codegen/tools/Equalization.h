//===- Equalization.h - Equalisation by channel statistics ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_EQUALIZATION_H
#define TESSERA_CODEGEN_TOOLS_EQUALIZATION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace tessera::tool {

struct EqualizationOptions {
  std::string statistics; ///< safetensors: "TENSOR:low", "TENSOR:high", "TENSOR:power", f32 vectors, one number per
                          ///< channel
  std::string factors;    ///< file to write: "TENSOR:factors" for each tensor at which scaling begins
  std::vector<std::string> kinds; ///< kinds of contractions whose inputs are scaled: conv, matmul
};

/// Chooses factors (quant/Transforms/Equalize/Equalize.h), writes them, and applies them to `function`. Tensors must
/// have names. Returns the number of scaled tensors and the expected noise before and after.
llvm::Expected<llvm::json::Object> equalizeByStatistics(mlir::func::FuncOp function,
                                                        const EqualizationOptions &options);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_EQUALIZATION_H
