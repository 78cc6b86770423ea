//===- EmitKernels.cpp - Pass that prints the kernels of device ops -------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/KernelCompiler.h"
#include "codegen/X86/Passes.h"

#include "llvm/ADT/StringExtras.h"

namespace tessera::x86 {

#define GEN_PASS_DEF_EMITKERNELSPASS
#include "codegen/X86/Passes.h.inc"

namespace {

struct EmitKernelsPass : impl::EmitKernelsPassBase<EmitKernelsPass> {
  using EmitKernelsPassBase::EmitKernelsPassBase;

  void runOnOperation() override {
    std::optional<X86Target> target = X86Target::parse(chip);
    if (!target) {
      getOperation().emitError("unknown chip '") << chip << "': allowed are " << llvm::join(X86Target::chips(), ", ");
      return signalPassFailure();
    }
    auto emit = [&](mlir::Operation *op, llvm::StringRef symbol, KernelFrame &frame) {
      return emitKernelModule(op, *target, symbol, frame);
    };
    if (failed(native::replaceByKernels(getOperation(), emit, "x86", lower))) {
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace tessera::x86
