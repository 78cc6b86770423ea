//===- Passes.td - Passes of the x86 back end --------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef X86_PASSES
#define X86_PASSES

include "mlir/Pass/PassBase.td"

def EmitKernelsPass : Pass<"x86-emit-kernels", "::mlir::ModuleOp"> {
  let summary = "Print the kernels of device ops";
  let description = [{
    Before: functions of device ops. After: the module holds one nested module per op that has a kernel, named after the
    op, with the kernel as `func.func` and its tile count and scratch bytes as attributes; the functions are removed.
    This pass is for reading and testing; deployment compiles kernels without it. With `lower`, the kernels are in the
    LLVM dialect.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"x86-avx512\"", "x86, x86-v2, x86-avx2 or x86-avx512">,
    Option<"lower", "lower", "bool", "false", "Lower the kernels to the LLVM dialect">,
  ];
}

#endif // X86_PASSES
