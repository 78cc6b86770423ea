//===- Pipeline.h - Lowering shared by all families -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_PIPELINE_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_PIPELINE_H

#include "mlir/Pass/PassOptions.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace tessera::device {

struct LoweringOptions : mlir::PassPipelineOptions<LoweringOptions> {
  Option<std::string> requantisation{*this, "requantise",
                                     llvm::cl::desc("How integer sums become narrow integers: float, fixed, tflite"),
                                     llvm::cl::init("float")};
  Option<bool> instrument{*this, "observe",
                          llvm::cl::desc("Keep every tensor of the Top function: do not fuse or merge ops"),
                          llvm::cl::init(false)};
  Option<bool> updateStates{*this, "update-states", llvm::cl::desc("Write states in place where the form allows it"),
                            llvm::cl::init(false)};
};

/// Appends the passes that lower Top functions to fused device ops, row-major and without addresses; they are the same
/// for every family. |manager| works on modules. |addForms| appends a family's preferred forms of fused ops to a
/// manager of functions, before the last clean-up; it is not called if tensors are observed.
void buildLoweringPipeline(mlir::OpPassManager &manager, const LoweringOptions &options,
                           llvm::function_ref<void(mlir::OpPassManager &)> addForms = nullptr);

/// Appends the part of this pipeline that removes copies and fuses device ops, which may be repeated.
void buildFusionPipeline(mlir::OpPassManager &functions, llvm::function_ref<void(mlir::OpPassManager &)> addForms);

/// Registers the pipeline as --device-lowering.
void registerLoweringPipeline();

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_PIPELINE_H
