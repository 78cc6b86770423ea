//===- Target.cpp - Interface of a family of chips ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Target/Target.h"

#include "top_dialect/IR/Unsupported.h"

namespace tessera::codegen {

char UsageError::ID = 0;

llvm::Error Target::check(const CompileOptions &options) const {
  if (!options.plan.empty()) {
    return llvm::make_error<UsageError>("--plan: chip '" + name() + "' does not support plans");
  }
  if ((options.candidates || options.isMeasured) && !canTune()) {
    return llvm::make_error<UsageError>("--candidates, --measured: chip '" + name() + "' does not tune by measuring");
  }
  if (options.tf32 && !canRoundToTf32()) {
    return llvm::make_error<UsageError>("--tf32: chip '" + name() + "' does not support TF32");
  }
  if (options.instrument && !canInstrument()) {
    return top::unsupported("--observe: chip '" + name() + "' does not support observing its tensors");
  }
  return llvm::Error::success();
}

} // namespace tessera::codegen
