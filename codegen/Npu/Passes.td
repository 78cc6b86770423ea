//===- Passes.td - Passes of the NPU's back end ----------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef NPU_PASSES
#define NPU_PASSES

include "mlir/Pass/PassBase.td"

// Decides for one chip. A function's ops have addresses (device-assign-addresses) before any of these passes.
class Npu_ChipPass<string mnemonic> : Pass<mnemonic, "::mlir::func::FuncOp"> {
  let options = [
    Option<"chipName", "chip", "std::string", "\"npu-base\"", "A built-in chip, or the path of a description">,
  ];
  let dependentDialects = ["::tessera::npu::NpuDialect"];
}

def FuseCopiesPass : Npu_ChipPass<"npu-fuse-copies"> {
  let summary = "Let norms, attention and products do the copies and maps around them";
  let description = [{
    Before: device ops with addresses. After: `npu.fused` on copies and maps that another op does on the way. Norms, attention and
    products by constant weights work on rows; what turns rows before them, quantises theirs, and turns these again would pass
    outside memory once more for each step.

    A copy is fused into its readers where all of them can read its source as that lies and no burst is wasted for it; a map
    into the norm or attention in front where it is the only reader and the other operands are there; copies into what makes
    their operand where rows lie evenly in them: a norm stores any number of them, the others one, which is their result then.
    Ops stay where they are. An earlier decision is taken back.

    ```mlir
    %t = device.copy %x {pieces = [...]} : (tensor<1x24x9x8xf32>) -> tensor<1x9x8x24xf32>
    %n = device.norm %t {...} : (tensor<1x9x8x24xf32>) -> tensor<1x9x8x24xf32>
    // becomes
    %t = device.copy %x {npu.fused = #npu.fused<readers>, pieces = [...]} : (tensor<1x24x9x8xf32>) -> tensor<1x9x8x24xf32>
    %n = device.norm %t {...} : (tensor<1x9x8x24xf32>) -> tensor<1x9x8x24xf32>
    ```
  }];
  let statistics = [Statistic<"numCopies", "fused-copies", "Copies that other ops do">,
                    Statistic<"numMaps", "fused-maps", "Maps that other ops do">];
}

def VerifyDecisionsPass : Npu_ChipPass<"npu-verify-decisions"> {
  let summary = "Check what was decided for the NPU";
  let description = [{
    Checks the `npu.` attributes of a function against each other and against what the chip can do; it changes nothing.
  }];
}

#endif // NPU_PASSES
