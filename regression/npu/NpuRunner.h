//===- NpuRunner.h - Runs device functions on the NPU simulator -*- C++ -*-===//
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
  std::string fault; ///< empty if the check succeeded
  bmodel::npu::Report report;
  std::vector<std::string> layers;
  size_t commands = 0, programs = 0, fills = 0; ///< programs: map commands
  size_t pointwise = 0;                         ///< conv commands with a single tap
  size_t groups = 0;                            ///< layer groups that run slice by slice
};

/// Emits |function| (after buildLowering and buildAddresses) for the chip, runs it on |inputs| in stream order and in
/// |orders| other legal orders, and compares all results with the reference bit by bit; float convolutions are compared
/// with the reference of the matrix unit (NpuReference.h). Each phase of the program, parsed again from its text, must
/// produce the same commands.
RunResult checkOnNpu(mlir::func::FuncOp function, const bmodel::npu::Chip &chip, const top::TensorMap &inputs,
                     int orders, const NpuOptions &options = {});

} // namespace tessera::npu

#endif // TESSERA_REGRESSION_NPU_NPURUNNER_H
