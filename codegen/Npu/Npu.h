//===- Npu.h - A device function as a program of the NPU --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_NPU_H
#define TESSERA_CODEGEN_NPU_NPU_H

#include "bmodel/npu/check.h"
#include "codegen/Npu/Schedule/LayerSchedule.h"
#include "codegen/Npu/Stream/PreservedValues.h"
#include "codegen/Target/Phases.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class DialectRegistry;
class OpPassManager;
} // namespace mlir

namespace tessera::npu {

class Constants;

/// An op that the chip does not support, and the reason. A null op stands for the function as a whole.
struct UnsupportedOp {
  mlir::Operation *op;
  std::string reason;
  bool ofPlan = false; ///< NpuOptions::plan does not fit the function
};

/// A stream that has passed the checks of bmodel/npu/check.h.
struct NpuProgram {
  std::vector<bmodel::npu::Descriptor> commands;
  std::vector<char> constants;
  bmodel::npu::RegionSizes sizes;   ///< buffers of the caller: arguments, then results
  std::vector<std::string> layers;  ///< ONNX names of nodes, indexed by Header::layer
  uint64_t localPeak = 0;           ///< maximum number of bytes per lane in use at once
  uint64_t workspaceLowerBound = 0; ///< of sizes.workspace

  LayerSchedule layerSchedule;           ///< decisions of the chosen schedule
  std::vector<PreservedValue> preserved; ///< filled with NpuOptions::preserveLayers
};

/// Options of emitProgram.
struct NpuOptions {
  /// 0: op by op. 1: values stay in local memory from op to op, and weights are prefetched. 2: the best of several such
  /// schedules. 3: in addition, single decisions are changed as long as that makes the program faster.
  unsigned opt = 2;
  std::optional<LayerSchedule> plan = {}; ///< schedule to follow instead of searching
  uint32_t firstLayer = 0;                ///< number in |plan| of the function's first layer
  bool preserveLayers = false;            ///< preserve the results of layers in off-chip memory: NpuProgram::preserved
  /// Called as ops are emitted, by schedule number |part| of about |parts|.
  std::function<void(size_t done, size_t total, size_t part, size_t parts)> progress = {};
  codegen::IrObserver observeIr = {}; ///< called with the IR after each phase
};

/// Registers the npu dialect, and the external models of device ops that the NPU executes; both are loaded with the
/// device dialect. All functions below require this.
void registerNpuModels(mlir::DialectRegistry &registry);

/// Adds the NPU's own passes on fused device ops to a pipeline on functions: see device::buildLoweringPipeline.
void addForms(mlir::OpPassManager &functions, const bmodel::npu::Chip &chip);
/// Builds the shared lowering with these passes. |requantise|: the chip's requantisation mode.
void buildLowering(mlir::OpPassManager &manager, const std::string &requantise, const bmodel::npu::Chip &chip);
/// Assigns addresses to the tensors, as emitProgram requires.
void buildAddresses(mlir::OpPassManager &manager);
/// Adds the passes that decide how the chip executes each op and write it as attributes (codegen/Npu/Passes.td).
/// emitProgram begins with them.
void buildForms(mlir::OpPassManager &manager, const bmodel::npu::Chip &chip);

/// Returns every op of the function that the chip does not support, as far as this is known before memory is planned.
/// Writes the chosen forms on the ops.
std::vector<UnsupportedOp> surveyProgram(mlir::func::FuncOp function, const bmodel::npu::Chip &chip);

/// Emits the function as a stream, with constants that other streams may share; NpuProgram::constants stays empty.
/// Writes the schedule on the ops. Fails with |unsupportedOps| if the chip does not support some ops, otherwise with an
/// error at the function.
mlir::FailureOr<NpuProgram> emitProgram(mlir::func::FuncOp function, const bmodel::npu::Chip &chip,
                                        const NpuOptions &options, Constants &constants,
                                        std::vector<UnsupportedOp> &unsupportedOps);

/// Like emitProgram, for ops that already have forms and a schedule (npu-schedule).
mlir::FailureOr<NpuProgram> emitScheduledProgram(mlir::func::FuncOp function, const bmodel::npu::Chip &chip,
                                                 Constants &constants, std::vector<UnsupportedOp> &unsupportedOps);

/// Emits an error for each refusal, at its op or at the function.
void report(mlir::func::FuncOp function, llvm::ArrayRef<UnsupportedOp> unsupportedOps);

/// Emits the only stream of a model. Reports refusals at their ops.
mlir::FailureOr<NpuProgram> emitProgram(mlir::func::FuncOp function, const bmodel::npu::Chip &chip,
                                        const NpuOptions &options = {});

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_NPU_H
