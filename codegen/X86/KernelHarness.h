//===- KernelHarness.h - Runs single ops against the reference --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// For tests: compiles one device op, runs its kernel in this process on random data, and compares with
// the op's reference evaluation.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_KERNELHARNESS_H
#define TESSERA_CODEGEN_X86_KERNELHARNESS_H

#include "codegen/X86/X86Target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace tessera::x86 {

struct CheckOptions {
  double low = -2, high = 2;   ///< range of random floats and integers
  double relative = 1e-5;      ///< allowed error over max(1, |expected|); at least 2e-2 for bf16, 4e-3 for f16
  double indexRange = 8;       ///< i32 and i64 operands are drawn from [-indexRange, indexRange)
  bool negativeIndices = true; ///< whether they may be negative, too
  bool allBytes = false;       ///< i8 and ui8 operands hold any byte, extreme ones often
  bool signedZeros = false;    ///< floats are -1, -0, 0 and 1; the function is exact, the result so to the bit
  bool exactPairs = false;     ///< products of bf16 pairs are those that docs/numerics.md states, to the bit
  int64_t largest16 = 0;       ///< with allBytes: i16 operands hold any value up to that magnitude, extreme ones often
};

/// "tensor<1x3xf32>", for the texts below.
std::string tensorText(llvm::ArrayRef<int64_t> shape, const std::string &element);

/// |text|: "(%a: type, ...) -> type { body }" of a function whose body holds one device op, of arguments, which are
/// drawn, and constants. Returns what is
/// wrong with its kernel on |target|, or "" - values, zeros in padding lanes, writes outside of the results,
/// and results that depend on how tiles are split are checked.
std::string checkKernel(const std::string &text, const X86Target &target, const CheckOptions &options = {});

/// The same for a convolution or matrix product (x, w [, bias] [, extras]) with its weights and bias constant, or for a
/// recurrent op that has sums over inputs, with its weights constant, after
/// the passes that choose layouts and pack weights: the kernel of the packed op is checked.
std::string checkPackedKernel(const std::string &text, const X86Target &target, const CheckOptions &options = {});

/// Seconds that the packed op takes on one core, the best of several runs; negative when it cannot be run.
double timePackedKernel(const std::string &text, const X86Target &target);

/// Whether TESSERA_KERNELS=all asks for every case on every variant.
bool takesAllVariants();

/// The variants to test the running test's next case on, of those that this machine can run: LLVM takes most of these
/// tests' time. A test's first four cases go to all variants, each of the others to one without AVX-512 and to one
/// with it, which its |text| chooses.
llvm::SmallVector<X86Target> targetsFor(llvm::StringRef text);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_KERNELHARNESS_H
