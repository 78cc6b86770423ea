//===- Passes.h - Layouts, tiles and packed weights of cuda -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_TRANSFORMS_PASSES_H
#define TESSERA_CODEGEN_CUDA_TRANSFORMS_PASSES_H

#include "codegen/Cuda/IR/CudaDialect.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "top_dialect/IR/TopDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace tessera::cuda {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "codegen/Cuda/Transforms/Passes.h.inc"

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_TRANSFORMS_PASSES_H
