//===- KernelInterface.td - How a device op becomes x86 code ---*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef X86_KERNEL_INTERFACE
#define X86_KERNEL_INTERFACE

include "mlir/IR/OpBase.td"

def KernelInterface : OpInterface<"KernelInterface"> {
  let cppNamespace = "::tessera::x86";
  let description = [{
    A device op that has an x86 kernel. Attached by external models (registerX86Kernels), one file per op family.
    The kernel may depend on the op's attributes, regions and types only, not on its operands' definitions or its
    neighbours: equal ops share one kernel through the kernel cache.
  }];
  let methods = [
    InterfaceMethod<[{
      Emits the body of the kernel at kb.b: computes the tiles [kb.tileBegin(), kb.tileEnd()) and calls kb.setTiles().
      Failure emits an error at the op.
    }], "::llvm::LogicalResult", "emitKernel", (ins "::tessera::x86::KernelBuilder &":$kb)>,
  ];
}

#endif // X86_KERNEL_INTERFACE
