//===- EmitKernels.cpp - Replaces device ops by their kernels -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Native/KernelCompiler.h"

#include "codegen/Kernels/KernelInterface.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace tessera::native {

LogicalResult replaceByKernels(ModuleOp module, KernelEmitter emit, StringRef dialect, bool lower) {
  OpBuilder builder(module.getContext());
  SmallVector<Operation *> ops;
  module.walk([&](kernels::KernelInterface op) { ops.push_back(op); });
  for (Operation *op : ops) {
    std::string symbol = op->getName().stripDialect().str();
    kernels::KernelFrame frame;
    FailureOr<KernelModule> emitted = emit(op, symbol, frame);
    if (failed(emitted) || (lower && failed(kernels::lowerKernelModule(**emitted)))) {
      return failure();
    }
    ModuleOp kernel = emitted->release();
    Dim tiles = frame.tilesOf(op);
    kernel->setAttr((dialect + ".tiles").str(), tiles.isKnown() ? builder.getI64IntegerAttr(tiles.value())
                                                                : Attribute(builder.getStringAttr(toText(tiles))));
    kernel->setAttr((dialect + ".scratch_bytes").str(), builder.getI64IntegerAttr(frame.scratchBytes));
    module.push_back(kernel);
  }
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    function.erase();
  }
  return success();
}

} // namespace tessera::native
