//===- EmissionContext.h - State shared by emission of ops ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_EMISSIONCONTEXT_H
#define TESSERA_CODEGEN_NPU_EMISSION_EMISSIONCONTEXT_H

#include "codegen/Npu/Contraction/Tiler.h"
#include "codegen/Npu/ElementTypes.h"
#include "codegen/Npu/Emission/OperandPlacer.h"

namespace tessera::npu {
class EarlyCopies;

/// Everything that an op's model needs to emit the op. All referenced objects outlive the emission of a function.
struct EmissionContext {
  const Chip &chip;
  CommandStream &stream;     ///< receives the commands
  Tiler &tiler;              ///< cuts the op into tiles that fit local memory
  OperandPlacer &operands;   ///< finds the op's operands and results
  ValuePlan &plan;           ///< values that are resident in local memory; a survey records needs in it
  const FusedOps &fusedOps;  ///< copies and maps that are fused into other ops
  const EarlyCopies &copies; ///< parts of copies that are emitted before the copy
  /// For chooseForm: if set, whether convolutions compute the map in front of them that quantises a picture; if not
  /// set, an estimate decides.
  std::optional<bool> fusesInputs = std::nullopt;

  /// Returns true in a survey: no commands are appended, and the plan records how ops view their values and how much
  /// local memory they need.
  bool surveys() const { return tiler.surveys; }
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_EMISSIONCONTEXT_H
