//===- NpuRunner.h - Device functions on the NPU's simulator ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_REGRESSION_NPU_NPURUNNER_H
#define TESSERA_REGRESSION_NPU_NPURUNNER_H

#include "bmodel/npu/chip.h"
#include "bmodel/npu/report.h"
#include "codegen/Npu/Npu.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "top_dialect/Reference/Evaluator.h"
#include <string>

namespace tessera::npu {

struct RunResult {
  std::string fault; ///< what is wrong; empty: nothing
  bmodel::npu::Report report;
  std::vector<std::string> layers;
  size_t commands = 0, programs = 0, fills = 0; ///< programs: maps among the commands
  size_t pointwise = 0;                         ///< conv commands of a single tap
  size_t groups = 0;                            ///< of ops that run slice by slice
};

/// Emits |function| (buildLowering and buildAddresses have run) for the chip, runs it on |inputs| in the order of the
/// stream and in |orders| other legal ones, and compares all results with the reference, bit by bit; where convolutions
/// sum floats, with what the matrix unit makes of them (NpuReference.h). Each phase of the program, read again from its
/// text, must become the same commands.
RunResult checkOnNpu(mlir::func::FuncOp function, const bmodel::npu::Chip &chip, const top::TensorMap &inputs,
                     int orders, const NpuOptions &options = {});

} // namespace tessera::npu

#endif // TESSERA_REGRESSION_NPU_NPURUNNER_H
