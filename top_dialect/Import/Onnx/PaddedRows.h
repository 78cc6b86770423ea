//===- PaddedRows.h - Tensors whose size only a run tells ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Operators like NonMaxSuppression give as many rows as the data has. Tessera gives them the greatest number there can
// be and keeps the count beside: rows behind it hold nothing of the network's. Operators that treat rows one by one
// pass that on; others, which would mix such rows with real ones, are refused.
#pragma once

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace tessera::top::onnx_import {

/// Of the entries along |axis| the first |count| are real.
struct Padding {
  int64_t axis;
  mlir::Value count;  ///< i64, rank 0
  std::string source; ///< the node that made them, for messages
  bool filled;        ///< the others hold -1 already
};

/// The paddings of a model's tensors while it is imported.
class PaddedRows {
public:
  const Padding *find(mlir::Value value) const;
  void mark(mlir::Value value, Padding padding) { paddings[value] = std::move(padding); }
  /// Marks the results of |op|, which was just made; an error where it would read rows that are none.
  llvm::Error propagate(mlir::Operation *op);

private:
  llvm::DenseMap<mlir::Value, Padding> paddings;
};

} // namespace tessera::top::onnx_import
