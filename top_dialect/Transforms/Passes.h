//===- Passes.h - Graph optimisation on Top --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_TRANSFORMS_PASSES_H
#define TESSERA_TOP_DIALECT_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"
#include "top_dialect/IR/TopDialect.h"

namespace tessera::top {

#define GEN_PASS_DECL
#include "top_dialect/Transforms/Passes.h.inc"

/// Options of `--top-pipeline` and `tessera-compile import`.
struct TopPipelineOptions : mlir::PassPipelineOptions<TopPipelineOptions> {
  Option<bool> recover{*this, "recover", llvm::cl::desc("Recover norms, activations and attention from their formulas"),
                       llvm::cl::init(true)};
  Option<bool> foldWeights{*this, "fold-weights",
                           llvm::cl::desc("Fold batch_norm, scales and padding into convolutions"),
                           llvm::cl::init(true)};
  Option<bool> sinkTransposes{*this, "sink-transposes", llvm::cl::desc("Move transposes to where they cancel"),
                              llvm::cl::init(true)};
  Option<bool> fuse{*this, "fuse", llvm::cl::desc("Fuse bias and relu into conv and matmul"), llvm::cl::init(true)};
};

/// Appends the passes that optimise a freshly imported module: they refine types, fold constants, recover patterns and
/// fold weights. The results stay the same up to the re-association of floating-point sums.
void buildTopPipeline(mlir::OpPassManager &pm, const TopPipelineOptions &options);

/// Returns true for top.if and top.loop.
bool isControlFlow(mlir::Operation *op);

/// Returns true if |root| contains an op for which isControlFlow() is true.
bool hasControlFlow(mlir::Operation *root);

/// Registers every pass as `--top-...` and the pipeline as `--top-pipeline`.
void registerTopTransforms();

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_TRANSFORMS_PASSES_H
