//===- CarriedSizes.h - Sizes that change from pass to pass -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Each dim of a carried value that a pass of a loop changes gets two symbols: one for the argument of the body, and one
// for the result of the loop (see SizeUpdates.h). Their range follows from the size before the loop, from what one pass
// makes of it, and from the number of passes.
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_CONTROL_CARRIEDSIZES_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_CONTROL_CARRIEDSIZES_H

#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/Sizes/RunTimeSizes.h"

namespace tessera::top::onnx_import {

/// The number of passes of a loop, while the loop is imported.
class PassLimit {
public:
  /// |trips|: the trip count; null without one.
  PassLimit(NodeImporter &n, mlir::Value trips) : n(n), trips(trips) {}

  /// Returns the trip count as a size, which is the number of passes unless a condition ends the loop earlier. Returns
  /// an unknown size if there is no trip count, or if it is computed in a way that sizes cannot express.
  Dim count();
  /// Returns the largest number of passes, INT64_MAX without a limit. Declares a range for the trip count if that is
  /// what limits it.
  int64_t most();
  /// Returns what to add to an error about a missing limit.
  std::string advice() const;

private:
  NodeImporter &n;
  mlir::Value trips;
  std::optional<int64_t> known;
};

class CarriedSizes {
public:
  /// |init|: the values before the loop. |body| names the arguments.
  CarriedSizes(NodeImporter &n, mlir::ValueRange init, const onnx::GraphProto &body, PassLimit &limit);

  /// Returns the types of the body's arguments for carried values.
  llvm::ArrayRef<mlir::Type> argumentTypes() const { return types; }
  /// Compares the values that a pass returns with its arguments. Returns true if an argument gets another type, so that
  /// the body must be imported again.
  bool update(mlir::ValueRange yielded);
  /// Returns the type of result |i| of the loop.
  mlir::RankedTensorType resultType(size_t i);

private:
  /// A dim of a carried value that changes.
  struct OpenDim {
    size_t value, dim;
    std::string name; ///< of the size after the loop, for --dims
    std::string argumentName = "";
    Dim first = 0, next = 0; ///< the sizes before the loop and after a pass
    std::optional<DimRange> given = std::nullopt;
    SizeRange range = {0, 0};
  };

  OpenDim *find(size_t value, size_t dim);
  SizeSymbolAttr makeSymbol(const OpenDim &open) const;
  void open(size_t value, size_t dim);
  bool widen();
  bool simulate(int64_t passes);
  void findRanges();
  void setTypes();

  NodeImporter &n;
  mlir::ValueRange init;
  const onnx::GraphProto &body;
  PassLimit &limit;
  llvm::SmallVector<mlir::Type> types;
  std::vector<OpenDim> dims;
  int64_t probe = 8;         ///< largest size that is tried
  RunTimeSizes::Names names; ///< before the body is imported
};

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_CONTROL_CARRIEDSIZES_H
