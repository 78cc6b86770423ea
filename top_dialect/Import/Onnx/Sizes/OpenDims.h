//===- OpenDims.h - Open dims of inputs become symbols ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_OPENDIMS_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_OPENDIMS_H

#include "top_dialect/Import/Onnx/OnnxInputs.h"

namespace tessera::top::onnx_import {

/// Returns the name by which the user refers to a dim.
std::string dimName(const Input &input, size_t axis);

/// Gives dims of |inputs| that only one branch of an If reads names of their own if earlier inputs, which this branch
/// shares or does not read, have dims of the same name: programs pass a cache of length 0 to the branch that ignores
/// it. The branch that reads them compares the sizes that it needs to be equal. A new name is INPUT.AXIS of the first
/// input with it; its range in |ranges| is that of the old name, from 0. Dims that count samples keep their names.
void separateBranchDims(llvm::MutableArrayRef<Input> inputs, const onnx::GraphProto &graph, DimRanges &ranges);

/// Gives the open dims of |inputs| the sizes of |ranges|: a symbol for a range, a number for a single size. A dim is
/// named by its dim_param or, if it has none, by INPUT.AXIS; dims with the same name are the same size. A dim_param
/// that is a sum of names and numbers becomes that sum. |opened| receives the ranges that were used. |unknown| receives
/// the names of |ranges| that no dim has, with an error for each: they may name sizes that a run computes. Fails if a
/// name is that of a fixed dim, or if a dim stays open: |missing| receives the names without a range and a usual range
/// for each.
llvm::Error declareDims(llvm::MutableArrayRef<Input> inputs, const DimRanges &ranges, mlir::MLIRContext *context,
                        const std::function<void(llvm::StringRef, const DimRange &)> &opened,
                        std::map<std::string, DimRange> &missing, llvm::StringMap<std::string> &unknown);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_OPENDIMS_H
