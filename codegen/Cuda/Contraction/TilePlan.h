//===- TilePlan.h - Reads plans of tiles from JSON --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_CONTRACTION_TILEPLAN_H
#define TESSERA_CODEGEN_CUDA_CONTRACTION_TILEPLAN_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace tessera::cuda {

/// Tiles in the syntax of the IR by content addresses of contractions (cuda.product). A plan file is
///
///   {"products": [{"product": "3f..", "tile": "#cuda.tile<..>", ..}, ..], ..}
///
/// as planReport() writes it, with further entries for people and for --tune.
using TilePlan = llvm::StringMap<std::string>;

/// Reads the plan file at |path|. The error names the file and what is wrong with it.
llvm::Expected<TilePlan> readTilePlan(llvm::StringRef path);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_CONTRACTION_TILEPLAN_H
