//===- KernelInterface.td - How a device op becomes loops -----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef KERNELS_KERNEL_INTERFACE
#define KERNELS_KERNEL_INTERFACE

include "mlir/IR/OpBase.td"

def KernelInterface : OpInterface<"KernelInterface"> {
  let cppNamespace = "::tessera::kernels";
  let description = [{
    A device op that a kernel of loops computes, whatever machine LLVM compiles it for. Attached by external models (registerKernels), one file per op family.
    The kernel may depend on the op's attributes, regions and types only, not on its operands' definitions or its
    neighbours: equal ops share one kernel through the kernel cache.
  }];
  let methods = [
    InterfaceMethod<[{
      Emits the body of the kernel at kb.b: computes the tiles [kb.tileBegin(), kb.tileEnd()) and calls kb.setTiles().
      Failure emits an error at the op.
    }], "::llvm::LogicalResult", "emitKernel", (ins "::tessera::kernels::KernelBuilder &":$kb)>,
  ];
}

#endif // KERNELS_KERNEL_INTERFACE
