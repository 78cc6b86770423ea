//===- EmitKernels.cpp - Pass that prints the kernels of device ops -------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/X86/KernelCompiler.h"
#include "codegen/X86/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
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
    mlir::OpBuilder builder(&getContext());
    llvm::SmallVector<mlir::Operation *> ops;
    getOperation().walk([&](KernelInterface op) { ops.push_back(op); });
    for (mlir::Operation *op : ops) {
      std::string symbol = op->getName().stripDialect().str();
      KernelFrame frame;
      mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> kernel = emitKernelModule(op, *target, symbol, frame);
      if (failed(kernel) || (lower && failed(lowerKernelModule(**kernel)))) {
        return signalPassFailure();
      }
      mlir::ModuleOp module = kernel->release();
      module->setAttr("x86.tiles", builder.getI64IntegerAttr(frame.tiles));
      module->setAttr("x86.scratch_bytes", builder.getI64IntegerAttr(frame.scratchBytes));
      getOperation().push_back(module);
    }
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<mlir::func::FuncOp>())) {
      function.erase();
    }
  }
};

} // namespace
} // namespace tessera::x86
