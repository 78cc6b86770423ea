//===- Models.h - The kernel families ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_MODELS_H
#define TESSERA_CODEGEN_KERNELS_MODELS_H

namespace mlir {
class MLIRContext;
}

namespace tessera::kernels {

/// Attach the kernels of one op family each; registerKernels calls all of them.
void attachMapModels(mlir::MLIRContext *context);
void attachCopyModels(mlir::MLIRContext *context);
void attachPoolModels(mlir::MLIRContext *context);
void attachReduceModels(mlir::MLIRContext *context);
void attachSoftmaxModels(mlir::MLIRContext *context);
void attachNormModels(mlir::MLIRContext *context);
void attachConvModels(mlir::MLIRContext *context);
void attachInsertModels(mlir::MLIRContext *context);
void attachLutModels(mlir::MLIRContext *context);
void attachMatMulModels(mlir::MLIRContext *context);
void attachBlockMatMulModels(mlir::MLIRContext *context);
void attachAttentionModels(mlir::MLIRContext *context);
void attachRecurrentModels(mlir::MLIRContext *context);
void attachGatherModels(mlir::MLIRContext *context);
void attachScatterModels(mlir::MLIRContext *context);
void attachResizeModels(mlir::MLIRContext *context);
void attachOrderModels(mlir::MLIRContext *context);
void attachSuppressionModels(mlir::MLIRContext *context);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_MODELS_H
