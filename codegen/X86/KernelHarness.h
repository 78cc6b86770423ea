//===- KernelHarness.h - Checks kernels of every x86 variant ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// For tests: compiles one device op for a variant and checks its kernel with native::runKernel().
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_KERNELHARNESS_H
#define TESSERA_CODEGEN_X86_KERNELHARNESS_H

#include "codegen/Native/KernelHarness.h"
#include "codegen/X86/X86Target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace tessera::x86 {

struct CheckOptions : native::CheckOptions {
  bool fewLikelyRows =
      false;               ///< checkOpenPackedKernel() opens the rows of a matmul: 1 up to those of the text, likely 1
  bool exactPairs = false; ///< sums of bf16 pairs must equal those of docs/numerics.md bit by bit
};

using native::tensorText;

/// Checks the kernel of one op on |target|. |text| is "(%a: type, ...) -> type { body }", a function whose body holds
/// one device op and constants. Arguments are drawn at random. Returns a description of the first error, or "". Checks
/// values, zeros in padding lanes, writes outside the results, and that results do not depend on how tiles are split.
std::string checkKernel(const std::string &text, const X86Target &target, const CheckOptions &options = {});

/// As checkKernel(), but one kernel runs at several sizes: native::checkOpenSizes().
std::string checkOpenKernel(const std::string &text, const X86Target &target, const CheckOptions &options = {});

/// As checkKernel(), but checks the kernel after the passes that choose layouts and pack weights. The op is a
/// convolution or matmul (x, w [, bias] [, extras]), whose weights and bias become constants, or a recurrent op over
/// input sums, whose weights become constants.
std::string checkPackedKernel(const std::string &text, const X86Target &target, const CheckOptions &options = {});

/// As checkPackedKernel() for a convolution, but one kernel runs with several numbers of images.
std::string checkOpenPackedKernel(const std::string &text, const X86Target &target, const CheckOptions &options = {});

/// Returns the seconds that the packed op takes on one core, the best of several runs; negative if it cannot be packed.
double timePackedKernel(const std::string &text, const X86Target &target);

/// Returns true if the environment variable TESSERA_KERNELS=all asks for every case on every variant.
bool takesAllVariants();

/// Returns the variants on which to check the next case of the running test: a subset of those that this machine can
/// run or emulate (EmulatedAvx512.h), because LLVM takes most of the time of these tests. The first four cases of a
/// test run on all that can run, and the first two on all emulated ones; each further case runs on one, and an eighth
/// of them on an emulated one, chosen by a hash of |text|. Checks of kernels that cannot be emulated pass.
llvm::SmallVector<X86Target> targetsFor(llvm::StringRef text);

/// Returns those of |targets| on which to check the case of |text| with symbolic sizes, too: one of them for an eighth
/// of the cases, chosen by a hash of |text|, because LLVM takes most of the time; all with TESSERA_KERNELS=all.
llvm::ArrayRef<X86Target> openTargetsOf(llvm::ArrayRef<X86Target> targets, llvm::StringRef text);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_KERNELHARNESS_H
