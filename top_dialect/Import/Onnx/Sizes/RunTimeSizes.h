//===- RunTimeSizes.h - Sizes that a run computes ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// With --dims, a size that the network reads from an input or computes becomes a symbol (top.bind): element 1 of the
// tensor `shape` is `shape[1]`, and the number of rows that NonZero finds is dim 1 of its output `y`, `y.1`.
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_RUNTIMESIZES_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_RUNTIMESIZES_H

#include "top_dialect/IR/Sizes.h"
#include "top_dialect/Import/Onnx/Sizes/DimRanges.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <map>

namespace tessera::top::onnx_import {

/// An element of an integer tensor.
struct Element {
  mlir::Value tensor;
  int64_t index;
};

/// Follows an element of a small integer tensor back through ops that only move elements.
Element traceElement(mlir::Value tensor, int64_t index);

/// Returns the size that an earlier op has bound to an element; unknown if there is none. Ops in a branch or body count
/// until it is complete.
Dim findBound(Element element);
/// Returns "TENSOR[INDEX]" by the ONNX name of the tensor, or by |otherName| if it has none.
std::string nameOf(Element element, llvm::StringRef otherName);

/// Declares the symbols of sizes that a run computes.
class RunTimeSizes {
public:
  RunTimeSizes() = default;
  /// |unused|: names in |ranges| that no dim of an input has, with the error for a name that no symbol gets.
  RunTimeSizes(const DimRanges &ranges, llvm::StringMap<std::string> unused,
               std::function<void(llvm::StringRef, const DimRange &)> opened)
      : ranges(ranges), unused(std::move(unused)), opened(std::move(opened)) {}

  bool isEnabled() const { return ranges.isGiven(); }
  /// Returns whether open sizes without a range get a default one.
  bool opensAll() const { return ranges.openAll; }
  /// Returns the range that the user gives for the first size of this name; nothing without one.
  std::optional<DimRange> givenRange(llvm::StringRef name) const;
  /// Returns a name that no symbol has: |wanted|, possibly with a number.
  std::string takeName(llvm::StringRef wanted);
  /// Returns a new symbol. Its range is that of the user for |name|, or |byDefault|.
  Dim declare(mlir::MLIRContext *context, llvm::StringRef name, DimRange byDefault);
  /// Creates an op that binds a new symbol to an i64 element; see declare().
  Dim bind(mlir::OpBuilder &builder, mlir::Location loc, Element element, llvm::StringRef name, DimRange byDefault);
  /// The number of symbols by name. The body of a loop is imported several times, each time with the same names.
  using Names = llvm::StringMap<unsigned>;
  const Names &getNames() const { return names; }
  void setNames(Names newNames) { names = std::move(newNames); }
  /// Reports the symbols. Returns an error if the user gave a range to a name that nothing has.
  llvm::Error finish() const;

private:
  DimRanges ranges;
  llvm::StringMap<std::string> unused;
  std::function<void(llvm::StringRef, const DimRange &)> opened;
  Names names;
  std::map<std::string, DimRange> declared;
};

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_RUNTIMESIZES_H
