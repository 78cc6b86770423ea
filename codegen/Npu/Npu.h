//===- Npu.h - A device function as a program of the NPU --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_NPU_H
#define TESSERA_CODEGEN_NPU_NPU_H

#include "bmodel/npu/check.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>
#include <vector>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace tessera::npu {

/// A stream that the checks of bmodel/npu/check.h have passed.
struct NpuProgram {
  std::vector<bmodel::npu::Descriptor> commands;
  std::vector<char> constants;
  bmodel::npu::RegionSizes sizes;  ///< buffers of the caller: arguments, then results
  std::vector<std::string> layers; ///< ONNX names of nodes, by Header::layer
};

/// The way from Top functions to what emitProgram takes: device ops on row-major tensors that have addresses.
void buildNpuPipeline(mlir::OpPassManager &manager);

/// Error where an op cannot be computed on the chip; it is reported at each of them.
mlir::FailureOr<NpuProgram> emitProgram(mlir::func::FuncOp function, const bmodel::npu::Chip &chip);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_NPU_H
