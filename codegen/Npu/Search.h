//===- Search.h - The fastest of several plans ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_SEARCH_H
#define TESSERA_CODEGEN_NPU_SEARCH_H

#include "codegen/Npu/Npu.h"
#include "codegen/Npu/PlanGroups.h"

namespace tessera::npu {
class FunctionEmission;
class MemoryPlan;

/// Emits a function by several plans and keeps the program that takes the fewest cycles.
class Search {
public:
  Search(mlir::func::FuncOp function, const Chip &chip, const NpuOptions &options, Constants &constants)
      : function(function), chip(chip), options(options), constants(constants), surveyed(function, chip) {}

  /// Failure with refusals.
  mlir::LogicalResult run(NpuProgram &program, std::vector<Refusal> &refusals);

private:
  struct Trial {
    NpuProgram program;
    double cycles = 0;
    std::vector<unsigned> whole; ///< families that stay
  };
  using Groups = std::vector<Decisions::Group>;

  mlir::LogicalResult tryShare(double share);
  mlir::LogicalResult tryThese(llvm::ArrayRef<unsigned> whole, const Groups *groups);
  mlir::LogicalResult tryPlan(const ValuePlan &plan, const Groups *groups);
  mlir::LogicalResult tryGroups(const ValuePlan &plan, const GroupPlan &groups);
  mlir::LogicalResult emit(ValuePlan &plan, GroupPlan &groups, Trial &trial);
  void take(const MemoryPlan &memory, Trial &trial) const;
  mlir::LogicalResult follow(const Decisions &decisions);
  mlir::LogicalResult refuse(const llvm::Twine &why);
  void refine();
  bool improves(llvm::function_ref<void()> attempt);
  std::string nameOf(uint32_t layer) const;
  size_t expectedTries() const;
  void observe(FunctionEmission &emitter) const;

  mlir::func::FuncOp function;
  const Chip &chip;
  const NpuOptions &options;
  Constants &constants;
  ValuePlan surveyed;
  std::optional<Trial> best;
  std::vector<Refusal> refusals;
  unsigned tries = 0;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_SEARCH_H
