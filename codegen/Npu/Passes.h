//===- Passes.h - Passes of the NPU's back end ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_PASSES_H
#define TESSERA_CODEGEN_NPU_PASSES_H

#include "bmodel/npu/chip.h"
#include "codegen/Npu/IR/NpuDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace tessera::npu {

using bmodel::npu::Chip;

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "codegen/Npu/Passes.h.inc"

// Variants for a chip object instead of a name, e.g. one whose description was changed by --chip-set.
std::unique_ptr<mlir::Pass> createBlockRowsPass(const Chip &chip);
std::unique_ptr<mlir::Pass> createEarlyResultsPass(const Chip &chip);
std::unique_ptr<mlir::Pass> createFuseCopiesPass(const Chip &chip);
std::unique_ptr<mlir::Pass> createChooseFormsPass(const Chip &chip);
std::unique_ptr<mlir::Pass> createChooseDirectStoresPass(const Chip &chip);
std::unique_ptr<mlir::Pass> createVerifyDecisionsPass(const Chip &chip);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_PASSES_H
