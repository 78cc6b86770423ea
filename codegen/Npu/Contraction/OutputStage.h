//===- OutputStage.h - Epilogues that the output stage computes -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_CONTRACTION_OUTPUTSTAGE_H
#define TESSERA_CODEGEN_NPU_CONTRACTION_OUTPUTSTAGE_H

#include "bmodel/npu/isa.h"
#include "mlir/IR/Region.h"
#include <optional>

namespace tessera::npu {

/// An epilogue as fields of the output stage. Extras are numbered from 0; -1 means that there is none.
struct StageForm {
  bmodel::npu::Output output;
  int factorExtra = -1;   ///< holds the factor of each channel
  int gainExtra = -1;     ///< holds the gain of each channel, applied behind the function; the shift in integral stages
  int residualExtra = -1; ///< is the second addend
};

/// Matches an epilogue with what the output stage computes, in the stage's order of roundings, or returns nothing. The
/// first argument of the region is the i32 or f32 sum, the others are the extras. |result|: stored element type.
/// |requantise|: requantisation mode of the chip.
std::optional<StageForm> matchStage(mlir::Region &epilogue, mlir::Type result, llvm::StringRef requantise);

/// Returns the stage that stores integers unchanged.
bmodel::npu::Output keepIntegers(bmodel::npu::Type type, llvm::StringRef requantise);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_CONTRACTION_OUTPUTSTAGE_H
