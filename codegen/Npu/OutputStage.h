//===- OutputStage.h - Epilogues that the output stage computes -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_OUTPUTSTAGE_H
#define TESSERA_CODEGEN_NPU_OUTPUTSTAGE_H

#include "bmodel/npu/isa.h"
#include "mlir/IR/Region.h"
#include <optional>

namespace tessera::npu {

/// An epilogue as fields of the output stage. Extras are counted from 0; -1: there is none.
struct StageForm {
  bmodel::npu::Output output;
  int factorExtra = -1;   ///< holds the factor of each channel
  int gainExtra = -1;     ///< holds the gain of each channel, behind the function; the shift of integral stages
  int residualExtra = -1; ///< is the second addend
};

/// Nothing where the region computes what the stage cannot, in the stage's order of roundings. The first argument is a
/// sum, i32 or f32, the others the extras; |result|: the stored element type; |requantise|: as the chip does it.
std::optional<StageForm> matchStage(mlir::Region &epilogue, mlir::Type result, llvm::StringRef requantise);

/// The stage that stores integers as they are.
bmodel::npu::Output keepIntegers(bmodel::npu::Type type, llvm::StringRef requantise);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_OUTPUTSTAGE_H
