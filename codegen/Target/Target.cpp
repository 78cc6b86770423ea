//===- Target.cpp - What a family of chips provides -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Target/Target.h"

#include "top_dialect/IR/Unsupported.h"

namespace tessera::codegen {

char UsageError::ID = 0;

llvm::Error Target::check(const CompileOptions &options) const {
  if (!options.plan.empty()) {
    return llvm::make_error<UsageError>("--plan: '" + name() + "' has no decisions that a plan could hold");
  }
  if ((options.candidates || options.isMeasured) && !canTune()) {
    return llvm::make_error<UsageError>("--candidates, --measured: '" + name() + "' decides nothing by measuring");
  }
  if (options.tf32 && !canRoundToTf32()) {
    return llvm::make_error<UsageError>("--tf32: '" + name() + "' multiplies f32 as it is");
  }
  if (options.observe && !canObserve()) {
    return top::unsupported("--observe: '" + name() + "' does not show what it computes");
  }
  return llvm::Error::success();
}

} // namespace tessera::codegen
