//===- Npu.h - A device function as a program of the NPU --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_NPU_H
#define TESSERA_CODEGEN_NPU_NPU_H

#include "bmodel/npu/check.h"
#include "codegen/Npu/KeptValues.h"
#include "codegen/Npu/LayerSchedule.h"
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

/// An op that the chip cannot compute, and why; null: the function as a whole.
struct Refusal {
  mlir::Operation *op;
  std::string reason;
  bool ofPlan = false; ///< NpuOptions::plan does not suit the function
};

/// A stream that the checks of bmodel/npu/check.h have passed.
struct NpuProgram {
  std::vector<bmodel::npu::Descriptor> commands;
  std::vector<char> constants;
  bmodel::npu::RegionSizes sizes;   ///< buffers of the caller: arguments, then results
  std::vector<std::string> layers;  ///< ONNX names of nodes, by Header::layer
  uint64_t localPeak = 0;           ///< most bytes of a lane in use at once
  uint64_t workspaceLowerBound = 0; ///< of sizes.workspace

  LayerSchedule layerSchedule; ///< of its plan
  std::vector<KeptValue> kept; ///< with NpuOptions::keepLayers
};

struct NpuOptions {
  /// 0: op by op. 1: values stay in local memory from op to op, and weights are loaded ahead. 2: the best of several
  /// such plans. 3: its decisions are changed one by one as long as that makes it faster.
  unsigned opt = 2;
  std::optional<LayerSchedule> plan = {}; ///< is followed instead
  uint32_t firstLayer = 0;                ///< the number of the function's first layer there
  bool keepLayers = false;                ///< what layers make stays outside the chip: NpuProgram::kept
  /// Is told of ops as they are emitted: by plan |part| of about |parts|.
  std::function<void(size_t done, size_t total, size_t part, size_t parts)> progress = {};
  codegen::IrObserver observeIr = {}; ///< is shown the IR behind every phase
};

/// Attaches what the NPU computes to device ops, and loads the npu dialect, when the device dialect is loaded: what all
/// functions below count on.
void registerNpuModels(mlir::DialectRegistry &registry);

/// Appends the NPU's own forms of fused device ops to passes on functions: see device::buildLoweringPipeline.
void addForms(mlir::OpPassManager &functions, const bmodel::npu::Chip &chip);
/// The shared lowering with these forms. |requantise|: as the chip does it.
void buildLowering(mlir::OpPassManager &manager, const std::string &requantise, const bmodel::npu::Chip &chip);
/// Gives these tensors addresses: what emitProgram takes.
void buildAddresses(mlir::OpPassManager &manager);
/// What the chip does with each op, written on the ops as attributes (codegen/Npu/Passes.td): what emitProgram begins
/// with.
void buildForms(mlir::OpPassManager &manager, const bmodel::npu::Chip &chip);

/// Every op of the function that has no form on the chip, as far as that is known before memory is planned. Forms are
/// written on the ops.
std::vector<Refusal> surveyProgram(mlir::func::FuncOp function, const bmodel::npu::Chip &chip);

/// The function as a stream on constants that other streams may use too; NpuProgram::constants stays empty. Its
/// schedule is written on the ops. Failure with refusals where ops cannot be computed on the chip, else with an error
/// at the function.
mlir::FailureOr<NpuProgram> emitProgram(mlir::func::FuncOp function, const bmodel::npu::Chip &chip,
                                        const NpuOptions &options, Constants &constants,
                                        std::vector<Refusal> &refusals);

/// The same of what the ops say: chosen forms and a schedule (npu-schedule) stand there.
mlir::FailureOr<NpuProgram> emitScheduledProgram(mlir::func::FuncOp function, const bmodel::npu::Chip &chip,
                                                 Constants &constants, std::vector<Refusal> &refusals);

/// Emits an error for each refusal, at its op or the function.
void report(mlir::func::FuncOp function, llvm::ArrayRef<Refusal> refusals);

/// The only stream of a model. Refusals are reported at their ops.
mlir::FailureOr<NpuProgram> emitProgram(mlir::func::FuncOp function, const bmodel::npu::Chip &chip,
                                        const NpuOptions &options = {});

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_NPU_H
