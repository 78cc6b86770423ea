//===- Models.h - Ops that the NPU executes ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_MODELS_H
#define TESSERA_CODEGEN_NPU_EMISSION_MODELS_H

namespace mlir {
class MLIRContext;
}

namespace tessera::npu {

/// Each function attaches the emission of one family of ops. registerNpuModels calls all of them.
void attachAttentionModels(mlir::MLIRContext *context);
void attachBlockMatMulModels(mlir::MLIRContext *context);
void attachConvModels(mlir::MLIRContext *context);
void attachCopyModels(mlir::MLIRContext *context);
void attachCumSumModels(mlir::MLIRContext *context);
void attachGatherModels(mlir::MLIRContext *context);
void attachLutModels(mlir::MLIRContext *context);
void attachMapModels(mlir::MLIRContext *context);
void attachMatMulModels(mlir::MLIRContext *context);
void attachNormModels(mlir::MLIRContext *context);
void attachPoolModels(mlir::MLIRContext *context);
void attachReduceModels(mlir::MLIRContext *context);
void attachResizeModels(mlir::MLIRContext *context);
void attachSoftmaxModels(mlir::MLIRContext *context);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_MODELS_H
