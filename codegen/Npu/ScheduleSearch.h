//===- ScheduleSearch.h - The fastest of several schedules ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_SCHEDULESEARCH_H
#define TESSERA_CODEGEN_NPU_SCHEDULESEARCH_H

#include "codegen/Npu/EmitProgram.h"

namespace tessera::npu {

/// Emits a function by several schedules, and writes the one on the ops whose program takes the fewest cycles. Where
/// there is no room for what a schedule wants, it is changed until there is: what is written is what was emitted. The
/// forms of convolutions that a picture is quantised for are judged so, too, and written anew.
class ScheduleSearch {
public:
  ScheduleSearch(mlir::func::FuncOp function, const Chip &chip, const NpuOptions &options, Constants &constants)
      : function(function), chip(chip), options(options), constants(constants) {
    surveyed.emplace(function, chip);
  }

  /// |program|: what emitScheduled makes of the schedule, on the same constants. Failure with refusals.
  mlir::LogicalResult run(NpuProgram &program, std::vector<Refusal> &refusals);

private:
  struct Trial {
    NpuProgram program;
    double cycles = 0;
    Schedule schedule;
    std::unique_ptr<Stream> stream; ///< what the program's commands are made of
    Overlap overlap;                ///< of these
    double share = 0;               ///< of local memory, that values were chosen for
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
  mlir::LogicalResult refuse(const llvm::Twine &why);
  mlir::LogicalResult surveyForms(std::vector<Refusal> &refused);
  void tryFormsOfInputs();
  void refine();
  bool improves(llvm::function_ref<void()> attempt);
  size_t expectedTries() const;
  void observe(FunctionEmission &emitter) const;
  /// Whether a layer of the model is an op of this function: the last one surveyed stands for what is copied into its
  /// results, which may be no layer, and of which plans say nothing.
  bool isOwn(uint32_t layer) const {
    const std::vector<ValuePlan::OpUses> &ops = surveyed->ops();
    return layer >= options.firstLayer && layer - options.firstLayer < ops.size() && ops[layer - options.firstLayer].op;
  }

  mlir::func::FuncOp function;
  const Chip &chip;
  const NpuOptions &options;
  Constants &constants;
  std::optional<ValuePlan> surveyed; ///< of the forms that the ops have
  std::optional<Trial> best;
  std::vector<Refusal> refusals;
  unsigned tries = 0;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_SCHEDULESEARCH_H
