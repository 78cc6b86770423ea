//===- TensorNames.h - Names of tensors in tables -------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_TENSORNAMES_H
#define TESSERA_TOP_DIALECT_IR_TENSORNAMES_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera::top {

/// Gives every result of a non-constant Top op inside `function` a unique tensor name. Existing unique names stay.
/// Other names are derived from the node's name ("Conv_3", "Split_4:1"); repeated names get "#2", "#3", ... in program
/// order. The same module always gets the same names.
void nameEveryTensor(mlir::Operation *function);

/// Returns 32 hex digits that identify what a module computes: a hash of its ops and of its weights' hash, but not of
/// locations, the model's name and file names. Tables made from a module contain it.
std::string hashModule(mlir::ModuleOp module);

/// Returns a hash like hashModule() for a modified module: from the contents of the weights instead of the hash of the
/// weight file.
std::string hashContents(mlir::ModuleOp module);

/// Module attribute that identifies the network independently of the shapes of its inputs: 32 hex digits computed from
/// the imported file, its external weights and the selected outputs. It is absent if other options affect the network.
/// A table made from one module also serves modules with the same attribute.
inline constexpr llvm::StringLiteral kNetworkAttr = "top.network";
/// Result attribute of a function: the axis along which the size of that output is known only at run time. The tensor
/// has the greatest possible size; entries after the real ones are kPadding (0 if the type cannot represent it).
inline constexpr llvm::StringLiteral kPaddedAxisAttr = "top.padded_axis";
inline constexpr double kPadding = -1;
/// Returns the attribute kNetworkAttr, or "" if it is absent.
std::string networkOf(mlir::ModuleOp module);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_TENSORNAMES_H
