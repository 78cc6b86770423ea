//===- Pipeline.h - From Top to what a chip executes ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_PIPELINE_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_PIPELINE_H

#include "mlir/Pass/PassOptions.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace tessera::device {

struct DevicePipelineOptions : mlir::PassPipelineOptions<DevicePipelineOptions> {
  Option<int64_t> vectorBytes{*this, "vector-bytes",
                              llvm::cl::desc("Bytes of a vector register of the chip: 16, 32 or 64"),
                              llvm::cl::init(64)};
  Option<bool> observe{*this, "observe",
                       llvm::cl::desc("Keep every tensor of the Top function: nothing is fused or merged"),
                       llvm::cl::init(false)};
  Option<bool> byteDots{*this, "byte-dots",
                        llvm::cl::desc("The chip multiplies unsigned by signed bytes and sums four products"),
                        llvm::cl::init(false)};
  Option<std::string> requantisation{
      *this, "requantise", llvm::cl::desc("How integer sums become integers of few bits: float, fixed, tflite"),
      llvm::cl::init("float")};
  Option<bool> winograd{*this, "winograd", llvm::cl::desc("Allow Winograd for 3x3 convolutions where it is faster"),
                        llvm::cl::init(true)};
};

/// Appends the way from Top functions to packed device functions: the same passes in the same order for every x86 chip.
/// |manager| works on modules.
void buildDevicePipeline(mlir::OpPassManager &manager, const DevicePipelineOptions &options);

/// Its second half: layouts, packed weights and addresses for functions of device ops.
void buildPlacementPipeline(mlir::OpPassManager &manager, const DevicePipelineOptions &options);

/// Registers it as --device-pipeline.
void registerDevicePipeline();

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_PIPELINE_H
