// SPDX-License-Identifier: Apache-2.0
// Lowers device ops to the bytes of a stream, phase by phase. The text of each phase is parsed again.
// RUN: tessera-opt %s --device-assign-addresses --npu-fuse-copies --npu-choose-forms --npu-choose-direct-stores --npu-schedule --npu-emit-commands -o %t.staged.mlir
// RUN: tessera-opt %t.staged.mlir --npu-allocate-local -o %t.allocated.mlir
// RUN: tessera-opt %t.allocated.mlir --npu-order-commands -o %t.ordered.mlir
// RUN: tessera-opt %t.ordered.mlir --npu-assign-waits -o %t.numbered.mlir
// RUN: tessera-opt %t.numbered.mlir --npu-encode -o %t.encoded.mlir
// RUN: FileCheck %s --check-prefix=STAGED < %t.staged.mlir
// RUN: FileCheck %s --check-prefix=ALLOCATED < %t.allocated.mlir
// RUN: FileCheck %s --check-prefix=ORDERED < %t.ordered.mlir
// RUN: FileCheck %s --check-prefix=NUMBERED < %t.numbered.mlir
// RUN: FileCheck %s --check-prefix=ENCODED < %t.encoded.mlir

// Running all passes at once gives the same bytes.
// RUN: tessera-opt %s --device-assign-addresses --npu-fuse-copies --npu-choose-forms --npu-choose-direct-stores --npu-schedule --npu-emit-commands \
// RUN:   --npu-allocate-local --npu-order-commands --npu-assign-waits --npu-encode -o %t.once.mlir
// RUN: diff %t.once.mlir %t.encoded.mlir
// The generic form and bytecode can be read back as well.
// RUN: tessera-opt %t.staged.mlir --mlir-print-op-generic -o %t.generic.mlir
// RUN: tessera-opt %t.generic.mlir | diff - %t.staged.mlir
// RUN: tessera-opt %t.numbered.mlir --emit-bytecode -o %t.bytecode
// RUN: tessera-opt %t.bytecode | diff - %t.numbered.mlir

// STAGED: npu.program @main staged chip "npu-base" inputs 2 layers ["conv", "add"] prefetch disjoint_stores
// STAGED: ^bb0(%constants: !npu.memory, %workspace: !npu.memory, %input0: !npu.memory, %input1: !npu.memory, %output0: !npu.memory):
// STAGED: %[[X:.*]] = npu.buffer {{[0-9]+}} : [1, 8, {{[0-9]+}}, 16] "f32"
// STAGED-NOT: at {{[0-9]+}} live
// STAGED: npu.stage load {
// STAGED: npu.command copy y = %{{.*}}[0] : f32 [{{.*}}], x = %input0[0] : f32 [0, 1024, 64, 4]
// STAGED: } compute {
// STAGED: npu.command conv y = %{{.*}}[0] : f32
// STAGED-SAME: layer 0
// STAGED: } store {
// STAGED: npu.command map y = {{.*}} layer 1
// STAGED: npu.command copy y = %output0[
// STAGED-NOT: id {{[0-9]+}} wait

// ALLOCATED: npu.program @main allocated
// ALLOCATED: npu.buffer {{[0-9]+}} : [{{.*}}] "f32" at {{[0-9]+}} live [0, {{[0-9]+}}]
// ALLOCATED: npu.stage

// ORDERED: npu.program @main ordered
// ORDERED: npu.buffer {{[0-9]+}} : [{{.*}}] "f32" at
// ORDERED-NOT: npu.stage
// ORDERED-NOT: id {{[0-9]+}} wait

// NUMBERED: npu.program @main numbered
// NUMBERED: npu.command copy {{.*}} id 1 wait 0
// NUMBERED: npu.command conv {{.*}} id 1 wait {{[1-9]}}

// ENCODED: npu.program @main numbered
// ENCODED-SAME: code dense<"0x{{[0-9A-F]+}}"> : tensor<{{[0-9]+}}x256xi8>
func.func @main(%x: tensor<1x8x16x16xf32>, %z: tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32> {
  %w = top.constant dense<0.5> : tensor<8x8x1x1xf32> : tensor<8x8x1x1xf32>
  %c = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x8x16x16xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x16x16xf32> loc("conv")
  %y = device.map(%c, %z) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    device.yield %s : f32
  } : (tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32> loc("add")
  return %y : tensor<1x8x16x16xf32>
}
