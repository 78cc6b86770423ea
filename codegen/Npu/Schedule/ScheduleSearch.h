//===- ScheduleSearch.h - Search for the fastest schedule -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_SCHEDULE_SCHEDULESEARCH_H
#define TESSERA_CODEGEN_NPU_SCHEDULE_SCHEDULESEARCH_H

#include "codegen/Npu/Stream/EmitProgram.h"

namespace tessera::npu {

/// Emits a function with several schedules and writes the schedule of the fastest program on the ops, as attributes. If
/// a schedule does not fit, it is changed until it does, and the changed one is written. The forms of convolutions that
/// can quantise a picture are compared in the same way and rewritten.
class ScheduleSearch {
public:
  ScheduleSearch(mlir::func::FuncOp function, const Chip &chip, const NpuOptions &options, Constants &constants)
      : function(function), chip(chip), options(options), constants(constants) {
    surveyed.emplace(function, chip);
  }

  /// Runs the search. |program|: the result of emitScheduled for the written schedule, with the same constants. Fails
  /// with |unsupportedOps|.
  mlir::LogicalResult run(NpuProgram &program, std::vector<UnsupportedOp> &unsupportedOps);

private:
  struct Trial {
    NpuProgram program;
    double cycles = 0;
    LocalSchedule schedule;
    std::unique_ptr<CommandStream> stream; ///< source of the program's commands
    Overlap overlap;                       ///< of these commands
    double share = 0;                      ///< share of local memory for which resident values were chosen
  };
  using Groups = std::vector<LayerSchedule::Group>;

  mlir::LogicalResult tryShare(double share);
  mlir::LogicalResult tryThese(llvm::ArrayRef<unsigned> whole, const Groups *groups);
  mlir::LogicalResult tryPlan(const ValuePlan &plan, const Groups *groups);
  mlir::LogicalResult tryGroups(const ValuePlan &plan, const GroupPlan &groups);
  mlir::LogicalResult emit(ValuePlan &plan, GroupPlan &groups, Trial &trial);
  mlir::LogicalResult follow(const LayerSchedule &layerSchedule);
  llvm::Expected<std::vector<unsigned>> findAliasSets(const LayerSchedule &layerSchedule) const;
  mlir::LogicalResult checkNames(const LayerSchedule &layerSchedule);
  mlir::LogicalResult reject(const llvm::Twine &why);
  mlir::LogicalResult surveyForms(std::vector<UnsupportedOp> &rejected);
  void tryFormsOfInputs();
  void refine();
  bool improves(llvm::function_ref<void()> attempt);
  size_t expectedTries() const;
  void observe(FunctionEmission &emitter) const;
  /// Returns true if a layer of the model is an op of this function. The last surveyed entry stands for the copies to
  /// the function's results; it need not be a layer, and plans do not mention it.
  bool isOwn(uint32_t layer) const {
    const std::vector<ValuePlan::OpUses> &ops = surveyed->ops();
    return layer >= options.firstLayer && layer - options.firstLayer < ops.size() && ops[layer - options.firstLayer].op;
  }

  mlir::func::FuncOp function;
  const Chip &chip;
  const NpuOptions &options;
  Constants &constants;
  std::optional<ValuePlan> surveyed; ///< for the forms that the ops currently have
  std::optional<Trial> best;
  std::vector<UnsupportedOp> unsupportedOps;
  unsigned tries = 0;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_SCHEDULE_SCHEDULESEARCH_H
