//===- TilePlan.h - Tiles of products, as JSON ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_TILEPLAN_H
#define TESSERA_CODEGEN_CUDA_TILEPLAN_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace tessera::cuda {

/// Tiles, as the IR has them, by content addresses of products (cuda.product). Of the file
///
///   {"products": [{"product": "3f..", "tile": "#cuda.tile<..>", ..}, ..], ..}
///
/// as CudaFamily tells it with more to read for people and for --tune.
using TilePlan = llvm::StringMap<std::string>;

/// The error says what is wrong, and in which file.
llvm::Expected<TilePlan> readTilePlan(llvm::StringRef path);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_TILEPLAN_H
