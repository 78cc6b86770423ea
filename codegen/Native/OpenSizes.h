//===- OpenSizes.h - Random ops with sizes known at run time ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// For tests: turns sizes of a static op into symbols, so that one kernel is checked at several sizes.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NATIVE_OPENSIZES_H
#define TESSERA_CODEGEN_NATIVE_OPENSIZES_H

#include "codegen/Native/KernelHarness.h"

#include <random>

namespace tessera::native {

/// Which sizes to open: any; those that do not belong to the weights and the bias, which will be packed; the rows of a
/// matmul with such weights, of which there are from 1, the likely number, up to the static one; or the images of a
/// convolution.
enum class OpenedSizes { Any, NotOfWeights, FewLikelyRows, Images };

/// Replaces some sizes of |op|'s operands and results by symbols with ranges around the sizes. Sizes that must agree
/// get the same symbol, and the sizes of windows follow from each other. Returns false if the op stays as it is.
bool openRandomSizes(mlir::Operation *op, std::mt19937 &random, OpenedSizes opened = OpenedSizes::Any);

/// Gives |op| the types of |open| with the value |valueOf|(symbol) in place of each symbol.
void bindSizes(mlir::Operation *op, mlir::Operation *open, llvm::function_ref<int64_t(top::SizeSymbolAttr)> valueOf);

/// Returns values of |symbols| at which to run: all smallest, all largest, all likely, and random ones.
std::vector<std::vector<int64_t>> drawDims(const kernels::SizeSymbols &symbols, std::mt19937 &random);

/// Opens random sizes of the op of |text| and runs its one kernel at several sizes with random operands. Returns a
/// description of the first error, or "". Returns "" if the kernel of the op does not accept the sizes.
std::string checkOpenSizes(mlir::MLIRContext &context, const std::string &text, KernelSource compile,
                           const CheckOptions &options, uint64_t seed);

} // namespace tessera::native

#endif // TESSERA_CODEGEN_NATIVE_OPENSIZES_H
