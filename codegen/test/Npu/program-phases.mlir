// SPDX-License-Identifier: Apache-2.0
// Passes report a program in the wrong phase, and buffers that do not fit.
// RUN: split-file %s %t
// RUN: not tessera-opt %t/staged.mlir --npu-order-commands 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not tessera-opt %t/staged.mlir --npu-encode 2>&1 | FileCheck %s --check-prefix=ENCODE
// RUN: not tessera-opt %t/full.mlir --npu-allocate-local 2>&1 | FileCheck %s --check-prefix=FULL
// RUN: tessera-opt %t/early.mlir --npu-allocate-local --npu-order-commands | FileCheck %s --check-prefix=EARLY
// RUN: tessera-opt %t/held.mlir --npu-allocate-local | FileCheck %s --check-prefix=HELD

// ORDER: error: the program is staged, expected one that is allocated
// ENCODE: error: the program is staged, expected one that is numbered
// FULL: error: no address for 131072 bytes of a lane from stage 0 to 0

// The constant of the second stage is loaded before the first stage stores. The result of the first stage is loaded
// again only after it has been stored.
// EARLY: npu.command copy y = %[[A:[0-9]+]][0] : i8 [64, 64, 64, 1], x = %input0[0]
// EARLY-NEXT: npu.command copy y = %[[B:[0-9]+]][0] : i8 [64, 64, 64, 1], x = %constants[0]
// EARLY-NEXT: npu.command map
// EARLY-NEXT: npu.command copy y = %workspace[0] : i8 [64, 64, 64, 1], x = %[[A]][0]
// EARLY-NEXT: npu.command copy y = %[[C:[0-9]+]][0] : i8 [64, 64, 64, 1], x = %workspace[0]

// The buffer that the first stage stores is held while the next two stages compute, up to the one that waits for the
// DMA anyway.
// HELD: npu.buffer 16384 : {{.*}} at 0 live [0, 2]
// HELD: npu.buffer 16384 : {{.*}} at 16384 live [1, 3]
// HELD: npu.buffer 16384 : {{.*}} at 0 live [3, 3]

//--- staged.mlir
npu.program @empty staged chip "npu-base" inputs 0 layers [] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
}

//--- full.mlir
npu.program @full staged chip "npu-base" inputs 0 layers ["a"] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
  %0 = npu.buffer 131072 : [1, 32, 1, 131072] "i8"
  %1 = npu.buffer 131072 : [1, 32, 1, 131072] "i8"
  npu.stage load {
    npu.command fill y = %0[0] : i8 [131072, 131072, 131072, 1], shape = [1, 32, 1, 131072] layer 0
    npu.command fill y = %1[0] : i8 [131072, 131072, 131072, 1], shape = [1, 32, 1, 131072] layer 0
  } compute {
  } store {
  }
}

//--- early.mlir
npu.program @early staged chip "npu-base" inputs 1 layers ["a", "b"] prefetch disjoint_stores {
^bb0(%constants: !npu.memory, %workspace: !npu.memory, %input0: !npu.memory):
  %0 = npu.buffer 64 : [1, 1, 1, 64] "i8"
  %1 = npu.buffer 64 : [1, 1, 1, 64] "i8"
  %2 = npu.buffer 64 : [1, 1, 1, 64] "i8"
  npu.stage load {
    npu.command copy y = %0[0] : i8 [64, 64, 64, 1], x = %input0[0] : i8 [64, 64, 64, 1], shape = [1, 1, 1, 64] layer 0
  } compute {
    npu.command map y = %0[0] : i8 [64, 64, 64, 1], a = %0[0] : i8 [64, 64, 64, 1], shape = [1, 1, 1, 64], program = %constants[64] : i32 [0, 0, 0, 4], length = 60000, slow = 200 layer 0
  } store {
    npu.command copy y = %workspace[0] : i8 [64, 64, 64, 1], x = %0[0] : i8 [64, 64, 64, 1], shape = [1, 1, 1, 64] layer 0
  }
  npu.stage load {
    npu.command copy y = %1[0] : i8 [64, 64, 64, 1], x = %constants[0] : i8 [64, 64, 64, 1], shape = [1, 1, 1, 64] layer 1
    npu.command copy y = %2[0] : i8 [64, 64, 64, 1], x = %workspace[0] : i8 [64, 64, 64, 1], shape = [1, 1, 1, 64] layer 1
  } compute {
    npu.command map y = %2[0] : i8 [64, 64, 64, 1], a = %1[0] : i8 [64, 64, 64, 1], b = %2[0] : i8 [64, 64, 64, 1], shape = [1, 1, 1, 64], program = %constants[64] : i32 [0, 0, 0, 4], length = 1, plain = 1 layer 1
  } store {
    npu.command copy y = %workspace[0] : i8 [64, 64, 64, 1], x = %2[0] : i8 [64, 64, 64, 1], shape = [1, 1, 1, 64] layer 1
  }
}

//--- held.mlir
npu.program @held staged chip "npu-base" inputs 0 layers ["a", "b", "c", "d"] hold_stores {
^bb0(%constants: !npu.memory, %workspace: !npu.memory, %output0: !npu.memory):
  %0 = npu.buffer 16384 : [1, 32, 1, 16384] "i8"
  %1 = npu.buffer 16384 : [1, 32, 1, 4096] "f32"
  %2 = npu.buffer 16384 : [1, 32, 1, 4096] "f32"
  npu.stage load {
    npu.command fill y = %0[0] : i8 [16384, 16384, 16384, 1], shape = [1, 32, 1, 16384] layer 0
  } compute {
  } store {
    npu.command copy y = %output0[0] : i8 [524288, 16384, 16384, 1], x = %0[0] : i8 [16384, 16384, 16384, 1], shape = [1, 32, 1, 16384] layer 0
  }
  npu.stage load {
  } compute {
    npu.command reduce y = %1[0] : f32 [4, 4, 4, 4], x = %1[0] : f32 [16384, 16384, 16384, 4], shape = [1, 32, 1, 4096], kind = 1 layer 1
  } store {
  }
  npu.stage load {
  } compute {
    npu.command reduce y = %1[0] : f32 [4, 4, 4, 4], x = %1[0] : f32 [16384, 16384, 16384, 4], shape = [1, 32, 1, 4096], kind = 1 layer 2
  } store {
  }
  npu.stage load {
    npu.command copy y = %workspace[0] : i8 [524288, 16384, 16384, 1], x = %1[0] : i8 [16384, 16384, 16384, 1], shape = [1, 32, 1, 16384] layer 3
  } compute {
    npu.command reduce y = %2[0] : f32 [4, 4, 4, 4], x = %2[0] : f32 [16384, 16384, 16384, 4], shape = [1, 32, 1, 4096], kind = 1 layer 3
  } store {
  }
}
