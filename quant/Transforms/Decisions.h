//===- Decisions.h - Which tensors become integers, and in which range -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "quant/Transforms/CalibrationTable.h"
#include "quant/Transforms/QuantizeTable.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace tessera::quant {

/// The integers that a tensor becomes: real = scale * (q - zeroPoint).
struct IntegerForm {
  float scale = 1;
  int8_t zeroPoint = 0;
  int64_t levels = 0;     ///< 0: i8; else i16 in [-levels, levels], and zeroPoint is 0
  double finestScale = 1; ///< the scale that it would have with all levels of its type

  bool isWide() const { return levels != 0; }
};

/// What is decided about one function, before anything changes.
struct Decisions {
  llvm::MapVector<mlir::Value, IntegerForm> tensors; ///< become integers, in program order
  llvm::DenseSet<mlir::Operation *> integers;        ///< ops that run on integers, or in the epilogue of one that does
  llvm::MapVector<mlir::Operation *, std::string> wide;    ///< of these, the ones that read i16, and why
  llvm::MapVector<mlir::Operation *, std::string> kept;    ///< the other ops with a float result, and why
  llvm::DenseMap<mlir::Operation *, const Choice *> asked; ///< ops that the quantise table names
  llvm::DenseSet<mlir::Operation *> readsFloat; ///< of those, the ones that read unquantised values where they can
};

/// Decides for the top level of `function`, whose tensors have names (top::nameEveryTensor) and whose tables are
/// checked. Fails where the quantise table asks for what is not possible.
/// `precision`: of ops without a line in `choices`.
llvm::Expected<Decisions> decide(mlir::func::FuncOp function, const CalibrationTable &table,
                                 const QuantizeTable &choices, Precision precision);

} // namespace tessera::quant
