//===- KernelInterface.td - Lowering device ops to loops ------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef KERNELS_KERNEL_INTERFACE
#define KERNELS_KERNEL_INTERFACE

include "mlir/IR/OpBase.td"

def KernelInterface : OpInterface<"KernelInterface"> {
  let cppNamespace = "::tessera::kernels";
  let description = [{
    Implemented by device ops that a loop kernel computes, on every machine for which LLVM generates code. Attached by
    external models (registerKernels), one file per op family. The kernel may depend on the op's attributes, regions and
    types only, not on the definitions of its operands or on neighbouring ops: equal ops share one kernel in the cache.
  }];
  let methods = [
    InterfaceMethod<[{
      Returns true if emitKernel() supports those sizes of the op that are not numbers. The default accepts numbers only,
      so that a kernel that was not written for open sizes is never emitted with them.
    }], "bool", "acceptsOpenSizes", (ins), "", "return false;">,
    InterfaceMethod<[{
      Emits the body of the kernel at kb.b: computes the tiles [kb.tileBegin(), kb.tileEnd()) and calls kb.setTiles().
      On failure reports an error at the op.
    }], "::llvm::LogicalResult", "emitKernel", (ins "::tessera::kernels::KernelBuilder &":$kb)>,
  ];
}

#endif // KERNELS_KERNEL_INTERFACE
