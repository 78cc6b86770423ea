//===- KernelText.h - Checks of ops given as text ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_KERNELTEXT_H
#define TESSERA_CODEGEN_X86_KERNELTEXT_H

#include "codegen/X86/KernelHarness.h"

#include <gtest/gtest.h>
#include <initializer_list>
#include <string>

namespace tessera::x86 {

/// Checks the kernel of one op on the variants that targetsFor() picks.
inline void check(const std::string &text, const CheckOptions &options = {}) {
  llvm::SmallVector<X86Target> targets = targetsFor(text);
  for (const X86Target &target : targets) {
    EXPECT_EQ(checkKernel(text, target, options), "") << target.name().str() << "\n" << text;
  }
  for (const X86Target &target : openTargetsOf(targets, text)) {
    EXPECT_EQ(checkOpenKernel(text, target, options), "") << target.name().str() << "\n" << text;
  }
}

/// Returns the type of a tensor, e.g. "tensor<2x3xf32>".
inline std::string tensor(std::initializer_list<int64_t> shape, const char *element = "f32", bool blocked = false) {
  std::string text = "tensor<";
  for (int64_t size : shape) {
    text += std::to_string(size) + "x";
  }
  return text + element + (blocked ? ", #device.blocked<16>>" : ">");
}

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_KERNELTEXT_H
