//===- Decisions.h - Which tensors become integers, and in which range -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_PRECISION_DECISIONS_H
#define TESSERA_QUANT_TRANSFORMS_PRECISION_DECISIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "quant/Transforms/Tables/CalibrationTable.h"
#include "quant/Transforms/Tables/QuantizeTable.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace tessera::quant {

/// The integer form of a tensor: real = scale * (q - zeroPoint).
struct IntegerForm {
  float scale = 1;
  int8_t zeroPoint = 0;
  int64_t qmax = 0;       ///< 0 for i8; else i16 in [-qmax, qmax] with zeroPoint 0
  double finestScale = 1; ///< scale if all levels of the type were used

  bool isWide() const { return qmax != 0; }
};

/// The decisions about one function, made before it is rewritten.
struct Decisions {
  llvm::MapVector<mlir::Value, IntegerForm> tensors;    ///< tensors that become integers, in program order
  llvm::DenseSet<mlir::Operation *> integers;           ///< ops that run on integers or in the epilogue of such an op
  llvm::MapVector<mlir::Operation *, std::string> wide; ///< subset of `integers` that reads i16, with the reason
  llvm::MapVector<mlir::Operation *, std::string> kept; ///< other ops with a float result, with the reason
  llvm::DenseSet<mlir::Operation *> readsFloat;         ///< ops that read unquantised values if they are available
};

/// Decides which ops of the top level of `function` become integer ops. Tensors must have names (top::nameEveryTensor)
/// and tables must be checked (checkTables). `precision` applies to ops without a line in `choices`. The levels of i16
/// tensors are not chosen yet. Fails if the quantise table requests something impossible.
llvm::Expected<Decisions> decide(mlir::func::FuncOp function, const CalibrationTable &table,
                                 const QuantizeTable &choices, Precision precision);

/// Reads the decisions from the attributes (PrecisionAttributes.h), and chooses the scales of the tensors that become
/// integers. Fails if an op cannot have its precision.
llvm::Expected<Decisions> readDecisions(mlir::func::FuncOp function, const CalibrationTable &table);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_PRECISION_DECISIONS_H
