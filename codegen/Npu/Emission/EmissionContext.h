//===- EmissionContext.h - What emission of an op works with ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_EMISSIONCONTEXT_H
#define TESSERA_CODEGEN_NPU_EMISSION_EMISSIONCONTEXT_H

#include "codegen/Npu/ElementTypes.h"
#include "codegen/Npu/Emission/OperandPlacer.h"
#include "codegen/Npu/Tiler.h"

namespace tessera::npu {
class EarlyCopies;

/// What the model of an op is given to emit it. All parts outlive the emission of a function.
struct EmissionContext {
  const Chip &chip;
  Stream &stream;            ///< gets the commands
  Tiler &tiler;              ///< cuts the work of an op into what fits local memory
  OperandPlacer &operands;   ///< where the op's operands and results are
  ValuePlan &plan;           ///< which values stay in local memory; is told of needs by a survey
  const FusedOps &fusedOps;  ///< copies and maps that the op does on the way
  const EarlyCopies &copies; ///< parts of copies that do not wait for the copy's turn
  /// Where forms are chosen: whether convolutions do the map of a picture in front of them; nothing: by an estimate.
  std::optional<bool> fusesInputs = std::nullopt;

  /// Whether nothing is appended: the plan is told how ops see their values and what room they need.
  bool surveys() const { return tiler.surveys; }
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_EMISSIONCONTEXT_H
