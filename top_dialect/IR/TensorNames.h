//===- TensorNames.h - What tables of tensors are keyed by ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace tessera::top {

/// Gives every result of a Top op inside `function` that is no constant a tensor name that no other one has. Names that
/// are there and unique stay; the others come from the node's name ("Conv_3", "Split_4:1"), a repeated name gets "#2",
/// "#3", ... in program order. The same module always gets the same names.
void nameEveryTensor(mlir::Operation *function);

/// Identifies what a module computes: 32 hex digits over its ops and the hash of its weights, not over its locations,
/// the model's name or the names of files. Tables made from a module carry it.
std::string hashModule(mlir::ModuleOp module);

/// The same of a module that was changed: with what its weights hold in place of the hash of their file.
std::string hashContents(mlir::ModuleOp module);

/// Module attribute: identifies the network that the module is of, whatever the shapes of its inputs are: 32 hex digits
/// over the file that it was imported from, weights beside it and the outputs that were chosen. Absent where that is
/// not all of it. Tables that are made from one such module serve all of them.
inline constexpr llvm::StringLiteral kNetworkAttr = "top.network";
/// Result attribute of a function: the axis along which the size of that output is known at run time only. The tensor
/// has the greatest size there can be; behind the real entries it holds kPadding (0 where the type has no such number).
inline constexpr llvm::StringLiteral kPaddedAxisAttr = "top.padded_axis";
inline constexpr double kPadding = -1;
/// Empty where it is absent.
std::string networkOf(mlir::ModuleOp module);

} // namespace tessera::top
